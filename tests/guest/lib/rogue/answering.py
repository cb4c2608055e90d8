# SPDX-License-Identifier: GPL-2.0
"""A server that lets itself be mapped and then answers a request for data as none should.

The request ends, with an error or well, the client says why it drops the path, and the device can be unmapped.
"""

import errno
import time

import rnbd
import rtrs_wire as wire
import verbs
from cases import Cases, equal, eventually
from rogue.ground import few, tells, transfer
from rogue.serving import LINE, device, nothing_is_left, unmap_all
from rtrs_rogue import Rogue

CASES = Cases("answering")
ON = "rogue.*: the server sent what it must not on connection"
# How a request may end whose path is dropped: there is no other path.
LOST = ("EIO", "ENOLINK", "ETIMEDOUT", "ECONNABORTED")


def _read(write=False):
    """One request; the name of its error, or "success"."""
    try:
        transfer(device(), write, 0, bytes(4096))
        return "success"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))


class _Server(Rogue):
    """Answers well what is read while the device is being mapped, and then as none should."""

    def __init__(self, act, **parts):
        self.act, self.mapped = act, False
        super().__init__(**parts)

    def io(self, end, request):
        if self.mapped:
            self.act(self, end, request)
        else:
            super().io(end, request)

    def map(self):
        """Lets itself be mapped."""
        equal(rnbd.name_of(rnbd.try_map(LINE)), "success", "map_device")
        self.mapped = True


def _drops(what, pattern, act, ends=LOST, write=False, **parts):
    """`act(server, end, request)` answers; the client drops the path and says why."""

    def check():
        def attempt():
            with _Server(act, **parts) as rogue:
                rogue.map()
                try:
                    result = _read(write)
                    assert result in ends, f"the request ended with {result}"
                    eventually(lambda: device().show("state") == "closed\n", "the path is dropped", 10)
                finally:
                    unmap_all()
                rogue.check()

        tells(pattern, attempt)
        nothing_is_left()

    CASES.case(what, limit=60)(check)


def _goes_on(what, act, ends, **parts):
    """Likewise, but it is allowed."""

    def check():
        with _Server(act, **parts) as rogue:
            rogue.map()
            try:
                result = _read()
                assert result in ends, f"the request ended with {result}"
                equal(device().show("state"), "open\n")
            finally:
                unmap_all()
            rogue.check()
        nothing_is_left()

    CASES.case(what, limit=60)(check)


def _data(self, end, request):
    """Puts the data where they belong, without an answer."""
    if request.is_read:
        end.post(verbs.WRITE, bytes(request.target[2]), *request.target[:2])


for _chunk in few(16, 17, 0xFFFF, 0x7FFFF):
    _drops(f"N-38 for chunk {_chunk}, which is not there", "rogue.*: .*chunk.*",
           lambda self, end, request, chunk=_chunk: self.complete(end, wire.response(chunk)))
_drops("N-38 for a chunk in which nothing was asked", ON,
       lambda self, end, request: self.complete(end, wire.response((request.chunk + 1) % 16)))
_drops("N-38 twice", ON, lambda self, end, request: (self.reply(end, request, bytes(4096)),
                                                     self.complete(end, wire.response(request.chunk))),
       ends=("success", *LOST))
_drops("N-38 twice, with data", "rogue.*: connection [12] broke|" + ON,
       lambda self, end, request: [self.reply(end, request, bytes(4096)) for _ in range(2)], ends=("success", *LOST))
_drops("D33 on another connection", f"{ON} 0",
       lambda self, end, request: self.complete(next(e for e in self.ends.values() if self.cids[e.id] == 0),
                                                wire.response(request.chunk)))
for _kind in few(0, 3, 4, 5, 6, 7, 10, 15):
    _drops(f"N-33 with an immediate of type {_kind}", ON,
           lambda self, end, request, kind=_kind: self.complete(end, wire.immediate(kind, request.chunk)))
