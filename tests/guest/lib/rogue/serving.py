# SPDX-License-Identifier: GPL-2.0
"""A server that no client should meet, while one maps a device from it.

Mapping ends with an error, with a line in the log that says why, and nothing is left: no session, no device. A good
server can be mapped afterwards. What is mapped and then goes wrong is in `answering.py`.
"""

import contextlib
import errno
import itertools
import os
import signal
import subprocess
import time

import rnbd
import rtrs_wire as wire
from cases import SOAK, Cases, equal, eventually
from rogue.ground import SLOW, few, tells, transfer
from rtrs_rogue import PORT, SILENCE, Reject, Rogue

CASES = Cases("serving")
LINE = f"sessname=rogue path=ip:{rnbd.ADDRESS} dest_port={PORT} device_path=x"
ANSWER = "answer of the server: "
_looks = itertools.count()


def nothing_is_left():
    """No trace of the hostile server, and a good one is mapped; in a check not each time."""
    eventually(lambda: "rogue" not in rnbd.sessions(), "the end of the session", 10)
    assert not any(name.endswith("@rogue") for name in rnbd.mapped()), "a device is left"
    if not SOAK and next(_looks) % 5:
        return
    with rnbd.a_device("ram2", session="good") as device:
        transfer(device, False, 0, bytes(4096))
    eventually(lambda: "good" not in rnbd.sessions(), "the end of the good session", 10)


def unmap_all():
    """Unmaps what the hostile server has been able to have mapped."""
    for name, disk in rnbd.mapped().items():
        if name.endswith("@rogue"):
            rnbd.Device(disk).unmap("force")


def maps_not(what, want, pattern, **parts):
    """A server from which nothing can be mapped: the error, and what the client logs."""

    def check():
        with Rogue(**parts) as rogue:
            try:
                code = tells(pattern, lambda: rnbd.try_map(LINE))
            finally:
                unmap_all()
            rogue.check()
        equal(rnbd.name_of(code), want)
        nothing_is_left()

    CASES.case(what, limit=60)(check)


def _accepts(**fields):
    return lambda self, request: wire.accept(**fields)


# The answer that accepts.
def _answer(what, pattern, **fields):
    maps_not(f"accepts with {what}", "ECONNRESET", pattern, connecting=_accepts(**fields))


for _length in few(0, 6, 8, 12, 55):
    maps_not(f"accepts with {_length} bytes", "ECONNRESET", ANSWER,
             connecting=lambda self, request, length=_length: wire.accept(hdr_size=0)[:length])
_answer("another magic", ANSWER + "magic is 0xbd1b, it must be 0x1bbd", magic=0xBD1B)
_answer("version 1", ANSWER + "peer has version 1.0", version=0x0100)
_answer("version 3", ANSWER + "peer has version 3.1", version=0x0301)
_answer("an error", ANSWER + "connection was accepted with error -12", code=-12)
_answer("no chunks", ANSWER + "queue depth is 0, it must be at least 1", depth=0)
_answer("65535 large chunks", ANSWER + "65535 chunks of .* need more than the 28 bits", depth=65535)
for _size in few(0, 1, 4095):
    _answer(f"{_size} bytes of data", ANSWER + f"max_io_size is {_size}, it must be at least 4096", io_size=_size)
for _size in few(0, 511, 65537, 1 << 31, 0xFFFFFFFF):
    _answer(f"{_size} bytes of message", ANSWER + f"max_hdr_size is {_size}, it must be", hdr_size=_size)
_answer("sizes whose sum is 0", ANSWER + "", io_size=0xFFFFF000, hdr_size=4096)
_answer("chunks of 4 GiB", ANSWER + ".* need more than the 28 bits", io_size=0xFFFF0000, hdr_size=4096, depth=1)


# The answer that rejects.
def _rejects(what, want, data):
    maps_not(f"rejects {what}", want, f"connection 0 rejected: .*, {want}",
             connecting=lambda self, request: Reject(data))


