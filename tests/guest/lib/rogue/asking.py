# SPDX-License-Identifier: GPL-2.0
"""Requests that no client sends: immediates, headers, descriptors, keys, and operations that RTRS does not know.

All of this ends the path, with a line that says why. A request that is well formed but asks for what cannot be done is
answered instead; see `devices.py`.
"""

import errno

import rtrs_wire as wire
import verbs
from cases import Cases, equal
from rogue.ground import CHUNK, DEPTH, few, only_honest, tells
from rtrs_peer import Gone, Peer

CASES = Cases("asking")
IO_SIZE = CHUNK - 4096
INFO = wire.session_info()


def _ends(what, act, pattern, cid_num=1):
    """What ends the path."""

    def check():
        def attempt():
            with Peer(cid_num) as peer:
                peer.up()
                act(peer)
                assert peer.is_dropped(), "the path goes on"

        tells(pattern, attempt)

    CASES.case(what, limit=30)(check)


def _malformed(what, pattern, header, offset=36, message=INFO, start=0):
    """A header that cannot be, behind a good message."""

    def act(peer):
        bytes_ = header(peer) if callable(header) else header
        peer.put(0, (message + bytes_)[: CHUNK - start], offset, start)

    _ends(f"header: {what}", act, f"malformed request: .*{pattern}.*, closing")


def _target(length, address=None, **more):
    """The header of a request for data, whose target is made of the client's memory."""

    def header(peer):
        own, key, _ = peer.target(0)
        return wire.read_header(36, (own if address is None else address, key, length), **more)

    return header


_malformed("N-01 message longer than what is in front, write", "user message has 65535 bytes, there are 36 in front",
           wire.write_header(0xFFFF))
_malformed("N-01 message longer than what is in front, read", "user message has 65535 bytes",
           lambda peer: wire.read_header(0xFFFF, peer.target(36)))
_malformed("one byte longer than what is in front", "user message has 37 bytes, there are 36", wire.write_header(37))
_malformed("message of more than the server takes", "message and header have 4097 bytes, at most 4096",
           wire.write_header(4093), offset=8192, message=bytes(8192))
for _kind in few(0, 1, 4, 5, 0xFFFF):
    _malformed(f"type {_kind}", f"request has type {_kind}, it must be 2", wire.write_header(36, kind=_kind))
_malformed("2 descriptors", "request has 2 descriptors", _target(36, count=2), offset=72, message=bytes(36) + INFO)
_malformed("65535 descriptors", "request has 65535 descriptors", _target(36, count=65535))
_malformed("room for data and no descriptor", "request for 36 bytes has no descriptor",
           wire.read_header(36), offset=72, message=bytes(36) + INFO)
_malformed("descriptor of no bytes", "descriptor has 0 bytes, it must be from 1 to the 36",
           _target(0), offset=72, message=bytes(36) + INFO)
_malformed("descriptor longer than the room", "descriptor has 37 bytes, it must be from 1 to the 36",
           _target(37), offset=72, message=bytes(36) + INFO)
_malformed("N-02 descriptor longer than the chunk", "descriptor has 1048576 bytes",
           _target(1 << 20), offset=72, message=bytes(36) + INFO)
_malformed("descriptor of 4 GiB", "descriptor has 4294967295 bytes",
           _target(0xFFFFFFFF), offset=72, message=bytes(36) + INFO)
_malformed("descriptor beyond the address space", "ends beyond the address space",
           _target(36, address=2**64 - 8), offset=72, message=bytes(36) + INFO)
_malformed("N-12 at the last byte of the chunk", "header at offset 65535 does not fit the 1 bytes",
           b"\2", offset=CHUNK - 1, message=b"", start=CHUNK - 1)
_malformed("cut off by the end of the chunk", "header at offset 65524 does not fit the 12 bytes",
           _target(36), offset=CHUNK - 12, message=b"", start=CHUNK - 12)
_malformed("none: the chunk was never written to", "request has type 0", b"", offset=0, message=b"")

# Immediates.
for _kind in few(wire.RESPONSE, wire.RESPONSE_INV, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15):
    _ends(f"N-33 immediate of type {_kind}", lambda peer, kind=_kind: peer.announce(wire.immediate(kind, 1)),
          f"immediate {wire.immediate(_kind, 1):#010x} has a type that this side does not know, closing")
for _kind in (wire.HEARTBEAT, wire.HEARTBEAT_ACK):
    _ends(f"N-33 immediate of type {_kind} on connection 1",
          lambda peer, kind=_kind: peer.announce(wire.immediate(kind), cid=1), "heartbeat on connection 1, closing", 2)
_ends("N-12 an offset outside of the chunk", lambda peer: peer.announce(wire.request(0, CHUNK, DEPTH)),
      f"offset {CHUNK}.*, closing")
_ends("N-12 the largest chunk and offset", lambda peer: peer.announce(wire.immediate(0, 0xFFFFFFF)), "offset.*, closing")


@CASES.case("heartbeats are answered, and answers to none are no harm")
def _():
    with Peer() as peer:
        peer.up()
        for _ in range(20):
            peer.announce(wire.immediate(wire.HEARTBEAT))
            peer.announce(wire.immediate(wire.HEARTBEAT_ACK))
            ack = wire.immediate(wire.HEARTBEAT_ACK)
            peer.wait_for(lambda a, ack=ack: a.imm == ack, "the answer to a heartbeat")
        equal(peer.greet(), 2)


# Messages and operations that have no place on a connection. What the device itself refuses breaks the queue pair.
BROKEN = "connection [01]: .*, closing"
for _size in few(0, 8, 4096):
    _ends(f"N-36 a message of {_size} bytes on connection 1",
          lambda peer, size=_size: peer.ends[1].post(verbs.SEND, bytes(size)),
          "unexpected message on connection 1, closing" if _size == 0 else BROKEN, 2)
