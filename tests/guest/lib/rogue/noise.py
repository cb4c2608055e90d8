# SPDX-License-Identifier: GPL-2.0
"""Arbitrary bytes in every place where a peer can put some, to the server and to the client.

Each message is answered, or ends its path; whatever it is, others are served. `WEFT_SEED` repeats a run.
"""

import os
import random

import rnbd
import rtrs_wire as wire
import verbs
from cases import ON_DEBUG, SOAK, Cases, equal, eventually
from rogue.ground import CHUNK, DEPTH, only_honest
from rogue.serving import LINE, nothing_is_left, unmap_all
from rtrs_peer import Gone, Peer, Refused
from rtrs_rogue import Rogue

CASES = Cases("noise")
SEED = int(os.environ.get("WEFT_SEED") or "1")
TO_SERVER = (10_000 if ON_DEBUG else 100_000) if SOAK else 2_000
TO_CLIENT = (100 if ON_DEBUG else 1_000) if SOAK else 30


def _changed(pick, data):
    """The bytes with some of them changed, or of another length."""
    data = bytearray(data)
    for _ in range(pick.randrange(1, 6)):
        if data:
            data[pick.randrange(len(data))] = pick.choice((0, 1, 0x7F, 0x80, 0xFF, pick.randrange(256)))
    return bytes(data[: pick.randrange(len(data) + 1)] if pick.random() < 0.1 else data)


def _good_message(pick):
    """A message of RNBD that could be one."""
    numbers = (0, 1, 2, 7)
    return pick.choice((
        lambda: wire.session_info(pick.randrange(4)),
        lambda: wire.open_device(pick.choice((b"ram1", b"ram2", b"null", b"x")), pick.randrange(3)),
        lambda: wire.close_device(pick.choice(numbers)),
        lambda: wire.io(pick.choice(numbers), pick.randrange(7), pick.randrange(16384), pick.randrange(9) * 512),
    ))()


