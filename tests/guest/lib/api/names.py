# SPDX-License-Identifier: GPL-2.0
"""Addresses, bind, connect and names: sections 1.2 to 1.4 of the reference; R-17, R-33, R-34."""

import resource
import struct

import lab
import snapshot
from address import name, read, sin, sin6
from api import lan
from cases import ON_DEBUG, SOAK, Cases, Skip, equal, fails, outcome
from rdssock import GAP, IB, LOOP, NONE, TCP, TRANSPORT, Sock

CASES = Cases("names")

BAD = "EINVAL"
# What is wrong, the bytes, and what bind, connect and sendmsg say.
RULES = [
    ("empty address", b"", BAD, BAD, "ENOTCONN"),
    ("one byte", b"\x02", BAD, BAD, BAD),
    ("AF_INET of 15 bytes", sin("10.7.0.1", 4001)[:15], BAD, BAD, BAD),
    ("AF_INET of 2 bytes", sin("10.7.0.1")[:2], BAD, BAD, BAD),
    ("0.0.0.0", sin("0.0.0.0", 4001), BAD, "EDESTADDRREQ", BAD),
    ("255.255.255.255", sin("255.255.255.255", 4001), BAD, BAD, BAD),
    ("224.0.0.1", sin("224.0.0.1", 4001), BAD, BAD, BAD),
    ("239.255.255.255", sin("239.255.255.255", 4001), BAD, BAD, BAD),
    ("AF_INET6 of 27 bytes", sin6("fd07::1", 4001)[:27], BAD, BAD, BAD),
    ("AF_INET6 of 16 bytes", sin6("fd07::1", 4001)[:16], BAD, BAD, BAD),
    ("::", sin6("::", 4001), BAD, "EPROTOTYPE", BAD),
    ("ff02::1", sin6("ff02::1", 4001, 1), BAD, "EPROTOTYPE", BAD),
    ("ff0e::1", sin6("ff0e::1", 4001), BAD, "EPROTOTYPE", BAD),
    ("::ffff:0.0.0.0", sin6("::ffff:0.0.0.0", 4001), BAD, "EPROTOTYPE", BAD),
    ("::ffff:255.255.255.255", sin6("::ffff:255.255.255.255", 4001), BAD, "EPROTOTYPE", BAD),
    ("::ffff:224.0.0.1", sin6("::ffff:224.0.0.1", 4001), BAD, "EPROTOTYPE", BAD),
    ("fe80::1 without scope", sin6("fe80::1", 4001), BAD, BAD, BAD),
    ("AF_UNSPEC", sin("10.7.0.1", 4001, 0), BAD, "EAFNOSUPPORT", BAD),
    ("AF_UNIX", sin("10.7.0.1", 4001, 1), BAD, "EAFNOSUPPORT", BAD),
    ("AF_RDS", sin("10.7.0.1", 4001, 21), BAD, "EAFNOSUPPORT", BAD),
    ("AF_UNIX of 28 bytes", sin6("fd07::1", 4001, family=1), BAD, "EAFNOSUPPORT", BAD),
]


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


for what, raw, bind, connect, send in RULES:
    CASES.row(f"bind {what}", _fresh(lambda s, r=raw: s.bind(r)), bind)
    CASES.row(f"connect {what}", _fresh(lambda s, r=raw: s.connect(r)), connect)
    CASES.row(f"sendmsg to {what}", _bound(lambda s, r=raw: s.send(b"x", r)), send)
    CASES.row(f"sendmsg unbound to {what}", _fresh(lambda s, r=raw: s.send(b"x", r)), send)