_ends("N-36 a message with an immediate", lambda peer: peer.ends[0].post(verbs.SEND_IMM, b"", imm=36),
      "unexpected message on connection 0, closing")
_ends("an invalidation of a chunk's key", lambda peer: peer.ends[0].post(verbs.SEND_INV, imm=peer.chunks[0][1]),
      BROKEN + "|unexpected message on connection 0, closing")


def _writes(what, place):
    """A write to where the client may not."""

    def act(peer):
        address, key = place(peer)
        peer.ends[0].post(verbs.WRITE, b"\xee" * 64, address, key)

    _ends(f"a write {what}", act, BROKEN)


_writes("with a key that is one off", lambda peer: (peer.chunks[0][0], peer.chunks[0][1] ^ 1))
_writes("with key 0", lambda peer: (peer.chunks[0][0], 0))
_writes("with the key of another chunk's region", lambda peer: (peer.chunks[0][0], peer.chunks[1][1] + 0x100 * DEPTH))
_writes("across the end of the last chunk", lambda peer: (peer.chunks[-1][0] + CHUNK - 32, peer.chunks[-1][1]))
_writes("in front of the first chunk", lambda peer: (peer.chunks[0][0] - 32, peer.chunks[0][1]))


@CASES.case("D-34 a write with the key of another client", limit=30)
def _():
    def act():
        with Peer() as victim, Peer() as peer:
            victim.up()
            peer.up()
            peer.ends[0].post(verbs.WRITE, b"\xee" * 64, *victim.chunks[0])
            assert peer.is_dropped(), "the path goes on"
            equal(victim.greet(), 2)

    tells(BROKEN, act)


@CASES.case("a request for data into memory that is not the client's", limit=60)
def _():
    for target in (lambda peer: (peer.memory.addr, peer.memory.rkey ^ 0xFF, 36), lambda peer: (4096, 0, 36)):

        def act(target=target):
            with Peer() as peer:
                peer.up()
                peer.put(0, INFO + wire.read_header(36, target(peer)), 72, start=36)
                assert peer.is_dropped(), "the path goes on"

        tells(BROKEN, act)


@CASES.case("a client whose own queue pair breaks: it has an answer invalidate what cannot be", limit=30)
def _():
    with Peer() as peer:
        peer.up()
        # Memory of programs is none that others may take the key of, on soft-RoCE.
        peer.put(0, INFO + wire.read_header(36, peer.target(36), flags=wire.NEED_INVAL), 72, start=36)
        fails_with(Gone, lambda: peer.answer(0))
        assert peer.ends[0].broken, "the answer did not invalidate"
    only_honest()


def fails_with(kind, call):
    """Fails unless `call()` raises that."""
    try:
        call()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


@CASES.case("RDMA READ and atomic operations bring nothing")
def _():
    for opcode, size in ((verbs.READ, 64), (verbs.FETCH_ADD, 8)):
        with Peer() as peer:
            peer.up()
            end = peer.ends[0]
            end.post(opcode, b"\x55" * size, *peer.chunks[0])
            verbs.until(lambda peer=peer, end=end: not peer.look() or not end.unsent, 1)
            assert end.unsent or end.broken, "the operation was done"
            equal(end.stage.map[end.used - size : end.used], b"\x55" * size)


@CASES.case("D10 two requests in one chunk", limit=60)
def _():
    # The disk may be done with the first before the second is there; then both are answered.
    outcomes = set()
    for _ in range(5):
        with Peer() as peer:
            peer.up()
            device = peer.must_open("ram3")
            body = bytes(IO_SIZE) + wire.io(device, wire.OP_WRITE, 0, IO_SIZE)
            peer.put(0, body + wire.write_header(32), len(body))
            for _ in range(3):
                peer.announce(wire.request(0, len(body), DEPTH))
            try:
                codes = [peer.answer(0) for _ in range(4)]
                outcomes.add("answered" if codes == [0] * 4 else f"answered {codes}")
            except Gone:
                outcomes.add("dropped")
    assert outcomes <= {"answered", "dropped"}, f"{outcomes}"


@CASES.case("N-05 answers have no bytes of the chunk but their own")
def _():
    with Peer() as peer:
        peer.up()
        device = peer.must_open("ram3")
        for message, size in ((wire.open_device(b"ram3"), 56), (INFO, 36)):
            for _ in range(DEPTH):
                # What was in each chunk before.
                equal(peer.write(wire.io(device, wire.OP_WRITE, 0, 4096), b"\xaa" * 4096), 0)
            code, data = peer.read(message, 4096)
            equal(code, 0)
            assert data[size:] == b"\x55" * (4096 - size), "more than the answer was written"
            assert b"\xaa" not in data[:size], "the answer has what was in the chunk"


@CASES.case("chunks have nothing of others when they are given out")
def _():
    with Peer() as peer:
        peer.up()
        device = peer.must_open("ram3")
        # A write whose data never arrived: what the chunk had goes to the disk.
        message = wire.io(device, wire.OP_WRITE, 64, IO_SIZE)
        peer.put(5, message + wire.write_header(32), IO_SIZE + 32, start=IO_SIZE)
        equal(peer.answer(5), 0)
        equal(peer.read(wire.io(device, wire.OP_READ, 64, IO_SIZE), IO_SIZE), (0, bytes(IO_SIZE)))


@CASES.case("a message of no bytes is answered")
def _():
    with Peer() as peer:
        peer.up()
        equal(peer.write(b""), errno.EINVAL)
        equal(peer.read(b"", 8)[0], errno.EINVAL)
        equal(peer.greet(), 2)


@CASES.case("the paths that failed leave nothing")
def _():
    only_honest()