for _kind in (wire.HEARTBEAT, wire.HEARTBEAT_ACK):
    _drops(f"N-33 with an immediate of type {_kind} on an I/O connection", ON,
           lambda self, end, request, kind=_kind: self.complete(end, wire.immediate(kind)))
_drops("with a message", "rogue.*: connection [12]|" + ON,
       lambda self, end, request: end.post(verbs.SEND, bytes(8)))
_drops("with a message of no bytes", ON, lambda self, end, request: end.post(verbs.SEND))
_drops("with the invalidation of no key", "rogue.*: connection [12] broke|" + ON,
       lambda self, end, request: end.post(verbs.SEND_INV, imm=0x12345))
_drops("P-06 with data beyond the target", "rogue.*: connection [12]",
       lambda self, end, request: end.post(verbs.WRITE, bytes(8192), *request.target[:2]))
_drops("P-06 with data to another key", "rogue.*: connection [12]",
       lambda self, end, request: end.post(verbs.WRITE, bytes(64), request.target[0], request.target[1] ^ 0x55))
# The client takes the key away when the answer is there, and then the read is over.
_drops("with data when the read is over", "rogue.*: connection [12]",
       lambda self, end, request: (self.reply(end, request, bytes(4096)), time.sleep(1),
                                   end.post(verbs.WRITE, b"\xee" * 4096, *request.target[:2])),
       ends=("success",))
_drops("by hanging up", "rogue.*: connection [0-9]: ", lambda self, end, request: self.hang_up())

# Errors.
_goes_on("with error 5", lambda self, end, request: self.reply(end, request, code=5), ("EIO",))
_goes_on("with error 511", lambda self, end, request: self.reply(end, request, code=511), ("EIO",))
_goes_on("without data", lambda self, end, request: self.reply(end, request), ("success",))
_goes_on("with an invalidation that it was not asked for", lambda self, end, request: (
    _data(self, end, request), end.post(verbs.SEND_INV, imm=request.target[1]),
    self.complete(end, wire.response(request.chunk, kind=wire.RESPONSE_INV))), ("success",))

# Answers that bring a new key.
KEYS = {"flags": wire.NEW_RKEY}


def _key(what, pattern, message, imm=None):
    def act(self, end, request):
        _data(self, end, request)
        value = wire.response(request.chunk) if imm is None else imm(request)
        end.post(verbs.SEND_IMM, message(self, request), imm=value)

    _drops(f"new key: {what}", pattern, act, **KEYS)


_goes_on("new key: a good one", lambda self, end, request: self.reply(end, request, bytes(4096)), ("success",), **KEYS)
_key("7 bytes", "unexpected message of 7 bytes", lambda self, r: wire.key_message(r.chunk, 1)[:7])
_key("9 bytes", "rogue.*: connection [12] broke|rogue.*: connection [12]: ",
     lambda self, r: wire.key_message(r.chunk, 1) + b"\0")
_key("no bytes", "unexpected message of 0 bytes", lambda self, r: b"")
_key("type 3", "answer has type 3, it must be 4", lambda self, r: wire.key_message(r.chunk, 1, kind=3))
_key("of another chunk", "brings the key of chunk", lambda self, r: wire.key_message(r.chunk ^ 1, 1))
_key("of a chunk that is not there", "brings the key of chunk 65535", lambda self, r: wire.key_message(0xFFFF, 1))
_key("with a heartbeat", "unexpected message of 8 bytes", lambda self, r: wire.key_message(r.chunk, 1),
     lambda request: wire.immediate(wire.HEARTBEAT))
_drops("new key: none", "answer without a new key, though the server announced that it invalidates",
       lambda self, end, request: end.post(verbs.WRITE_IMM, imm=wire.response(request.chunk)), **KEYS)
_drops("new key: one where none was announced", "unexpected message of 8 bytes|connection [12] broke",
       lambda self, end, request: end.post(verbs.SEND_IMM, wire.key_message(request.chunk, 1),
                                           imm=wire.response(request.chunk)))