# Longer than needed is fine, as are all-zero tails.
CASES.row("bind AF_INET of 128 bytes", _fresh(lambda s: s.bind(sin(lan.A).ljust(128, b"\xff"))), "ok")
CASES.row("connect AF_INET of 128 bytes", _fresh(lambda s: s.connect(sin(lan.B, 1).ljust(128, b"\xff"))), "ok")
CASES.row("bind AF_INET of 129 bytes", _fresh(lambda s: s.bind(sin(lan.A).ljust(129, b"\0"))), BAD)
CASES.row("bind mapped IPv4", _fresh(lambda s: (s.bind(sin6(f"::ffff:{lan.A}", 0)), s.raw_name()[:2])[1]), b"\x02\0")
CASES.row("bind 127.0.0.1", _fresh(lambda s: s.bind(sin("127.0.0.1"))), "ok")
CASES.row("bind 127.255.0.9", _fresh(lambda s: s.bind(sin("127.255.0.9"))), "ok")
CASES.row("bind ::1", _fresh(lambda s: s.bind(sin6("::1"))), "ok")
CASES.row("bind own IPv4", _fresh(lambda s: s.bind(sin(lan.A))), "ok")
CASES.row("bind own IPv6", _fresh(lambda s: s.bind(sin6(lan.A6))), "ok")
CASES.row("bind IPv6 with a scope that means nothing", _fresh(lambda s: s.bind(sin6(lan.A6, 0, 77))), "ok")
CASES.row("bind a foreign IPv4", _fresh(lambda s: s.bind(sin(lan.B))), "EADDRNOTAVAIL")
CASES.row("bind a foreign IPv6", _fresh(lambda s: s.bind(sin6(lan.B6))), "EADDRNOTAVAIL")
CASES.row("bind the subnet's broadcast address", _fresh(lambda s: s.bind(sin("10.7.0.255"))), "EADDRNOTAVAIL")
CASES.row("bind own link-local", _fresh(lambda s: s.bind(sin6(lan.LINK_A, 0, lan.scope()))), "ok")
CASES.row(
    "bind own link-local on another interface", _fresh(lambda s: s.bind(sin6(lan.LINK_A, 0, 1))), "EADDRNOTAVAIL"
)
CASES.row(
    "bind own link-local on no interface", _fresh(lambda s: s.bind(sin6(lan.LINK_A, 0, 9999))), "EADDRNOTAVAIL"
)
CASES.row("bind port 1", _fresh(lambda s: s.bind(sin(lan.A, 1))), BAD)
CASES.row("bind port 1 of loopback", _fresh(lambda s: s.bind(sin("127.0.0.1", 1))), BAD)
CASES.row("bind port 2", _fresh(lambda s: s.bind(sin(lan.A, 2))), "ok")
CASES.row("bind port 65535", _fresh(lambda s: s.bind(sin(lan.A, 65535))), "ok")
CASES.row("bind twice", _bound(lambda s: s.bind(sin(lan.A))), BAD)
CASES.row("bind twice to another address", _bound(lambda s: s.bind(sin(lan.A2))), BAD)
CASES.row("bind twice with a bad address", _bound(lambda s: s.bind(b"")), BAD)
CASES.row("connect is repeatable", _fresh(lambda s: [s.connect(sin(lan.B, p)) for p in (1, 0, 9)] and None), "ok")
CASES.row("disconnect does not exist", _fresh(lambda s: s.connect(struct.pack("=H", 0))), "EAFNOSUPPORT")
CASES.row("getpeername unconnected", _bound(lambda s: s.raw_peer()), "ENOTCONN")
CASES.row("getsockname of a new socket", _fresh(lambda s: s.raw_name()), b"\0" * 16)
CASES.row(
    "getsockname connected but not bound", _fresh(lambda s: (s.connect(sin(lan.B, 5)), s.raw_name())[1]), sin("0.0.0.0")
)
CASES.row(
    "getsockname connected to IPv6 but not bound",
    _fresh(lambda s: (s.connect(sin6(lan.B6, 5)), s.raw_name())[1]),
    sin6("::"),
)
CASES.row("getpeername", _fresh(lambda s: (s.connect(sin(lan.B, 5)), s.raw_peer())[1]), sin(lan.B, 5))
CASES.row("getpeername IPv6", _fresh(lambda s: (s.connect(sin6(lan.B6, 5, 7, 9)), s.raw_peer())[1]), sin6(lan.B6, 5))
CASES.row(
    "getpeername of a mapped address",
    _fresh(lambda s: (s.connect(sin6(f"::ffff:{lan.B}", 5)), s.raw_peer())[1]),
    sin(lan.B, 5),
)
CASES.row("getsockname", _fresh(lambda s: (s.bind(sin(lan.A, 4444)), s.raw_name())[1]), sin(lan.A, 4444))
CASES.row("getsockname IPv6", _fresh(lambda s: (s.bind(sin6(lan.A6, 4444, 5)), s.raw_name())[1]), sin6(lan.A6, 4444))
CASES.row("a failed connect keeps the old peer", lambda: _failed_connect(), sin(lan.B, 5))


