# SPDX-License-Identifier: GPL-2.0
"""Network namespaces: section 1.15 of the reference; R-07, R-08."""

import os
import select
import time
from pathlib import Path

import lab
import snapshot
from api import congestion, lan
from cases import ON_DEBUG, Cases, equal, eventually, fails
from rdssock import CONG_MONITOR, MSG_DONTWAIT, Sock, call

CASES = Cases("namespaces")
PR_SET_DUMPABLE = 4
ONE_TABLE = "one bind table for all namespaces"


@CASES.case("the same address and port in two namespaces", c=ONE_TABLE)
def _():
    for address in (lan.A, lan.A6, "127.0.0.1", "::1"):
        with Sock.at(address, 4242) as here:
            with lab.inside(lan.TWIN):
                there = Sock.at(address, 4242)
            with there:
                for number in range(20):
                    here.send(b"here %d" % number, (address, 4242))
                    there.send(b"there %d" % number, (address, 4242))
                equal([here.recv().data for _ in range(20)], [b"here %d" % n for n in range(20)])
                equal([there.recv().data for _ in range(20)], [b"there %d" % n for n in range(20)])
                equal((here.pull(), there.pull()), (None, None))


@CASES.case("R-07 a message does not cross to another namespace")
def _():
    for address in ("127.0.0.1", lan.A, "::1"):
        with Sock.at(address, 4242) as here:
            with lab.inside(lan.TWIN):
                there = Sock.at(address, 5000)
            before = snapshot.counter("recv_drop_no_sock")
            there.send(b"crossing", (address, 4242))
            eventually(lambda: snapshot.counter("recv_drop_no_sock") > before, "the drop is counted")
            equal(here.pull(), None)
            there.close()


@CASES.case("R-07 as a user in a namespace of its own")
def _():
    with Sock.at("127.0.0.1", 4243) as here:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setgid(65534)
                os.setuid(65534)
                # So that /proc/self is the user's own again.
                call("prctl", PR_SET_DUMPABLE, 1)
                os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNET)
                Path("/proc/self/setgroups").write_text("deny")
                Path("/proc/self/uid_map").write_text("0 65534 1")
                Path("/proc/self/gid_map").write_text("0 65534 1")
                lab.ip("link set lo up")
                with Sock.at("127.0.0.1", 5000) as sock:
                    for _ in range(10):
                        sock.send(b"crossing", ("127.0.0.1", 4243))
                status = 0
            except Exception as error:
                print(error, flush=True)
            finally:
                os._exit(status)
        equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        equal(here.pull(), None)
        with Sock.at("127.0.0.1") as other:
            other.send(b"own", ("127.0.0.1", 4243))
            equal(here.recv().data, b"own")


@CASES.case("R-08 lists show one namespace only")
def _():
    with lan.here() as one, lan.here() as two, lan.there() as far:
        one.send(b"unread", two.address)
        one.send(b"queued", (lan.NOBODY, 9))
        one.send(b"arrived", far.address)
        assert far.readable(5)
        lists = [option for option in snapshot.SIZES if option != snapshot.COUNTERS]
        for option in lists:
            if option not in (snapshot.RETRANS, snapshot.RETRANS6):
                assert snapshot.records(option), f"{option} is empty here"
        lab.ip("netns add empty")
        try:
            with lab.inside("empty"):
                watcher = Sock()
                for option in lists:
                    own = 1 if option == snapshot.SOCKETS6 else 0
                    equal(len(snapshot.records(option, watcher)), own, f"records of {option}")
                watcher.close()
        finally:
            lab.ip("netns del empty")
        with lab.inside(lan.PEER):
            own = (lan.A, lan.A2, lan.SINK, lan.A6, lan.A62, lan.LINK_A)
            assert not any(c.local in own for c in snapshot.connections())


@CASES.case("congestion stays in its namespace", c="maps are shared by address")
def _():
    with Sock.at("127.0.0.1") as one, Sock.at("127.0.0.1", 4242) as two:
        with lab.inside(lan.TWIN):
            other, target = Sock.at("127.0.0.1"), Sock.at("127.0.0.1", 4242)
        with other, target:
            other.set(CONG_MONITOR, 1)
            other.poll(select.POLLIN)
            two.buffers(receive=congestion.LIMIT)
            congestion.congest(one, two)
            for _ in range(30):
                equal(other.send(bytes(1000), target.address, MSG_DONTWAIT), 1000)
            congestion.drain(two)
            equal(other.poll(select.POLLIN), 0)


@CASES.case("the address of one namespace is not an address of another")
def _():
    with lab.inside(lan.PEER), Sock() as sock:
        from address import sin

        fails("EADDRNOTAVAIL", lambda: sock.bind(sin(lan.A)))


@CASES.case("a socket stays where it was made")
def _():
    with lab.inside(lan.PEER):
        sock = Sock()
    from address import sin

    sock.bind(sin(lan.B))
    with lan.here() as one:
        one.send(b"x", sock.address)
        equal(sock.recv().data, b"x")
    sock.close()


@CASES.case("a namespace goes while its sockets have messages", limit=60)
def _():
    for _ in range(5):
        lab.ip("netns add brief")
        with lab.inside("brief"):
            lab.ip("link set lo up")
            one, two = Sock.at("127.0.0.1"), Sock.at("127.0.0.1")
        for _ in range(20):
            one.send(bytes(1000), two.address)
        lab.ip("netns del brief")
        # The sockets keep it alive.
        one.send(b"still there", two.address)
        equal([two.recv().size for _ in range(21)][-1], 11)
        one.close()
        one = None
        two.close()


@CASES.case("R-42 a namespace goes while connections are being made", limit=90)
def _():
    for _ in range(3):
        lab.ip("netns add brief")
        with lab.inside("brief"):
            lab.ip("""
                link set lo up
                link add d0 type dummy
                addr add 10.9.0.1/16 dev d0
                link set d0 up
            """)
            sock = Sock.at("10.9.0.1")
        for number in range(200):
            sock.send(b"x", (f"10.9.{1 + number // 100}.{1 + number % 100}", 9), MSG_DONTWAIT)
        start = time.monotonic()
        lab.ip("netns del brief")
        sock.close()
        equal(time.monotonic() - start < (80 if ON_DEBUG else 20), True)