class Source:
    """A client that sends noise, over path after path."""

    def __init__(self):
        self.pick = random.Random(SEED)
        self.peer = None
        self.paths = 0
        self.kinds = (
            (self.message_of_bytes, 40),
            (self.changed_message, 40),
            (self.header, 3),
            (self.immediate, 3),
            (self.chunk, 5),
            (self.private_data, 6),
            (self.name, 2),
            (self.send, 1),
        )

    def run(self, count):
        """Sends that many messages."""
        functions, weights = zip(*self.kinds)
        for number in range(count):
            if self.peer is None:
                self.peer = Peer(cid_num=2).up()
                self.paths += 1
            kind = self.pick.choices(functions, weights)[0]
            try:
                kind()
                if number % 50 == 0:
                    self.peer.greet()
            except Gone:
                self.peer.close()
                self.peer = None
            except AssertionError as error:
                raise AssertionError(f"message {number} with seed {SEED}, {kind.__name__}: {error}") from error
        if self.peer:
            self.peer.close()

    def _carry(self, message):
        size = self.pick.choice((0, 36, 56, 512, 4096))
        cid = self.pick.randrange(2)
        if self.pick.random() < 0.5:
            self.peer.read(message, size, cid=cid)
        else:
            self.peer.write(message, self.pick.randbytes(size), cid=cid)

    def message_of_bytes(self):
        """A message of RNBD of arbitrary bytes, often with a type that there is."""
        kind = self.pick.choice((b"", bytes([self.pick.randrange(7), 0])))
        self._carry(kind + self.pick.randbytes(self.pick.choice((0, 2, 6, 24, 30, 34, 262, self.pick.randrange(400)))))

    def changed_message(self):
        """A good message with some bytes changed."""
        self._carry(_changed(self.pick, _good_message(self.pick)))

    def header(self):
        """A header of RTRS of arbitrary bytes, or with some bytes changed."""
        good = self.pick.choice((wire.write_header(36), wire.read_header(36, self.peer.target(36))))
        bytes_ = self.pick.choice((_changed(self.pick, good), self.pick.randbytes(24)))
        self.peer.put(self.peer.chunk(), bytes(36) + wire.session_info() + bytes_, 72, cid=self.pick.randrange(2))
        self.peer.greet()

    def immediate(self):
        """An immediate."""
        imm = self.pick.choice((self.pick.getrandbits(32), wire.request(self.pick.randrange(DEPTH), 72, DEPTH)))
        self.peer.announce(imm, self.pick.randrange(2))
        self.peer.greet()

    def chunk(self):
        """Bytes in a chunk, which mean nothing until they are announced."""
        address, key = self.peer.chunks[self.pick.randrange(DEPTH)]
        data = self.pick.randbytes(self.pick.randrange(1, 4096))
        start = self.pick.randrange(CHUNK - len(data))
        self.peer.ends[0].post(verbs.WRITE, data, address + start, key)
        self.peer.greet()

    def private_data(self):
        """A connection request."""
        with Peer() as peer:
            good = wire.connect(peer.path, peer.session)
            try:
                peer.dial_raw(self.pick.choice((_changed(self.pick, good), self.pick.randbytes(56))), receives=1)
            except Refused:
                return

    def name(self):
        """The name of a session."""
        with Peer() as peer:
            peer.dial_all()
            good = wire.info_request(b"noise")
            data = self.pick.choice((_changed(self.pick, good), self.pick.randbytes(self.pick.randrange(1, 300))))
            peer.ends[0].post(verbs.SEND, data)
            # Whatever comes: the end, or the answer if the name was a good one. A server that hangs up before the
            # connection manager has told it that the connection is complete cannot say so: the queue pair breaks.
            verbs.until(lambda: not peer.look() or peer.arrived or peer.is_broken(), 20)
            assert peer.over or peer.arrived or peer.is_broken(), f"neither refused nor answered: {len(data)} bytes, {data[:20]}"

    def send(self):
        """A message where none has a place."""
        data = self.pick.randbytes(self.pick.randrange(300))
        self.peer.ends[self.pick.randrange(2)].post(verbs.SEND, data)
        self.peer.greet()


@CASES.case("to the server", limit=7200)
def _():
    source = Source()
    print(f"seed {SEED}, {TO_SERVER} messages", flush=True)
    source.run(TO_SERVER)
    print(f"{source.paths} paths", flush=True)
    only_honest()


@CASES.case("to the client", limit=3600)
def _():
    pick = random.Random(SEED)
    ends = {}
    for number in range(TO_CLIENT):
        place, parts = _noisy(pick)
        with Rogue(**parts) as rogue:
            code = rnbd.try_map(LINE)
            unmap_all()
            rogue.check()
        ends.setdefault(place, set()).add(rnbd.name_of(code))
        eventually(lambda: "rogue" not in rnbd.sessions(), f"message {number} with seed {SEED} ({place}): the end")
    print(f"seed {SEED}: {ends}", flush=True)
    nothing_is_left()


def _noisy(pick):
    """A server that puts noise into one place; the name of that place."""
    noise = pick.randbytes(pick.randrange(300))
    mostly = pick.random() < 0.7

    def of(good):
        return _changed(pick, good) if mostly else noise

    return pick.choice((
        ("accept", {"connecting": lambda self, request: of(wire.accept())[:56]}),
        ("information", {"informing": lambda self, end: of(wire.info_response(self.descriptors()))}),
        ("SESS_INFO", {"session_info": lambda self: of(wire.session_info(kind=wire.SESS_INFO_RSP))}),
        ("OPEN", {"open_response": lambda self: of(wire.open_response())}),
        ("immediate", {"answering": lambda self, end, request: self.complete(end, pick.getrandbits(32) | 1 << 28)}),
    ))


@CASES.case("what was served before is served still", limit=60)
def _():
    nothing_is_left()
    with Peer() as peer:
        equal(peer.up().greet(), 2)
