# SPDX-License-Identifier: GPL-2.0
"""Socket options and ioctls: sections 1.9 and 1.13 of the reference; R-25."""

import ctypes
import fcntl
import struct

from address import sin
from api import lan
from cases import Cases, equal, fails
from rdssock import (
    CONG_MONITOR,
    FREE_MR,
    GET_MR,
    GET_MR_FOR_DEST,
    RECVERR,
    RXPATH_LATENCY,
    SIOCRDSGETTOS,
    SIOCRDSSETTOS,
    SOL_RDS,
    TCP,
    TIMESTAMP_NEW,
    TRANSPORT,
    Sock,
    call,
)

CASES = Cases("options")


def _fresh(action):
    def check():
        with Sock() as sock:
            return action(sock)

    return check


def _bound(action, address=lan.A):
    def check():
        with Sock.at(address) as sock:
            return action(sock)

    return check


# Unknown ones.
for number in (0, 4, 9, 11, 12, 28, 30, 62, 64, 9999, 10000, 10022, -1):
    CASES.row(f"set {number}", _fresh(lambda s, n=number: s.set(n, 1)), "ENOPROTOOPT")
for number in (0, 1, 2, 3, 4, 6, 7, 9, 10, 11, 29, 63, 9999, 10022, -1):
    CASES.row(f"get {number}", _fresh(lambda s, n=number: s.get(n)), "ENOPROTOOPT")
for level in (0, 6, 41, 275, 277):
    CASES.row(f"set at level {level}", _fresh(lambda s, n=level: s.set(RECVERR, 1, n)), "ENOPROTOOPT")
    CASES.row(f"get at level {level}", _fresh(lambda s, n=level: s.get(RECVERR, 4, n)), "ENOPROTOOPT")
    CASES.row(f"get a snapshot at level {level}", _fresh(lambda s, n=level: s.get(10000, 0, n)), "ENOPROTOOPT")

# Booleans.
for what, option in (("RECVERR", RECVERR), ("CONG_MONITOR", CONG_MONITOR)):
    for size in (0, 1, 3):
        CASES.row(f"{what} of {size} bytes", _fresh(lambda s, o=option, n=size: s.set(o, bytes(n))), "EINVAL")
    for size in (4, 5, 8, 200):
        CASES.row(f"{what} of {size} bytes", _fresh(lambda s, o=option, n=size: s.set(o, bytes(n))), "ok")
    for value in (0, 1, 2, -1, 2**31 - 1):
        CASES.row(f"{what} {value}", _fresh(lambda s, o=option, v=value: s.set(o, v)), "ok")
    CASES.row(
        f"{what} from an unmapped address",
        _fresh(lambda s, o=option: call("setsockopt", s.fd, SOL_RDS, o, ctypes.c_void_p(4096), 4)),
        "EFAULT",
    )
CASES.row("RECVERR is off at first", _fresh(lambda s: s.get_int(RECVERR)), 0)
for value, read in ((1, 1), (0, 0), (2, 1), (-1, 1), (256, 1)):
    CASES.row(f"RECVERR {value} reads", _fresh(lambda s, v=value: (s.set(RECVERR, v), s.get_int(RECVERR))[1]), read)
CASES.row(
    "CONG_MONITOR on twice, off twice", _fresh(lambda s: [s.set(CONG_MONITOR, v) for v in (1, 1, 0, 0)] and None), "ok"
)

for what, option in (("RECVERR", RECVERR), ("TRANSPORT", TRANSPORT)):
    for size in (0, 1, 3):
        CASES.row(f"get {what} into {size} bytes", _fresh(lambda s, o=option, n=size: s.get(o, n)), "EINVAL")
    for size in (4, 5, 100):
        CASES.row(f"get {what} into {size} bytes gives", _fresh(lambda s, o=option, n=size: s.get(o, n)[2]), 4)


@CASES.case("get into an unmapped address")
def _():
    with Sock() as sock:
        for option in (RECVERR, TRANSPORT):
            length, nowhere = ctypes.c_int(4), ctypes.c_void_p(4096)
            for where in ((nowhere, ctypes.byref(length)), (ctypes.byref(length), nowhere)):
                fails("EFAULT", lambda o=option, w=where: call("getsockopt", sock.fd, SOL_RDS, o, *w))


@CASES.case("the length is written back on errors, too")
def _():
    with Sock() as sock:
        for option in (RECVERR, 4, 99):
            length = ctypes.c_int(3)
            buffer = ctypes.create_string_buffer(4)
            try:
                call("getsockopt", sock.fd, SOL_RDS, option, buffer, ctypes.byref(length))
            except OSError:
                pass
            equal(length.value, 3)


