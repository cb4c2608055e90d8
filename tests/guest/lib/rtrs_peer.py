# SPDX-License-Identifier: GPL-2.0
"""A client of RTRS and RNBD in user space, which can also do what none should."""

import itertools
import os
import time

import rtrs_wire as wire
import verbs
from rnbd import ADDRESS
from verbs import until

# How long the modules may take for what ought to happen at once.
SOON = 20.0 * (4 if os.environ.get("WEFT_KERNEL") == "debug" else 1)
_names = itertools.count()


def _is_answer(arrival, chunk=None):
    kinds = wire.RESPONSE, wire.RESPONSE_INV
    return arrival.imm is not None and arrival.imm >> 28 in kinds and chunk in (None, arrival.imm & 0x7FFFF)


class Refused(Exception):
    """The server does not want a connection; `code` is the number of the error it gives, or None."""

    def __init__(self, event):
        answer = wire.read_accept(event.data)
        valid = event.kind == verbs.REJECTED and answer is not None and answer.magic == wire.MAGIC
        self.code = -answer.code if valid else None
        super().__init__(f"refused with {self.code} (event {event.kind}, status {event.status})")


class Gone(Exception):
    """The server has ended the path."""


class Peer:
    """One path of one session."""

    def __init__(self, cid_num=1, session=None, path=None, port=wire.PORT, address=ADDRESS):
        self.session = session or os.urandom(16)
        self.path = path or os.urandom(16)
        self.name = f"hostile{next(_names)}"
        self.cid_num = cid_num
        self.port = port
        self.address = address
        self.channel = verbs.Channel()
        self.ends = {}
        self.over = False
        self.chunks = []
        self.arrived = []
        self.turn = itertools.count()
        self.geometry = None
        self.memory = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends it without a word to the upper layers."""
        for end in self.ends.values():
            end.close()
        self.ends.clear()
        self.channel.close()

    def dial_raw(self, data, cid=0, receives=16, entry=64):
        """Asks for a connection with any private data."""
        end = verbs.find(self.channel, self.address, self.port)
        try:
            end.equip(receives, entry)
            verbs.connect(end, data)
            event = self._wait_event()
            while event.id != end.id:
                event = self._wait_event()
            if event.kind != verbs.ESTABLISHED:
                raise Refused(event)
        except BaseException:
            end.close()
            raise
        self.ends[cid] = end
        return wire.read_accept(event.data)

    def _wait_event(self):
        event = self.channel.event(SOON)
        assert event is not None, "the server does not answer a connection request"
        self.over = self.over or event.kind == verbs.DISCONNECTED
        return event

    def dial(self, cid=0, **fields):
        """Asks for a connection as a client does, but for some fields."""
        usual = {"path": self.path, "session": self.session, "cid": cid, "cid_num": self.cid_num}
        data = wire.connect(**{**usual, **fields})
        # The first connection has room for the answer about the chunks.
        answer = self.dial_raw(data, cid, *((8, 8 + 16 * 512) if cid == 0 else (16, 64)))
        if cid == 0:
            self.geometry = answer
        return answer

    def dial_all(self):
        """All connections."""
        for cid in range(self.cid_num):
            self.dial(cid)
        return self

    def introduce(self, name=None):
        """Tells the name of the session and learns where the chunks are."""
        self.ends[0].post(verbs.SEND, wire.info_request((name or self.name).encode()))
        arrival = self.wait_for(lambda a: a.imm is None, "the answer about the chunks")
        kind, descriptors = wire.read_info_response(arrival.data)
        assert kind == wire.INFO_RSP, f"type {kind}"
        size = self.geometry.io_size + self.geometry.hdr_size
        for address, key, length in descriptors:
            self.chunks += [(address + offset, key) for offset in range(0, length, size)]
        assert len(self.chunks) == self.geometry.depth, f"{len(self.chunks)} chunks of {self.geometry.depth}"
        self.memory = self.ends[0].memory(1 << 17)
        return self

    def up(self, name=None):
        """All that makes a path."""
        return self.dial_all().introduce(name)

    def look(self):
        """Takes in what came meanwhile; False once the path is over."""
        while (event := self.channel.event()) is not None:
            self.over = self.over or event.kind == verbs.DISCONNECTED
        for cid, end in self.ends.items():
            for arrival in end.poll():
                if arrival.imm == wire.immediate(wire.HEARTBEAT):
                    end.post(verbs.WRITE_IMM, imm=wire.immediate(wire.HEARTBEAT_ACK))
                else:
                    self._take_key(arrival)
                    self.arrived.append(arrival)
        return not self.over

    def _take_key(self, arrival):
        """The new key of a chunk, which comes with each answer of a server that invalidates."""
        if not _is_answer(arrival) or not self.geometry.flags & wire.NEW_RKEY:
            return
        kind, chunk, key = wire.read_key_message(arrival.data)
        assert (kind, chunk) == (wire.RKEY_RSP, arrival.imm & 0x7FFFF), "an answer without the new key"
        self.chunks[chunk] = self.chunks[chunk][0], key

    def wait_for(self, wanted, what, seconds=SOON):
        """The first message that is wanted, taken out; raises `Gone` if the path is over before."""
        end = time.monotonic() + seconds
        while True:
            alive = self.look()
            for number, arrival in enumerate(self.arrived):
                if wanted(arrival):
                    return self.arrived.pop(number)
            if not alive or self.is_broken():
                raise Gone(what)
            assert time.monotonic() < end, f"{what}: not within {seconds:g} s"
            time.sleep(0.001)

    def is_broken(self):
        """Whether a queue pair of this side is."""
        return any(end.broken for end in self.ends.values())

    def is_dropped(self, seconds=SOON):
        """Whether the server ends the path within that time."""
        return until(lambda: not self.look(), seconds)

    def chunk(self):
        """A chunk that was not used for longest."""
        return next(self.turn) % self.geometry.depth

    def put(self, chunk, data, offset, start=0, cid=0, key=None):
        """Writes bytes from `start` of a chunk on, and announces a request whose header is at `offset`."""
        # Answers that nobody waited for.
        self.arrived = [a for a in self.arrived if not _is_answer(a, chunk)]
        address, own = self.chunks[chunk]
        imm = wire.request(chunk, offset, self.geometry.depth)
        return self.ends[cid].post(verbs.WRITE_IMM, data, address + start, own if key is None else key, imm)

    def announce(self, imm, cid=0):
        """Sends an immediate alone."""
        return self.ends[cid].post(verbs.WRITE_IMM, imm=imm)

    def answer(self, chunk, seconds=SOON):
        """Waits for the answer in a chunk: 0 or the number of an error."""
        arrival = self.wait_for(lambda a: _is_answer(a, chunk), f"the answer in chunk {chunk}", seconds)
        return arrival.imm >> 19 & 0x1FF

    def target(self, length):
        """Where an answer may be written to."""
        return self.memory.addr, self.memory.rkey, length

    def write(self, message, data=b"", cid=0):
        """A request that sends data; 0 or the number of an error."""
        chunk = self.chunk()
        body = data + message
        self.put(chunk, body + wire.write_header(len(message)), len(body), cid=cid)
        return self.answer(chunk)

    def read(self, message, room=0, length=None, cid=0):
        """A request for data, and the data: `room` bytes, all of them offered unless `length` says otherwise."""
        chunk = self.chunk()
        length = room if length is None else length
        self.memory.map[: max(length, room)] = b"\x55" * max(length, room)
        header = wire.read_header(len(message), self.target(length) if length else None)
        self.put(chunk, message + header, room + len(message), start=room, cid=cid)
        code = self.answer(chunk)
        return code, self.memory.map[: max(length, room)]

    def greet(self, version=2):
        """SESS_INFO; the version of the answer."""
        code, data = self.read(wire.session_info(version), 36)
        assert (code, data[0]) == (0, wire.SESS_INFO_RSP), f"SESS_INFO: {code}"
        return data[4]

    def open(self, name, mode=wire.RW):
        """OPEN; (0, what the device is like) or (number of the error, None)."""
        code, data = self.read(wire.open_device(name.encode() if isinstance(name, str) else name, mode), 56)
        return code, None if code else wire.read_open_response(data)

    def must_open(self, name, mode=wire.RW):
        """OPEN of what can be opened; the number of the device."""
        code, device = self.open(name, mode)
        assert code == 0, f"OPEN {name}: {os.strerror(code)}"
        return device.id
