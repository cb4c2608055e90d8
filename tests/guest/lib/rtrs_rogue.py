# SPDX-License-Identifier: GPL-2.0
"""A server of RTRS and RNBD in user space. As it is it serves well; scenarios replace parts of it.

It runs in a thread of its own. What a part raises ends that thread and is raised again by `check`.
"""

import threading
from collections import namedtuple

import rtrs_wire as wire
import verbs
from rnbd import ADDRESS

PORT = 1235
Request = namedtuple("Request", "cid chunk is_read message data target flags")
# What `connecting` can answer but bytes, which accept.
Reject = namedtuple("Reject", "data")
SILENCE = None


class Rogue:
    """A server with one disk of zeros, made of nothing."""

    depth, io_size, hdr_size = 16, 61440, 4096
    flags = 0
    sectors = 2048

    def __init__(self, **parts):
        for name, part in parts.items():
            setattr(self, name, part.__get__(self) if callable(part) else part)
        self.ends = {}
        self.cids = {}
        self.memory = None
        self.asked = []
        self.failure = None
        self.over = threading.Event()
        self.channel = verbs.Channel()
        self.listener = verbs.listen(self.channel, ADDRESS, PORT)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends it; connections that are left are ended, too."""
        self.over.set()
        self.thread.join(30)
        assert not self.thread.is_alive(), "the hostile server hangs"
        for end in self.ends.values():
            end.close()
        verbs.destroy(self.listener)
        self.channel.close()

    def check(self):
        """Raises what went wrong in the thread."""
        if self.failure:
            raise self.failure

    # Parts that scenarios replace.
    def connecting(self, request):
        """The answer to a connection request."""
        return wire.accept(self.depth, self.io_size, self.hdr_size, self.flags)

    def informing(self, end):
        """The message about the chunks, or None for silence."""
        return wire.info_response(self.descriptors())

    def answering(self, end, request):
        """Answers a request."""
        kind = request.message[0] if request.message else 255
        if kind == wire.SESS_INFO:
            self.reply(end, request, self.session_info())
        elif kind == wire.OPEN:
            self.reply(end, request, self.open_response())
        elif kind == wire.IO:
            self.io(end, request)
        else:
            self.reply(end, request)

    def session_info(self):
        """The answer to SESS_INFO."""
        return wire.session_info(kind=wire.SESS_INFO_RSP)

    def open_response(self):
        """The answer to OPEN."""
        return wire.open_response(sectors=self.sectors)

    def io(self, end, request):
        """Answers a request for the disk."""
        self.reply(end, request, bytes(request.target[2]) if request.is_read and request.target else b"")

    # What parts are made of.
    def descriptors(self):
        """One piece of memory for all chunks; with new keys, one for each."""
        size = self.io_size + self.hdr_size
        if self.flags & wire.NEW_RKEY:
            return [(self.memory.addr + size * n, self.memory.rkey, size) for n in range(self.depth)]
        return [(self.memory.addr, self.memory.rkey, size * self.depth)]

    def reply(self, end, request, data=b"", code=0, chunk=None):
        """A good answer, with data that are written before."""
        if data and request.target and code == 0:
            address, key, length = request.target
            end.post(verbs.WRITE, data[:length], address, key)
        kind = wire.RESPONSE
        if request.flags & wire.NEED_INVAL and request.target:
            end.post(verbs.SEND_INV, imm=request.target[1])
            kind = wire.RESPONSE_INV
        self.complete(end, wire.response(request.chunk if chunk is None else chunk, code, kind))

    def complete(self, end, imm):
        """Sends an immediate as the form of answers is."""
        if self.flags & wire.NEW_RKEY:
            end.post(verbs.SEND_IMM, wire.key_message(imm & 0x7FFFF, self.memory.rkey), imm=imm)
        else:
            end.post(verbs.WRITE_IMM, imm=imm)

    def hang_up(self):
        """Ends all connections."""
        for end in self.ends.values():
            end.disconnect()

    # The thread.
    def _run(self):
        try:
            while not self.over.is_set():
                self._events()
                for end in list(self.ends.values()):
                    for arrival in end.poll():
                        self._arrived(end, arrival)
        except Exception as error:
            self.failure = error

    def _events(self):
        event = self.channel.event(0.002)
        if event is None:
            return
        if event.kind == verbs.CONNECT_REQUEST:
            self._request(verbs.End(event.id), event.data)
        elif event.kind == verbs.DISCONNECTED and event.id in self.ends:
            self.ends[event.id].disconnect()
        elif event.kind in (verbs.CONNECT_ERROR, verbs.UNREACHABLE, verbs.REJECTED) and event.id in self.ends:
            self._forget(event.id)

    def _forget(self, pointer):
        self.cids.pop(pointer, None)
        self.ends.pop(pointer).close()

    def _request(self, end, data):
        request = wire.read_connect(data)
        answer = self.connecting(request)
        self.cids[end.id] = request.cid
        self.ends[end.id] = end
        if answer is SILENCE:
            return
        try:
            self._respond(end, request, answer)
        except OSError:
            # The client has given up meanwhile.
            self._forget(end.id)

    def _respond(self, end, request, answer):
        if isinstance(answer, Reject):
            verbs.reject(end, answer.data)
            self._forget(end.id)
            return
        if request.cid == 0:
            # What was there before belongs to connections that are over.
            size = max(1, min((self.io_size + self.hdr_size) * self.depth, 1 << 21))
            self.memory = end.memory(size)
        end.equip(64, 272 if request.cid == 0 else 64, depth=256)
        verbs.accept(end, answer)

    def _arrived(self, end, arrival):
        if arrival.imm is None:
            self.asked.append(wire.INFO_REQ)
            message = self.informing(end)
            if message is not None:
                end.post(verbs.SEND, message)
        elif arrival.imm >> 28 == wire.HEARTBEAT:
            end.post(verbs.WRITE_IMM, imm=wire.immediate(wire.HEARTBEAT_ACK))
        elif arrival.imm >> 28 == wire.REQUEST:
            self.answering(end, self._read(end, arrival.imm))

    def _read(self, end, imm):
        bits = 28 - (self.depth - 1).bit_length()
        chunk, offset = imm >> bits, imm & (1 << bits) - 1
        start = chunk * (self.io_size + self.hdr_size)
        bytes_ = self.memory.map[start : start + self.io_size + self.hdr_size]
        is_read, usr_len, flags, target = wire.read_request(bytes_[offset:])
        message, data = bytes_[offset - usr_len : offset], bytes_[: offset - usr_len]
        request = Request(self.cids[end.id], chunk, is_read, message, data, target, flags)
        self.asked.append((request.cid, chunk, message[:1]))
        return request