def _failed_connect():
    with Sock() as sock:
        sock.connect(sin(lan.B, 5))
        for bad in (sin("0.0.0.0", 1), sin6("::", 1), b"", sin6("fe80::1", 1)):
            assert outcome(lambda bad=bad: sock.connect(bad)) != "ok"
        return sock.raw_peer()


# IPv4 and IPv6 do not mix.
MIX = "EOPNOTSUPP"
CASES.row("connect a bound IPv4 socket to IPv6", _bound(lambda s: s.connect(sin6(lan.B6, 5))), MIX, c="ok")
CASES.row("connect a bound IPv6 socket to IPv4", _bound(lambda s: s.connect(sin(lan.B, 5)), lan.A6), MIX, c="ok")
CASES.row(
    "bind a socket connected to IPv6 to IPv4",
    _fresh(lambda s: (s.connect(sin6(lan.B6, 5)), s.bind(sin(lan.A)))[1]),
    MIX,
    c="ok",
)
CASES.row(
    "bind a socket connected to IPv4 to IPv6",
    _fresh(lambda s: (s.connect(sin(lan.B, 5)), s.bind(sin6(lan.A6)))[1]),
    MIX,
    c="ok",
)
CASES.row("sendmsg from IPv4 to IPv6", _bound(lambda s: s.send(b"x", sin6(lan.B6, 5))), MIX)
CASES.row("sendmsg from IPv6 to IPv4", _bound(lambda s: s.send(b"x", sin(lan.B, 5)), lan.A6), MIX)
CASES.row("sendmsg to a mapped address", _bound(lambda s: s.send(b"x", sin6(f"::ffff:{lan.A}", 5))), 1)


@CASES.case("a bind that is refused for mixing can be repeated", c="it is not refused")
def _():
    with Sock() as sock:
        sock.connect(sin(lan.B, 5))
        fails(MIX, lambda: sock.bind(sin6(lan.A6)))
        sock.bind(sin(lan.A))


# Scopes of link-local addresses.
def _scoped(action):
    def check():
        with Sock.at(lan.LINK_A, 0, lan.scope()) as sock:
            return action(sock, lan.scope())

    return check


CASES.row("R-17 connect to another scope", _scoped(lambda s, i: s.connect(sin6(lan.LINK_B, 5, i + 1))), BAD)
CASES.row("R-17 connect to the same scope", _scoped(lambda s, i: s.connect(sin6(lan.LINK_B, 5, i))), "ok")
CASES.row("R-17 sendmsg to another scope", _scoped(lambda s, i: s.send(b"x", sin6(lan.LINK_B, 5, i + 1))), BAD)
CASES.row("R-17 sendmsg to the same scope", _scoped(lambda s, i: s.send(b"x", sin6(lan.LINK_B, 5, i))), 1)
CASES.row("R-17 sendmsg to a global address", _scoped(lambda s, i: s.send(b"x", sin6(lan.B6, 5))), 1)
CASES.row("R-17 getsockname has the scope", _scoped(lambda s, i: read(s.raw_name())[2] == i), True)
CASES.row(
    "R-17 global bound, link-local destination without scope",
    _bound(lambda s: s.connect(sin6(lan.LINK_B, 5)), lan.A6),
    BAD,
)
CASES.row(
    "R-17 connect remembers the scope for bind",
    _fresh(lambda s: (s.connect(sin6(lan.LINK_B, 5, lan.scope())), s.bind(sin6(lan.LINK_A, 0, 1)))[1]),
    BAD,
)
CASES.row(
    "R-17 bind with the scope that connect gave",
    _fresh(lambda s: (s.connect(sin6(lan.LINK_B, 5, lan.scope())), s.bind(sin6(lan.LINK_A, 0, lan.scope())))[1]),
    "ok",
)