_rejects("without a word", "ECONNRESET", b"")
_rejects("with half a word", "ECONNRESET", wire.accept(code=-5)[:5])
_rejects("with another magic", "ECONNRESET", wire.accept(code=-5, magic=1))
_rejects("with error 0", "ECONNRESET", wire.accept(code=0))
_rejects("with a positive error", "ECONNRESET", wire.accept(code=5))
_rejects("with error -32768", "ECONNRESET", wire.accept(code=-32768))
_rejects("with an error of the kernel's own", "ECONNRESET", wire.accept(code=-512))
_rejects("with EIO", "EIO", wire.accept(code=-5))
# The others are given up, and which of them the writer is waiting for is a matter of luck.
maps_not("rejects connection 1", frozenset(("EIO", "ECONNABORTED")), "connection 1 rejected: .*, EIO",
         connecting=lambda self, request: Reject(wire.accept(code=-5)) if request.cid == 1 else wire.accept())


# Where the chunks are.
def _informs(what, pattern, message, **parts):
    maps_not(f"information: {what}", "ECONNRESET", pattern, informing=message, **parts)


SIZE = Rogue.io_size + Rogue.hdr_size
_informs("nothing", "info response has 0 bytes", lambda self, end: b"")
_informs("7 bytes", "info response has 7 bytes", lambda self, end: wire.info_response([])[:7])
_informs("no descriptors", "info response has 0 descriptors, which does not divide 16",
         lambda self, end: wire.info_response([]))
_informs("65535 descriptors", "info response has 65535 descriptors",
         lambda self, end: wire.info_response(self.descriptors(), count=65535))
_informs("fewer descriptors than it says", "info response has 24 bytes, with 2 descriptors",
         lambda self, end: wire.info_response(self.descriptors(), count=2))
_informs("more descriptors than it says", "info response has 40 bytes, with 1 descriptors",
         lambda self, end: wire.info_response(self.descriptors() * 2, count=1))
_informs("3 descriptors", "info response has 3 descriptors, which does not divide 16",
         lambda self, end: wire.info_response([(4096, 1, SIZE)] * 3))
_informs("half of the chunks", "info response describes 8 chunks, there are 16",
         lambda self, end: wire.info_response([(4096, 1, SIZE * 4)] * 2))
_informs("twice the chunks", "info response describes 32 chunks, there are 16",
         lambda self, end: wire.info_response([(4096, 1, SIZE * 16)] * 2))
_informs("a sum of 4 GiB and the right rest", "info response describes|descriptor has",
         lambda self, end: wire.info_response([(4096, 1, 0xFFFF0000), (4096, 1, SIZE * 17)]))
