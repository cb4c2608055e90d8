# SPDX-License-Identifier: GPL-2.0
"""sendmsg: the order of its checks, control messages, bad memory; section 1.5 of the reference; R-19, R-21, R-23, R-31."""

import ctypes
import itertools
import mmap
import os
import struct

import lab
import snapshot
from address import sin, sin6
from api import lan
from cases import Cases, equal, fails, outcome
from rdssock import (
    CMSG_ATOMIC_CSWP,
    CMSG_ATOMIC_FADD,
    CMSG_MASKED_CSWP,
    CMSG_MASKED_FADD,
    CMSG_RDMA_ARGS,
    CMSG_RDMA_DEST,
    CMSG_RDMA_MAP,
    CMSG_ZCOPY_COOKIE,
    MSG_CONFIRM,
    MSG_DONTROUTE,
    MSG_DONTWAIT,
    MSG_EOR,
    MSG_FASTOPEN,
    MSG_MORE,
    MSG_NOSIGNAL,
    MSG_OOB,
    MSG_ZEROCOPY,
    SO_ZEROCOPY,
    Sock,
    cmsg,
)

CASES = Cases("send")
MIB = 1 << 20
TO = (lan.A, 9)


def _bound(action, address=lan.A):
    def check():
        with Sock.at(address) as sock:
            return action(sock)

    return check


def _fresh(action):
    def check():
        with Sock() as sock:
            return action(sock)

    return check


def _big(action):
    def check():
        with Sock.at(lan.A) as sock:
            sock.buffers(send=4 * MIB)
            return action(sock)

    return check


# Flags.
for what, flags, want, c in (
    ("no flag", 0, 1, 1),
    ("MSG_DONTWAIT", MSG_DONTWAIT, 1, 1),
    ("MSG_NOSIGNAL", MSG_NOSIGNAL, 1, "EOPNOTSUPP"),
    ("MSG_EOR", MSG_EOR, 1, "EOPNOTSUPP"),
    ("MSG_NOSIGNAL and MSG_DONTWAIT", MSG_NOSIGNAL | MSG_DONTWAIT, 1, "EOPNOTSUPP"),
    ("MSG_MORE", MSG_MORE, "EOPNOTSUPP", "EOPNOTSUPP"),
    ("MSG_OOB", MSG_OOB, "EOPNOTSUPP", "EOPNOTSUPP"),
    ("MSG_DONTROUTE", MSG_DONTROUTE, "EOPNOTSUPP", "EOPNOTSUPP"),
    ("MSG_CONFIRM", MSG_CONFIRM, "EOPNOTSUPP", "EOPNOTSUPP"),
    ("MSG_FASTOPEN", MSG_FASTOPEN, "EOPNOTSUPP", "EOPNOTSUPP"),
):
    CASES.row(what, _bound(lambda s, f=flags: s.send(b"x", TO, f)), want, c=c)