@CASES.case("R-17 what is refused leaves the socket usable")
def _():
    with Sock() as sock:
        for bad in (sin6("fe80::1", 5), sin6(lan.A6, 5)[:27], sin6(lan.LINK_A, 5, 1)):
            assert outcome(lambda bad=bad: sock.bind(bad)) != "ok"
            equal(sock.raw_name(), b"\0" * 16)
        sock.bind(sin6(lan.A6))


@CASES.case("R-17 link-local traffic both ways")
def _():
    with lan.here(lan.LINK_A, 0, lan.scope()) as one, lan.there(lan.LINK_B) as two:
        one.send(b"ping", (lan.LINK_B, two.port, lan.scope()))
        got = two.recv()
        equal((got.data, got.source[:2]), (b"ping", (lan.LINK_A, one.port)))
        equal(got.source[2], two.address[2])
        two.send(b"pong", got.name)
        got = one.recv()
        equal((got.data, got.source), (b"pong", (lan.LINK_B, two.port, lan.scope())))


@CASES.case("R-17 a scope that connect named makes no second connection", c="it makes two, and messages are lost")
def _():
    with lan.here(lan.A6) as one, lan.here(lan.A6) as other, lan.there(lan.B6) as two:
        other.connect(sin6(lan.LINK_B, 5, lan.scope()))
        for number in range(3):
            for sock in (one, other):
                sock.send(b"%d" % number, two.address)
                equal(two.recv().data, b"%d" % number)
        ends = [(found.local, found.peer) for found in snapshot.connections(one)]
        equal(ends.count((lan.A6, lan.B6)), 1)


@CASES.case("the same port on every address")
def _():
    with Sock.at(lan.A, 4242), Sock.at(lan.A2, 4242), Sock.at("127.0.0.1", 4242), Sock.at(lan.A6, 4242):
        for address in (lan.A, lan.A2, "127.0.0.1", lan.A6):
            with Sock() as sock:
                fails("EADDRINUSE", lambda s=sock, a=address: s.bind(name(a, 4242)))
    with Sock.at(lan.A, 4242):
        pass


@CASES.case("a mapped address is the same as the plain one")
def _():
    with Sock.at(lan.A, 4242), Sock() as sock:
        fails("EADDRINUSE", lambda: sock.bind(sin6(f"::ffff:{lan.A}", 4242)))


@CASES.case("automatic ports are never 0 or 1")
def _():
    for _ in range(200):
        with Sock.at("127.0.0.1") as sock:
            assert sock.port >= 2


@CASES.case("R-33 a failed bind keeps no reference", c="it keeps one per failure")
def _():
    with Sock.at(lan.A, 4242):
        # Sockets are freed a little after they are closed.
        lab.references_settle("rds_tcp", count := 1)
        held = [Sock() for _ in range(1000)]
        for sock in held:
            fails("EADDRINUSE", lambda sock=sock: sock.bind(sin(lan.A, 4242)))
            equal(sock.get_int(TRANSPORT), NONE)
        lab.references_settle("rds_tcp", count)
        for sock in held:
            sock.close()
        lab.references_settle("rds_tcp", count)


@CASES.case("R-33 a failed bind keeps the chosen transport", c="it is forgotten")
def _():
    with Sock.at(lan.A, 4242), Sock() as sock:
        sock.set(TRANSPORT, TCP)
        fails("EADDRINUSE", lambda: sock.bind(sin(lan.A, 4242)))
        equal(sock.get_int(TRANSPORT), TCP)
        fails("EINVAL", lambda: sock.bind(sin(lan.A, 1)))
        equal(sock.get_int(TRANSPORT), TCP)
        fails("ENOPROTOOPT", lambda: sock.bind(sin("10.7.0.77", 4242)))
        equal(sock.get_int(TRANSPORT), TCP)
        sock.bind(sin(lan.A, 4243))
        equal(sock.get_int(TRANSPORT), TCP)


