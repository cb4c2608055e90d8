# SPDX-License-Identifier: GPL-2.0
"""Creation and the generic calls: section 1.1 of the reference."""

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

import lab
from address import sin
from api import lan
from cases import Cases, equal, fails
from rdssock import AF_RDS, GAP, IB, NONE, SO_ZEROCOPY, TCP, TRANSPORT, Sock, call

before = Cases("load")
CASES = Cases("create")


@before.case("no family before the module is there")
def _():
    fails("EAFNOSUPPORT", Sock)


@before.case("the transport option loads its transport")
def _():
    lab.load("rds")
    assert not lab.loaded("rds_tcp")
    with Sock() as sock:
        equal(sock.get_int(TRANSPORT), NONE)
        fails("EADDRNOTAVAIL", lambda: sock.bind(sin(lan.A, 4000)))
        sock.set(TRANSPORT, TCP)
        equal(sock.get_int(TRANSPORT), TCP)
        assert lab.loaded("rds_tcp")
        equal(lab.references("rds_tcp"), 1)
    lab.references_settle("rds_tcp", 0)


@before.case("unload and load again")
def _():
    lab.unload()
    fails("EAFNOSUPPORT", Sock)
    lab.load("rds_tcp")


@before.case("a transport that there is not cannot be had", c="there is rds_rdma")
def _():
    with Sock() as sock:
        for transport in (GAP, IB):
            fails("ENOPROTOOPT", lambda transport=transport: sock.set(TRANSPORT, transport))
        equal(sock.get_int(TRANSPORT), NONE)


for kind in ("SEQPACKET", "DGRAM", "STREAM", "RAW", "RDM"):
    for protocol in (0, 1, 17, 255):
        CASES.row(
            f"SOCK_{kind} protocol {protocol}",
            lambda kind=kind, protocol=protocol: Sock(getattr(socket, f"SOCK_{kind}"), protocol).close(),
            "ok" if (kind, protocol) == ("SEQPACKET", 0) else "ESOCKTNOSUPPORT",
        )


def _unprivileged(action):
    """Runs `action` as nobody, in a process of its own; its exit status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            action()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@CASES.case("no rights are needed")
def _():
    def use():
        with lan.here() as one, lan.here() as two:
            one.send(b"x", two.address)
            equal(two.recv().data, b"x")

    equal(_unprivileged(use), 0)


def _with(action):
    def check():
        with Sock() as sock:
            return action(sock)

    return check


CASES.row("listen", _with(lambda s: call("listen", s.fd, 5) and None), "EOPNOTSUPP")
CASES.row("accept", _with(lambda s: call("accept", s.fd, None, None)), "EOPNOTSUPP")
CASES.row("shutdown", _with(lambda s: call("shutdown", s.fd, 2)), "EOPNOTSUPP")
CASES.row(
    "socketpair", lambda: call("socketpair", AF_RDS, socket.SOCK_SEQPACKET, 0, (ctypes.c_int * 2)()), "EOPNOTSUPP"
)


def _mmap(sock):
    function = ctypes.CDLL(None, use_errno=True).mmap
    function.restype = ctypes.c_void_p
    if function(None, ctypes.c_size_t(4096), 1, 1, sock.fd, ctypes.c_long(0)) == 2**64 - 1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


CASES.row("mmap", _with(_mmap), "ENODEV")
for name, number in (("FIONREAD", 0x541B), ("SIOCOUTQ", 0x5411), ("an unknown ioctl", 0x89EF)):
    CASES.row(name, _with(lambda s, n=number: fcntl.ioctl(s.fd, n, b"\0" * 4)), "ENOTTY")
for name, level, option in (
    ("SO_REUSEADDR", socket.SOL_SOCKET, socket.SO_REUSEADDR),
    ("SO_ZEROCOPY", socket.SOL_SOCKET, SO_ZEROCOPY),
    ("SO_PRIORITY", socket.SOL_SOCKET, socket.SO_PRIORITY),
):
    CASES.row(f"set {name}", _with(lambda s, a=level, b=option: s.set(b, 1, a)), "ok")
CASES.row("SO_ERROR", _with(lambda s: s.get_int(socket.SO_ERROR, socket.SOL_SOCKET)), 0)
CASES.row("SO_DOMAIN", _with(lambda s: s.get_int(39, socket.SOL_SOCKET)), AF_RDS)
CASES.row("SO_TYPE", _with(lambda s: s.get_int(socket.SO_TYPE, socket.SOL_SOCKET)), socket.SOCK_SEQPACKET)


@CASES.case("SO_REUSEADDR does not share a port")
def _():
    with lan.here() as one, Sock() as two:
        for sock in (one, two):
            sock.set(socket.SO_REUSEADDR, 1, socket.SOL_SOCKET)
        fails("EADDRINUSE", lambda: two.bind(sin(lan.A, one.port)))


@CASES.case("a row in /proc/net/protocols")
def _():
    rows = [line.split() for line in Path("/proc/net/protocols").read_text().splitlines()]
    assert any(row[0] == "RDS" for row in rows), "no RDS row"


def _write(vector):
    with lan.here() as one, lan.here() as two:
        one.connect(sin(lan.A, two.port))
        count = os.writev(one.fd, [b"ab", b"cd"]) if vector else os.write(one.fd, b"abcd")
        equal(os.read(two.fd, 100), b"abcd")
        return count


CASES.row("write and read", lambda: _write(False), 4, c="EOPNOTSUPP")
CASES.row("writev and read", lambda: _write(True), 4, c="EOPNOTSUPP")


@CASES.case("read of a part drops the rest")
def _():
    with lan.here() as one, lan.here() as two:
        one.send(b"abcdef", two.address)
        one.send(b"next", two.address)
        equal(os.read(two.fd, 3), b"abc")
        equal(os.readv(two.fd, [bytearray(2), bytearray(9)]), 4)


@CASES.case("a thousand sockets come and go")
def _():
    held = [Sock() for _ in range(1000)]
    for sock in held:
        sock.close()


@CASES.case("many bound sockets")
def _():
    # Sockets are freed a little after they are closed.
    lab.references_settle("rds_tcp", 0)
    held = [lan.here() for _ in range(500)]
    equal(len({sock.port for sock in held}), 500)
    equal(lab.references("rds_tcp"), 500)
    for sock in held:
        sock.close()
    lab.references_settle("rds_tcp", 0)


@CASES.case("close-on-exec and non-blocking creation flags")
def _():
    with Sock(socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC) as sock:
        assert fcntl.fcntl(sock.fd, fcntl.F_GETFL) & os.O_NONBLOCK
        assert fcntl.fcntl(sock.fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
        fails("EAGAIN", sock.recv)


@CASES.case("negative option length")
def _():
    with Sock() as sock:
        length = ctypes.c_int(-1)
        fails("EINVAL", lambda: call("getsockopt", sock.fd, 276, 5, struct.pack("i", 0), ctypes.byref(length)))