# Which check comes first.
BROKEN = cmsg(CMSG_RDMA_DEST, b"\0" * 8, length=8)
UNKNOWN = cmsg(99, b"\0" * 8)
BAD_NAME = sin("0.0.0.0", 9)
CASES.row("order: flag before name", _fresh(lambda s: s.send(b"x", BAD_NAME, MSG_OOB)), "EOPNOTSUPP")
CASES.row("order: name before not bound", _fresh(lambda s: s.send(b"x", BAD_NAME)), "EINVAL")
CASES.row("order: not bound before control", _fresh(lambda s: s.send(b"x", TO, control=BROKEN)), "ENOTCONN")
CASES.row("order: family before control", _bound(lambda s: s.send(b"x", sin6(lan.B6, 9), control=BROKEN)), "EOPNOTSUPP")
CASES.row(
    "order: malformed control before size",
    _big(lambda s: s.send(bytes(MIB + 1), TO, control=BROKEN)),
    "EINVAL",
)
CASES.row(
    "order: size before unknown control", _big(lambda s: s.send(bytes(MIB + 1), TO, control=UNKNOWN)), "EMSGSIZE"
)
CASES.row(
    "order: unknown control before memory", _bound(lambda s: s.send(iov=[(1, 9)], to=TO, control=UNKNOWN)), "EINVAL"
)
CASES.row("order: size before memory", _big(lambda s: s.send(iov=[(1, MIB + 1)], to=TO)), "EMSGSIZE")
CASES.row("not bound", _fresh(lambda s: s.send(b"x", TO)), "ENOTCONN")
CASES.row("no destination", _bound(lambda s: s.send(b"x")), "ENOTCONN")
CASES.row("connected, not bound", _fresh(lambda s: (s.connect(sin(lan.A, 9)), s.send(b"x"))[1]), "ENOTCONN")
CASES.row("connected", _bound(lambda s: (s.connect(sin(lan.A, 9)), s.send(b"x"))[1]), 1)
CASES.row("to a port nobody has", _bound(lambda s: s.send(b"x", TO)), 1)
CASES.row("to an address nobody has", _bound(lambda s: s.send(b"x", (lan.NOBODY, 9))), 1)

# Sizes.
CASES.row("empty message", _bound(lambda s: s.send(b"", TO)), 0)
CASES.row("default limit", _bound(lambda s: s.send(bytes(106496), TO)), 106496)
CASES.row("one byte over the default limit", _bound(lambda s: s.send(bytes(106497), TO)), "EMSGSIZE")
CASES.row("1 MiB", _big(lambda s: s.send(bytes(MIB), TO)), MIB)
CASES.row("1 MiB and one byte", _big(lambda s: s.send(bytes(MIB + 1), TO)), "EMSGSIZE")
CASES.row("1024 pieces", _bound(lambda s: s.send(iov=_pieces(1024), to=TO)), 1024)
CASES.row("1025 pieces", _bound(lambda s: s.send(iov=_pieces(1025), to=TO)), "EMSGSIZE")
CASES.row("no piece", _bound(lambda s: s.send(iov=[], to=TO)), 0)

_KEEP = ctypes.create_string_buffer(8192)


def _pieces(count):
    return [(ctypes.addressof(_KEEP) + n, 1) for n in range(count)]


# Memory of the caller.
KERNEL = 0xFFFF888000000000
for what, iov in (
    ("NULL", [(0, 100)]),
    ("an unmapped address", [(4096, 100)]),
    ("a kernel address", [(KERNEL, 100)]),
    ("the last page", [(2**64 - 4096, 100)]),
    ("a page of a kernel text", [(0xFFFFFFFF81000000, 4096)]),
    ("a good piece, then a bad one", [(ctypes.addressof(_KEEP), 10), (4096, 10)]),
    ("2000 bytes at an unmapped address", [(4096, 2000)]),
    ("70000 bytes at an unmapped address", [(4096, 70000)]),
):
    CASES.row(f"R-31 from {what}", _bound(lambda s, v=iov: s.send(iov=v, to=TO)), "EFAULT")
CASES.row("R-31 nothing from a kernel address", _bound(lambda s: s.send(iov=[(KERNEL, 0)], to=TO)), "EFAULT")
CASES.row("R-31 nothing from NULL", _bound(lambda s: s.send(iov=[(0, 0)], to=TO)), 0)