_informs("descriptors of no bytes", "descriptor has 0 bytes", lambda self, end: wire.info_response([(4096, 1, 0)]))
_informs("half a chunk", f"descriptor has {SIZE // 2} bytes, it must be a multiple",
         lambda self, end: wire.info_response([(4096, 1, SIZE // 2)] * 16))
_informs("memory beyond the address space", "ends beyond the address space",
         lambda self, end: wire.info_response([(2**64 - SIZE, 1, SIZE * 16)]))
for _kind in few(0, 4, 65535):
    _informs(f"type {_kind}", f"message has type {_kind}, it must be 1",
             lambda self, end, kind=_kind: wire.info_response(self.descriptors(), kind=kind))
_informs("more than there can be", "rogue.*: connection 0 broke|connection 0: ", lambda self, end: bytes(40000))


def _instead(what, want, pattern, act, **parts):
    """Something else than the information."""
    maps_not(f"instead of information: {what}", want, pattern, informing=lambda self, end: act(self, end), **parts)


FORBIDDEN = "the server sent what it must not on connection 0"
_instead("an answer", "ECONNRESET", FORBIDDEN, lambda self, end: self.complete(end, wire.response(3)))
_instead("a new key", "ECONNRESET", FORBIDDEN, lambda self, end: self.complete(end, wire.response(3)), flags=wire.NEW_RKEY)
_instead("an immediate of type 5", "ECONNRESET", FORBIDDEN, lambda self, end: self.complete(end, wire.immediate(5)))


def _hangs_up():
    with Rogue(informing=lambda self, end: self.hang_up()) as rogue:
        # The client takes it for a server that has not forgotten its last session yet, and tries some more.
        code = rnbd.try_map(LINE)
        rogue.check()
    assert rnbd.name_of(code) in ("EBUSY", "ECONNRESET"), rnbd.name_of(code)
    nothing_is_left()


if SOAK:
    # It takes a minute.
    CASES.case("instead of information: it hangs up", limit=180)(_hangs_up)


# SESS_INFO and OPEN.
def _greets(what, want, **parts):
    maps_not(f"SESS_INFO: {what}", want, "session rogue cannot be opened", **parts)


_greets("another type", "EPROTO", session_info=lambda self: wire.session_info(kind=5))
_greets("no data", "EPROTO", session_info=lambda self: b"")
_greets("refused with EPERM", "EPERM", answering=lambda self, end, request: self.reply(end, request, code=1))


def _opens(what, want, pattern, **fields):
    maps_not(f"OPEN: {what}", want, pattern, open_response=lambda self: wire.open_response(**fields))


_opens("another type", "EINVAL", "x@rogue.*: refused: open response has type 2", kind=2)
for _size in few(0, 1, 3, 511, 513, 65535):
    _opens(f"logical blocks of {_size} bytes", "EINVAL", f"refused: logical block size is {_size}", logical=_size)
for _size in few(3, 511, 65535):
    _opens(f"physical blocks of {_size} bytes", "EINVAL", f"refused: physical block size is {_size}", physical=_size)
for _sectors in few(1 << 55, 2**63, 2**64 - 1):
    _opens(f"{_sectors} sectors", "EINVAL", f"refused: device has {_sectors} sectors", sectors=_sectors)
maps_not("OPEN: refused with ENOENT", "ENOENT", "x@rogue.*: the server does not open it",
         answering=lambda self, end, request: self.reply(end, request, self.session_info())
         if request.message[0] == wire.SESS_INFO else self.reply(end, request, code=2))
maps_not("OPEN: no data", "EINVAL", "refused: open response has type 0", open_response=lambda self: b"")


@CASES.case("OPEN: limits that make no sense are as good as none", limit=60)
def _():
    many = 0xFFFFFFFF
    for fields in (
        {"hw_sectors": 0, "segments": 0},
        {"hw_sectors": many, "segments": 65535, "zeroes": many, "discard": many, "granularity": 3, "alignment": 7},
        {"discard": 1, "granularity": 0, "alignment": many, "erase": 65535, "cache": 255, "rotational": 255},
        {"id": many, "sectors": 0},
    ):
        with Rogue(open_response=lambda self, fields=fields: wire.open_response(**fields)) as rogue:
            code = rnbd.try_map(LINE)
            assert rnbd.name_of(code) in ("success", "EINVAL"), rnbd.name_of(code)
            if code == 0:
                device().unmap()
            rogue.check()
    nothing_is_left()


def device():
    """The device of the hostile server."""
    (disk,) = (disk for name, disk in rnbd.mapped().items() if name.endswith("@rogue"))
    rnbd.make_node(disk)
    return rnbd.Device(disk)


# Silence. The words of `map_device` are written by a program, which is killed.
@contextlib.contextmanager
def _writer():
    program = subprocess.Popen(["sh", "-c", f"echo '{LINE}' > {rnbd.CLIENT}/map_device"], stderr=subprocess.DEVNULL)
    try:
        yield program
    finally:
        program.kill()
        program.wait()


def _silence(what, **parts):
    def killed():
        with Rogue(**parts) as rogue, _writer() as writer:
            time.sleep(1.0 * SLOW)
            assert writer.poll() is None, "the writer did not wait"
            writer.send_signal(signal.SIGKILL)
            begin = time.monotonic()
            writer.wait(120)
            took = time.monotonic() - begin
            assert took < 5 * SLOW, f"the writer was killed and lived for {took:.1f} s"
            rogue.check()
        nothing_is_left()

    def patient():
        begin = time.monotonic()
        with Rogue(**parts) as rogue:
            code = rnbd.try_map(LINE)
            rogue.check()
        took = time.monotonic() - begin
        assert code in (errno.ETIMEDOUT, errno.ECONNRESET, errno.EHOSTUNREACH), os.strerror(code)
        assert 20 < took < 75, f"it took {took:.0f} s"
        nothing_is_left()

    CASES.case(f"silence {what}: the writer is killed", limit=60)(killed)
    if SOAK:
        CASES.case(f"silence {what}: the writer waits", limit=120)(patient)


_silence("instead of accepting", connecting=lambda self, request: SILENCE)
_silence("instead of accepting connection 1",
         connecting=lambda self, request: SILENCE if request.cid == 1 else wire.accept())
_silence("instead of information", informing=lambda self, end: None)
_silence("instead of an answer to SESS_INFO", answering=lambda self, end, request: None)
_silence("instead of an answer to OPEN",
         answering=lambda self, end, request: self.reply(end, request, self.session_info())
         if request.message[0] == wire.SESS_INFO else None)