# The transport option with an address that is not the transport's.
def _chosen(address):
    with Sock() as sock:
        sock.set(TRANSPORT, TCP)
        sock.bind(name(address))


CASES.row("TCP chosen, foreign address", lambda: _chosen(lan.B), "ENOPROTOOPT")
CASES.row("TCP chosen, foreign IPv6 address", lambda: _chosen(lan.B6), "ENOPROTOOPT")
CASES.row("TCP chosen, 127.0.0.1", lambda: _chosen("127.0.0.1"), "ok")
CASES.row("TCP chosen, own address", lambda: _chosen(lan.A), "ok")
CASES.row("transport of a new socket", _fresh(lambda s: s.get_int(TRANSPORT)), NONE)
CASES.row("transport of a bound socket", _bound(lambda s: s.get_int(TRANSPORT)), TCP)
CASES.row("transport of a socket at 127.0.0.1", _bound(lambda s: s.get_int(TRANSPORT), "127.0.0.1"), LOOP)
CASES.row("transport of a socket at ::1", _bound(lambda s: s.get_int(TRANSPORT), "::1"), LOOP)
for value in (3, 4, -1, 255, -(2**31)):
    CASES.row(f"R-34 choose transport {value}", _fresh(lambda s, v=value: s.set(TRANSPORT, v)), BAD)
CASES.row("R-34 choose transport GAP", _fresh(lambda s: s.set(TRANSPORT, GAP)), "ENOPROTOOPT")
for size in (0, 1, 3, 5, 8):
    CASES.row(
        f"R-34 choose a transport with {size} bytes",
        _fresh(lambda s, n=size: s.set(TRANSPORT, struct.pack("=iI", TCP, 0)[:n])),
        BAD,
    )
CASES.row("R-34 choose a transport when bound", _bound(lambda s: s.set(TRANSPORT, TCP)), MIX)
CASES.row("R-34 choose a bad transport when bound", _bound(lambda s: s.set(TRANSPORT, 99)), MIX)
CASES.row("R-34 choose a transport twice", _fresh(lambda s: [s.set(TRANSPORT, TCP) for _ in "12"]), MIX)


for address, transport in ((lan.A, TCP), (lan.A6, TCP), ("127.0.0.1", LOOP)):

    @CASES.case(f"R-34 a refused choice leaves the socket usable at {address}")
    def _(address=address, transport=transport):
        for value in (3, -1, GAP, b"\2\0\0"):
            with Sock() as sock:
                assert outcome(lambda value=value: sock.set(TRANSPORT, value)) != "ok"
                equal(sock.get_int(TRANSPORT), NONE)
                sock.bind(name(address))
                equal(sock.get_int(TRANSPORT), transport)
                fails(MIX, lambda value=value: sock.set(TRANSPORT, value))
                sock.send(b"still bound", sock.address)
                equal(sock.recv().data, b"still bound")


@CASES.case("IB is for the initial namespace only")
def _():
    with lab.inside(lan.PEER), Sock() as sock:
        fails("EPROTOTYPE", lambda: sock.set(TRANSPORT, IB))
        fails("EPROTOTYPE", lambda: sock.set(TRANSPORT, GAP))
        sock.set(TRANSPORT, TCP)


@CASES.case("every port of an address can be bound, and one more cannot", c="at most 32768 sockets", limit=120)
def _():
    if ON_DEBUG or not SOAK:
        raise Skip("takes long; part of the soak on the base kernel")
    resource.setrlimit(resource.RLIMIT_NOFILE, (70000, 70000))
    held = []
    try:
        while len(held) < 65534:
            held.append(Sock.at("127.0.0.9"))
        with Sock() as sock:
            fails("EADDRINUSE", lambda: sock.bind(sin("127.0.0.9")))
        port = held[777].port
        held[777].close()
        with Sock.at("127.0.0.9") as sock:
            equal(sock.port, port)
    finally:
        for sock in held:
            sock.close()