# memory regions, on sockets that can have none.
IOVEC = struct.pack("=QQ", 4096, 4096)
MR, FREE = IOVEC + bytes(16), bytes(16)
FOR_DEST = sin(lan.B, 9).ljust(128, b"\0") + MR
for what, option, argument in (("GET_MR", GET_MR, MR), ("GET_MR_FOR_DEST", GET_MR_FOR_DEST, FOR_DEST)):
    CASES.row(f"R-25 {what}, not bound", _fresh(lambda s, o=option, a=argument: s.set(o, a)), "ENOTCONN")
    CASES.row(f"R-25 {what} on TCP", _bound(lambda s, o=option, a=argument: s.set(o, a)), "EOPNOTSUPP")
    CASES.row(
        f"R-25 {what} on loopback", _bound(lambda s, o=option, a=argument: s.set(o, a), "127.0.0.1"), "EOPNOTSUPP"
    )
    CASES.row(
        f"R-25 {what}, transport chosen, not bound",
        _fresh(lambda s, o=option, a=argument: (s.set(TRANSPORT, TCP), s.set(o, a))[1]),
        "ENOTCONN",
    )
    for size in (0, len(argument) - 1, len(argument) + 1, 400):
        CASES.row(f"R-25 {what} of {size} bytes", _bound(lambda s, o=option, n=size: s.set(o, bytes(n))), "EINVAL")
        CASES.row(
            f"R-25 {what} of {size} bytes, not bound", _fresh(lambda s, o=option, n=size: s.set(o, bytes(n))), "EINVAL"
        )
    CASES.row(
        f"R-25 {what} from an unmapped address",
        _bound(lambda s, o=option, a=argument: call("setsockopt", s.fd, SOL_RDS, o, ctypes.c_void_p(4096), len(a))),
        "EFAULT",
    )
for what, make in (("not bound", _fresh), ("on TCP", _bound), ("on loopback", lambda f: _bound(f, "127.0.0.1"))):
    CASES.row(f"R-25 FREE_MR of all, {what}", make(lambda s: s.set(FREE_MR, FREE)), "EINVAL")
    CASES.row(f"R-25 FREE_MR of an unknown one, {what}", make(lambda s: s.set(FREE_MR, b"\7" * 8 + bytes(8))), "EINVAL")
for size in (0, 8, 15, 17):
    CASES.row(f"R-25 FREE_MR of {size} bytes", _bound(lambda s, n=size: s.set(FREE_MR, bytes(n))), "EINVAL")

# Type of service.
CASES.row("TOS is 0 at first", _fresh(lambda s: s.tos()), 0)
CASES.row("set TOS without a transport", _fresh(lambda s: s.tos(4)), "ENOTTY")
CASES.row("set TOS on loopback", _bound(lambda s: s.tos(4), "127.0.0.1"), "ENOTTY")
CASES.row("set TOS on TCP", _bound(lambda s: s.tos(4)), "ok")
CASES.row("set TOS with the transport chosen", _fresh(lambda s: (s.set(TRANSPORT, TCP), s.tos(9))[1]), "ok")
# TCP maps every value to 0, so another may be set until a message was sent.
CASES.row("TOS on TCP stays 0", _bound(lambda s: (s.tos(4), s.tos(255), s.tos())[2]), 0)
CASES.row("set TOS after sending", _bound(lambda s: (s.send(b"x", (lan.A, 9)), s.tos(4))[1]), "EINVAL")
for what, request in (("set", SIOCRDSSETTOS), ("get", SIOCRDSGETTOS)):
    CASES.row(f"{what} TOS at an unmapped address", _bound(lambda s, r=request: fcntl.ioctl(s.fd, r, 4096)), "EFAULT")
CASES.row(
    "set TOS at an unmapped address without a transport",
    _fresh(lambda s: fcntl.ioctl(s.fd, SIOCRDSSETTOS, 4096)),
    "EFAULT",
)


@CASES.case("options of one socket do not touch another")
def _():
    with Sock() as one, Sock() as two:
        one.set(RECVERR, 1)
        one.set(TRANSPORT, TCP)
        one.set(RXPATH_LATENCY, bytes([1, 0, 0, 0]))
        one.set(TIMESTAMP_NEW, 1)
        equal((two.get_int(RECVERR), two.get_int(TRANSPORT)), (0, -1))
