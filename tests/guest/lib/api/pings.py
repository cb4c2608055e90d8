# SPDX-License-Identifier: GPL-2.0
"""Port 0: section 3.6 of the reference; R-47."""

import lab
import snapshot
from api import lan
from cases import ON_DEBUG, Cases, equal, eventually
from rdssock import MSG_DONTWAIT, Sock

CASES = Cases("ping")
MIB = 1 << 20


def _answered(sock, target, data=b""):
    """Pings once and takes the answer."""
    sock.timeout(receive=5)
    equal(sock.send(data, (target, 0)), len(data))
    got = sock.recv(100)
    equal((got.size, got.source), (0, (target, 0)))


for own, target, c in (
    (lan.A, lan.B, None),
    (lan.A6, lan.B6, None),
    (lan.A, lan.A, None),
    (lan.A6, lan.A6, None),
    ("127.0.0.1", "127.0.0.1", None),
    ("::1", "::1", None),
    (lan.A, lan.A2, "the answer looks for the socket at the wrong address"),
    (lan.A6, lan.A62, "the answer looks for the socket at the wrong address"),
    ("127.0.0.1", "127.0.0.2", "the answer looks for the socket at the wrong address"),
):

    def _check(own=own, target=target):
        with Sock.at(own) as sock:
            for _ in range(3):
                _answered(sock, target)
            equal(sock.pull(), None)

    CASES.case(f"from {own} to {target}", c=c)(_check)


@CASES.case("R-47 payloads are ignored")
def _():
    for target in (lan.B, lan.A):
        with lan.here() as sock:
            sock.buffers(4 * MIB)
            for size in (0, 1, 47, 5000, MIB):
                _answered(sock, target, bytes(size))


@CASES.case("R-47 from 64 sockets at once")
def _():
    for target in (lan.B, lan.A):
        socks = [lan.here() for _ in range(64)]
        for number, sock in enumerate(socks):
            sock.timeout(receive=10)
            sock.send(bytes(number), (target, 0))
        for sock in socks:
            equal(sock.recv(100).source, (target, 0))
            equal(sock.pull(), None)
            sock.close()


@CASES.case("a connected socket pings by write")
def _():
    from address import sin

    with lan.here() as sock:
        sock.connect(sin(lan.B, 0))
        sock.timeout(receive=5)
        sock.send(b"")
        equal(sock.recv().source, (lan.B, 0))


@CASES.case("one answer for each of many")
def _():
    count = 50 if ON_DEBUG else 500
    for target in (lan.B, lan.A):
        with lan.here() as sock:
            sock.timeout(receive=5)
            for _ in range(count):
                sock.send(b"", (target, 0))
            for _ in range(count):
                equal(sock.recv(9).source, (target, 0))
            equal(sock.pull(), None)


@CASES.case("counters")
def _():
    before = snapshot.counters()
    with lan.here() as sock:
        _answered(sock, lan.B)
    after = snapshot.counters()
    equal([after[name] - before[name] for name in ("recv_ping", "send_pong")], [1, 1])


@CASES.case("R-47 with ping_enable=0 nothing answers", limit=30)
def _():
    with lan.here() as sock:
        _answered(sock, lan.B)
        lab.sysctl("net.rds.ping_enable", 0)
        try:
            before = snapshot.counters()
            for target in (lan.B, lan.A):
                sock.send(b"x", (target, 0))
            want = before["recv_drop_no_sock"] + 2
            eventually(lambda: snapshot.counter("recv_drop_no_sock") >= want, "two drops are counted")
            equal(sock.pull(), None)
            equal(snapshot.counter("recv_ping"), before["recv_ping"])
        finally:
            lab.sysctl("net.rds.ping_enable", 1)
        _answered(sock, lan.B)


@CASES.case("a socket cannot send from port 0 or 1")
def _():
    with lan.here() as sock:
        assert sock.port > 1
        sock.send(b"", (lan.B, 1), MSG_DONTWAIT)
        equal(sock.pull(), None)