def _half_mapped(size):
    page = mmap.PAGESIZE
    area = mmap.mmap(-1, 64 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    libc = ctypes.CDLL(None)
    assert libc.munmap(ctypes.c_void_p(start + page), ctypes.c_size_t(63 * page)) == 0
    HELD.append(area)
    return [(start + page - 100, size)]


# Kept for ever: unmapping them again would hit what was mapped there since.
HELD = []
for size in (200, 5000, 60000):
    CASES.row(
        f"R-31 {size} bytes across the end of memory",
        _bound(lambda s, n=size: s.send(iov=_half_mapped(n), to=TO)),
        "EFAULT",
    )


@CASES.case("R-31 a failed send leaves nothing behind")
def _():
    with lan.here() as one, lan.here() as two:
        for _ in range(100):
            fails("EFAULT", lambda: one.send(iov=[(ctypes.addressof(_KEEP), 600), (4096, 600)], to=two.address))
        one.send(b"after", two.address)
        equal(two.recv().data, b"after")
        equal(two.pull(), None)


# Control messages.
for kind in (0, 4, 5, 10, 11, 13, 14, 99, -1):
    CASES.row(f"control {kind}", _bound(lambda s, k=kind: s.send(b"x", TO, control=cmsg(k, b"\0" * 72))), "EINVAL")
CASES.row("control of another level", _bound(lambda s: s.send(b"x", TO, control=cmsg(77, b"\0" * 8, level=1))), 1)
CASES.row("control of level IPPROTO_IP", _bound(lambda s: s.send(b"x", TO, control=cmsg(8, b"\0" * 8, level=0))), 1)
CASES.row(
    "another level, then an unknown one",
    _bound(lambda s: s.send(b"x", TO, control=cmsg(77, b"\0" * 8, level=1) + UNKNOWN)),
    "EINVAL",
)
for length in (0, 1, 15, 25, 4096, 2**63):
    CASES.row(
        f"control that claims {length} bytes",
        _bound(lambda s, n=length: s.send(b"x", TO, control=cmsg(CMSG_RDMA_DEST, b"\0" * 8, length=n))),
        "EINVAL",
    )
CASES.row("control of 15 bytes in all", _bound(lambda s: s.send(b"x", TO, control=b"\0" * 15)), 1)


def _vector(*pairs):
    """Local vectors of an RDMA operation: address of an array of (address, bytes)."""
    raw = ctypes.create_string_buffer(b"".join(struct.pack("=QQ", *pair) for pair in pairs))
    HELD.append(raw)
    return ctypes.addressof(raw)


def _args(local=None, count=1, remote=4096, length=None):
    if local is None:
        local = _vector((ctypes.addressof(_KEEP), 4096))
    body = struct.pack("=QQQQQQQ", 0, 0, remote, local, count, 0, 0)
    return cmsg(CMSG_RDMA_ARGS, body[:length])


for what, control, want in (
    ("RDMA on TCP", lambda: _args(), "EOPNOTSUPP"),
    ("R-21 55 bytes of arguments", lambda: _args(length=55), "EINVAL"),
    ("R-21 no local vector", lambda: _args(count=0), "EINVAL"),
    ("R-21 1025 local vectors", lambda: _args(count=1025), "EMSGSIZE"),
    ("R-21 2^63 local vectors", lambda: _args(count=2**63), "EMSGSIZE"),
    ("R-21 a local vector of no bytes", lambda: _args(_vector((ctypes.addressof(_KEEP), 0))), "EINVAL"),
    ("R-21 a local vector that wraps", lambda: _args(_vector((2**64 - 4096, 8192))), "EINVAL"),
    ("R-21 a local vector over 4 GiB", lambda: _args(_vector((4096, 2**32 + 1))), "EINVAL"),
    ("R-21 vectors nobody can read", lambda: _args(4096), "EFAULT"),
    ("R-21 vectors in the kernel", lambda: _args(KERNEL), "EFAULT"),
    ("more than 1 MiB remote", lambda: _args(remote=MIB + 1), "EMSGSIZE"),
    ("more than 1 MiB remote in two operations", lambda: _args(remote=MIB) + _args(remote=1), "EMSGSIZE"),
    ("RDMA_DEST of 7 bytes", lambda: cmsg(CMSG_RDMA_DEST, b"\0" * 7), "EINVAL"),
    ("RDMA_DEST of a region nobody has", lambda: cmsg(CMSG_RDMA_DEST, b"\1" * 8), "EINVAL"),
    ("RDMA_MAP of 31 bytes", lambda: cmsg(CMSG_RDMA_MAP, b"\0" * 31), "EINVAL"),
    ("RDMA_MAP on TCP", lambda: cmsg(CMSG_RDMA_MAP, _map()), "EOPNOTSUPP"),
    ("RDMA_DEST beside RDMA_ARGS", lambda: cmsg(CMSG_RDMA_DEST, b"\1" * 8) + _args(), "EINVAL"),
    ("RDMA_ARGS beside RDMA_MAP", lambda: _args() + cmsg(CMSG_RDMA_MAP, _map()), "EINVAL"),
    ("RDMA_MAP beside an atomic", lambda: cmsg(CMSG_RDMA_MAP, _map()) + _atomic(CMSG_ATOMIC_FADD), "EINVAL"),
    ("a cookie beside an atomic", lambda: cmsg(CMSG_ZCOPY_COOKIE, b"\0" * 4) + _atomic(CMSG_ATOMIC_FADD), "EINVAL"),
    ("a zero-copy cookie without zero-copy", lambda: cmsg(CMSG_ZCOPY_COOKIE, b"\0" * 4), "EINVAL"),
    ("a zero-copy cookie of 3 bytes", lambda: cmsg(CMSG_ZCOPY_COOKIE, b"\0" * 3), "EINVAL"),
):
    CASES.row(what, _bound(lambda s, c=control: s.send(b"x", TO, control=c())), want)


def _map():
    return struct.pack("=QQQQ", ctypes.addressof(_KEEP), 4096, ctypes.addressof(_KEEP) + 4096, 0)


def _atomic(kind, local=None, length=None):
    if local is None:
        local = (ctypes.addressof(_KEEP) + 7) & ~7
    body = struct.pack("=QQQQQQQQQ", 0, local, 0, 1, 0, 0, 0, 0, 0)
    return cmsg(kind, body[:length])


for kind in (CMSG_ATOMIC_FADD, CMSG_ATOMIC_CSWP, CMSG_MASKED_FADD, CMSG_MASKED_CSWP):
    CASES.row(
        f"R-23 atomic {kind} on TCP", _bound(lambda s, k=kind: s.send(b"x", TO, control=_atomic(k))), "EOPNOTSUPP"
    )
    CASES.row(
        f"R-23 atomic {kind} of 71 bytes",
        _bound(lambda s, k=kind: s.send(b"x", TO, control=_atomic(k, length=71))),
        "EINVAL",
    )
    for where in (1, 4096):
        CASES.row(
            f"R-23 atomic {kind} to address {where}",
            _bound(lambda s, k=kind, w=where: s.send(b"x", TO, control=_atomic(k, w))),
            frozenset(("EFAULT", "EOPNOTSUPP")),
            c="EFAULT",
        )


# Zero-copy sending; 58-zerocopy has what follows.
COOKIE = cmsg(CMSG_ZCOPY_COOKIE, struct.pack("=I", 5))


def _zero_copy(address, flags=MSG_ZEROCOPY, control=COOKIE):
    with Sock.at(address) as sock:
        sock.set(SO_ZEROCOPY, 1, 1)
        return sock.send(b"x", (address, 9), flags, control)


CASES.row("zero-copy over TCP", lambda: _zero_copy(lan.A), 1)
CASES.row("zero-copy without a cookie", lambda: _zero_copy(lan.A, control=b""), "EINVAL")
CASES.row("zero-copy over loopback", lambda: _zero_copy("127.0.0.1"), "EOPNOTSUPP")
CASES.row("zero-copy flag alone", _bound(lambda s: s.send(b"x", TO, MSG_ZEROCOPY, COOKIE)), "EINVAL")
CASES.row("SO_ZEROCOPY alone", lambda: _zero_copy(lan.A, 0, b""), 1)


@CASES.case("what is refused does not disturb what follows")
def _():
    with lan.here() as one, lan.here() as two:
        bad = (
            lambda: one.send(b"bad", two.address, MSG_OOB),
            lambda: one.send(b"bad", BAD_NAME),
            lambda: one.send(b"bad", two.address, control=UNKNOWN),
            lambda: one.send(b"bad", two.address, control=_args()),
            lambda: one.send(bytes(MIB), two.address),
            lambda: one.send(iov=[(4096, 5)], to=two.address),
        )
        for round_number in range(20):
            for call in bad:
                assert outcome(call) not in ("ok", 3)
            one.send(b"%d" % round_number, two.address)
        equal([two.recv().data for _ in range(20)], [b"%d" % n for n in range(20)])
        equal(two.pull(), None)


@CASES.case("messages of all sizes arrive unchanged")
def _():
    _sizes(*lan.pair())


@CASES.case("messages of all sizes arrive unchanged over IPv6")
def _():
    _sizes(*lan.pair(v6=True))


@CASES.case("messages of all sizes arrive unchanged at 127.0.0.1")
def _():
    _sizes(Sock.at("127.0.0.1"), Sock.at("127.0.0.1"))


# The first message of a connection.
FIRST = {
    "an empty message": lambda s, to, flags: s.send(b"", to, flags),
    "a refused RDMA_MAP": lambda s, to, flags: fails(
        "EOPNOTSUPP", lambda: s.send(b"x", to, flags, cmsg(CMSG_RDMA_MAP, _map()))
    ),
    "a refused RDMA operation": lambda s, to, flags: fails("EOPNOTSUPP", lambda: s.send(b"x", to, flags, _args())),
}
_fresh_addresses = itertools.count(100)


def _first(action, flags):
    """Both ends are addresses that no connection has; afterwards messages pass both ways."""
    with lab.inside(lan.PEER):
        far = f"10.7.0.{next(_fresh_addresses)}"
        lab.ip(f"addr add {far}/24 dev r1")
    with lan.here() as one, lan.there(far) as two:
        equal(snapshot.connection(lan.A, far), None)
        empty = action(one, two.address, flags) == 0
        for sock in (one, two):
            sock.timeout(send=10, receive=10)
        equal(one.send(b"next", two.address), 4)
        equal([two.recv().data for _ in range(1 + empty)], [b""] * empty + [b"next"])
        two.send(b"back", one.address)
        equal(one.recv().data, b"back")


for what, action in FIRST.items():
    for flags, how in ((0, ""), (MSG_DONTWAIT, " with MSG_DONTWAIT")):
        CASES.case(f"R-19 {what}{how} is the first to a peer")(lambda a=action, f=flags: _first(a, f))


def _sizes(one, two):
    with one, two:
        for sock in (one, two):
            sock.buffers(4 * MIB, 4 * MIB)
        source = one.address
        for size in (0, 1, 47, 48, 511, 512, 513, 1023, 1024, 1025, 1447, 1448, 4095, 4096, 4097, 65536, 100001, MIB):
            data = os.urandom(size)
            equal(one.send(data, two.address), size)
            got = two.recv(MIB + 1)
            equal((got.size, got.source, got.flags), (size, source, 0))
            assert got.data == data, f"{size} bytes arrived changed"


@CASES.case("two destinations in turn")
def _():
    with lan.here() as one, lan.there() as near, lan.here(lan.A2) as own, Sock.at(lan.A) as same:
        for number in range(50):
            for target in (near, own, same):
                one.send(b"%d" % number, target.address)
        for target in (near, own, same):
            equal([target.recv().data for _ in range(50)], [b"%d" % n for n in range(50)])


@CASES.case("a socket sends to itself")
def _():
    for address in (lan.A, lan.A6, "127.0.0.1", "::1"):
        with Sock.at(address) as sock:
            sock.send(b"me", sock.address)
            got = sock.recv()
            equal((got.data, got.source), (b"me", sock.address))
