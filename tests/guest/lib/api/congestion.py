# SPDX-License-Identifier: GPL-2.0
"""Congestion: sections 1.5, 1.8 and 3.3 of the reference; R-48."""

import os
import select
import signal
import struct
import threading
import time

import lab
import snapshot
from api import lan
from cases import ON_C, ON_DEBUG, SOAK, Cases, equal, eventually, fails, outcome
from rdssock import CMSG_CONG_UPDATE, CONG_MONITOR, MSG_DONTWAIT, MSG_PEEK, SOL_RDS, Sock

CASES = Cases("congestion")
SLOW = 4 if ON_DEBUG else 1
LIMIT = 16384


def _try(sock, to, size=1000):
    return outcome(lambda: sock.send(bytes(size), to, MSG_DONTWAIT))


def congest(one, two, seconds=10):
    """Sends until the receiver's port is congested; how many messages it took."""
    count = 0
    end = time.monotonic() + seconds * SLOW
    while True:
        result = _try(one, two.address)
        if result == "ENOBUFS":
            return count
        if result == "EAGAIN":
            time.sleep(0.01)
        else:
            equal(result, 1000)
            count += 1
            # Let the receiver's word come back now and then.
            if count > LIMIT // 1000:
                time.sleep(0.005)
        assert time.monotonic() < end, f"not congested after {count} messages"


def drain(two):
    """Reads all there is; how many."""
    count = 0
    while two.pull() is not None:
        count += 1
    return count


def _drain_all(two, count):
    """Reads as many as were sent."""
    two.timeout(receive=10)
    for _ in range(count):
        two.recv()


class Jam:
    """A sender and a receiver whose port is congested."""

    def __init__(self, one, two):
        self.one, self.two = one, two
        one.buffers(send=1 << 20)
        two.buffers(receive=LIMIT)
        one.send(b"x", two.address)
        two.timeout(receive=10)
        two.recv()
        self.count = congest(one, two)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.one.close()
        self.two.close()


# Where the receiver is seen from the sender, and why C does not do it.
PLACES = {
    "over TCP": (lan.pair, None),
    "over TCP with IPv6": (lambda: lan.pair(v6=True), None),
    "to the own address": (lambda: (lan.here(), lan.here()), None),
    "between own addresses": (lambda: (lan.here(), lan.here(lan.SINK)), "it books on the wrong map"),
    "at 127.0.0.1": (lambda: (Sock.at("127.0.0.1"), Sock.at("127.0.0.1")), "loopback sockets are exempt"),
    "between two loopback addresses": (
        lambda: (Sock.at("127.0.0.1"), Sock.at(lan.SINK_LOOP)),
        "loopback sockets are exempt",
    ),
    "at ::1": (lambda: (Sock.at("::1"), Sock.at("::1")), "loopback sockets are exempt"),
}


def _everywhere(what, check):
    for where, (make, c) in PLACES.items():
        CASES.case(f"{what} {where}", c=c)(lambda make=make: check(Jam(*make())))


def _blocks_and_frees(jam):
    with jam:
        assert jam.count >= LIMIT // 1000, f"only {jam.count} messages fit"
        before = snapshot.counter("cong_send_error")
        fails("ENOBUFS", lambda: jam.one.send(b"x", jam.two.address, MSG_DONTWAIT))
        equal(snapshot.counter("cong_send_error"), before + 1)
        # Not the send buffer is full.
        assert jam.one.poll(select.POLLOUT)
        _drain_all(jam.two, jam.count)
        eventually(lambda: _try(jam.one, jam.two.address) == 1000, "sending again", 1)
        equal(jam.two.recv().size, 1000)


def _wakes_sender(jam):
    with jam:
        # A sender that has no time limit of its own must wake by itself.
        result = []
        # Long after this case has failed.
        jam.one.timeout(send=15)

        def send():
            result.append(outcome(lambda: jam.one.send(b"woken", jam.two.address)))

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        time.sleep(0.3)
        equal(result, [])
        _drain_all(jam.two, jam.count)
        drained = time.monotonic()
        sender.join(5 * SLOW)
        equal(result, [5])
        took = time.monotonic() - drained
        assert took < SLOW, f"the sender woke {took:.1f} s after the receiver had drained"
        equal(jam.two.recv().data, b"woken")


def _wakes_poll(jam):
    with jam:
        epoll = select.epoll()
        jam.one.poll(select.POLLIN)
        fails("ENOBUFS", lambda: jam.one.send(b"x", jam.two.address, MSG_DONTWAIT))
        epoll.register(jam.one.fd, select.EPOLLIN | select.EPOLLET)
        epoll.poll(0)
        fails("ENOBUFS", lambda: jam.one.send(b"x", jam.two.address, MSG_DONTWAIT))
        timer = threading.Timer(0.2, lambda: _drain_all(jam.two, jam.count))
        timer.start()
        found = jam.one.poll(select.POLLIN | select.POLLWRBAND, 5 * SLOW)
        timer.join()
        equal(found, select.POLLIN | select.POLLWRBAND)
        # Each update is reported once.
        eventually(lambda: jam.one.poll(select.POLLIN) == 0, "poll is quiet again")
        eventually(lambda: _try(jam.one, jam.two.address) == 1000, "sending again", 1)


def _notice(one, port):
    """Takes a congestion notice and checks it."""
    assert one.poll(select.POLLIN, 5 * SLOW), "no notice"
    got = one.recv(100, MSG_DONTWAIT, control=256)
    kinds = [(level, kind) for level, kind, _ in got.control]
    equal((got.size, got.namelen, kinds), (0, 0, [(SOL_RDS, CMSG_CONG_UPDATE)]))
    (mask,) = struct.unpack("=Q", got.control[0][2])
    assert mask >> port % 64 & 1, f"port {port} is not in {mask:#x}"
    return mask


def _notices(jam):
    with jam:
        one, two = jam.one, jam.two
        one.set(CONG_MONITOR, 1)
        fails("ENOBUFS", lambda: one.send(b"x", two.address, MSG_DONTWAIT))
        one.send(b"", one.address)
        eventually(lambda: one.poll(select.POLLIN), "own message")
        equal(one.recv(9, MSG_DONTWAIT).size, 0)
        equal(one.poll(select.POLLIN), 0)
        _drain_all(two, jam.count)
        mask = _notice(one, two.port)
        equal(mask, 1 << two.port % 64)
        equal(one.poll(select.POLLIN), 0)
        fails("EAGAIN", lambda: one.recv(9, MSG_DONTWAIT))
        equal(_try(one, two.address), 1000)


_everywhere("R-48 non-blocking send fails, then works again", _blocks_and_frees)
_everywhere("R-48 a blocked sender wakes", _wakes_sender)
_everywhere("R-48 poll wakes", _wakes_poll)
_everywhere("R-48 a monitor gets a notice", _notices)


@CASES.case("a blocked sender gives up after SO_SNDTIMEO", c="the time-out is ignored")
def _():
    with Jam(*lan.pair()) as jam:
        before = snapshot.counter("cong_send_blocked")
        jam.one.timeout(send=0.3)
        start = time.monotonic()
        fails("ETIMEDOUT", lambda: jam.one.send(b"x", jam.two.address))
        took = time.monotonic() - start
        assert 0.25 < took < 5, f"it took {took:.2f} s"
        equal(snapshot.counter("cong_send_blocked"), before + 1)


@CASES.case("a signal ends a blocked send")
def _():
    with Jam(*lan.pair()) as jam:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.signal(signal.SIGUSR1, lambda *_: None)
            os.write(writer, b".")
            os.write(writer, str(outcome(lambda: jam.one.send(b"x", jam.two.address))).encode())
            os._exit(0)
        os.read(reader, 1)
        lab.wait_until_it_waits(child)
        os.kill(child, signal.SIGUSR1)
        equal(os.read(reader, 100), b"EINTR")
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)


@CASES.case("a notice is kept if it does not fit, and told once")
def _():
    with Jam(*lan.pair()) as jam:
        jam.one.set(CONG_MONITOR, 1)
        fails("ENOBUFS", lambda: jam.one.send(b"x", jam.two.address, MSG_DONTWAIT))
        _drain_all(jam.two, jam.count)
        assert jam.one.poll(select.POLLIN, 5 * SLOW)
        got = jam.one.recv(9, MSG_DONTWAIT, control=0)
        equal(got.size, 0)


@CASES.case("turning the monitor off forgets the notice")
def _():
    with Jam(*lan.pair()) as jam:
        jam.one.set(CONG_MONITOR, 1)
        fails("ENOBUFS", lambda: jam.one.send(b"x", jam.two.address, MSG_DONTWAIT))
        _drain_all(jam.two, jam.count)
        assert jam.one.poll(select.POLLIN, 5 * SLOW)
        jam.one.set(CONG_MONITOR, 0)
        jam.one.set(CONG_MONITOR, 1)
        equal(jam.one.poll(select.POLLIN), 0)
        fails("EAGAIN", lambda: jam.one.recv(9, MSG_DONTWAIT))


@CASES.case("a monitor hears only of ports it waits for", c="TCP says that all ports are free")
def _():
    with Jam(*lan.pair()) as jam, lan.there() as other:
        other.buffers(receive=LIMIT)
        while other.port % 64 == jam.two.port % 64:
            other.close()
            other = lan.there()
            other.buffers(receive=LIMIT)
        count = congest(jam.one, other)
        jam.one.set(CONG_MONITOR, 1)
        fails("ENOBUFS", lambda: jam.one.send(b"x", jam.two.address, MSG_DONTWAIT))
        fails("ENOBUFS", lambda: jam.one.send(b"x", other.address, MSG_DONTWAIT))
        _drain_all(other, count)
        equal(_notice(jam.one, other.port), 1 << other.port % 64)
        time.sleep(0.2)
        equal(jam.one.poll(select.POLLIN), 0)
        fails("ENOBUFS", lambda: jam.one.send(b"x", jam.two.address, MSG_DONTWAIT))
        _drain_all(jam.two, jam.count)
        equal(_notice(jam.one, jam.two.port), 1 << jam.two.port % 64)


@CASES.case("other ports are not affected")
def _():
    with Jam(*lan.pair()) as jam, lan.there() as other:
        for number in range(20):
            jam.one.send(b"%d" % number, other.address)
        equal([other.recv().data for _ in range(20)], [b"%d" % n for n in range(20)])


@CASES.case("pings are not affected")
def _():
    with Jam(*lan.pair()) as jam:
        jam.one.timeout(receive=5)
        jam.one.send(b"", (lan.B, 0))
        equal(jam.one.recv().source, (lan.B, 0))


@CASES.case("peeking does not drain")
def _():
    with Jam(*lan.pair()) as jam:
        for _ in range(100):
            jam.two.recv(9, MSG_PEEK)
        time.sleep(0.2)
        fails("ENOBUFS", lambda: jam.one.send(b"x", jam.two.address, MSG_DONTWAIT))


@CASES.case("the port stays congested until half of the buffer is free")
def _():
    with Jam(*lan.pair()) as jam:
        eventually(lambda: len(snapshot.messages(snapshot.RECV, jam.two)) == jam.count, "all messages arrive")
        left = jam.count
        while left * 1000 >= LIMIT // 2:
            fails("ENOBUFS", lambda: jam.one.send(b"x", jam.two.address, MSG_DONTWAIT))
            jam.two.recv()
            left -= 1
        eventually(lambda: _try(jam.one, jam.two.address) == 1000, "sending again", 1)


@CASES.case("closing the receiver frees the port")
def _():
    with Jam(*lan.pair()) as jam:
        address = jam.two.address
        jam.two.close()
        eventually(lambda: _try(jam.one, address) == 1000, "sending again", 1)


@CASES.case("a failed read does not free the port")
def _():
    with Jam(*lan.pair()) as jam:
        for _ in range(jam.count * 2):
            fails("EFAULT", lambda: jam.two.recv(iov=[(4096, 1000)], flags=MSG_DONTWAIT))
        time.sleep(0.2)
        fails("ENOBUFS", lambda: jam.one.send(b"x", jam.two.address, MSG_DONTWAIT))


@CASES.case("R-48 no stale congestion after a reconnect", limit=60)
def _():
    with Jam(*lan.pair()) as jam:
        lab.run("ss", "-K", "dst", lan.B)
        _drain_all(jam.two, jam.count)
        eventually(lambda: _try(jam.one, jam.two.address) == 1000, "sending again", 20)
        jam.two.timeout(receive=10)
        equal(jam.two.recv().size, 1000)


@CASES.case("R-48 congestion that comes while the connection is down is told", limit=60)
def _():
    with lan.here() as one, lan.there() as two, lan.there() as filler:
        one.send(b"x", two.address)
        two.timeout(receive=10)
        two.recv()
        two.buffers(receive=LIMIT)
        filler.buffers(send=1 << 20)
        lab.run("ss", "-K", "dst", lan.B)
        # The peer's own traffic makes the port congested meanwhile.
        count = congest(filler, two)
        eventually(lambda: _try(one, two.address, 1) == "ENOBUFS", "the sender is told", 20)
        drain(two)
        assert count


@CASES.case("R-48 the peer's namespace goes while updates are queued", limit=200)
def _():
    for _ in range(10 if SOAK else 3):
        lab.ip(f"""
            netns add brief
            link add b0 type veth peer name b1 netns brief
            addr add 10.8.0.1/24 dev b0
            link set b0 up
        """)
        with lab.inside("brief"):
            lab.ip("""
                addr add 10.8.0.2/24 dev b1
                link set b1 up
            """)
            two = Sock.at("10.8.0.2")
        one = Sock.at("10.8.0.1")
        jam = Jam(one, two)
        drain(two)
        two.close()
        lab.ip("netns del brief")
        with jam:
            one.send(b"to nobody", ("10.8.0.2", 9), MSG_DONTWAIT)
        # The link goes with the namespace, a little later.
        eventually(lambda: not lab.has_link("b0"), "the link is gone", 60 if ON_C else 15)


@CASES.case("flooding one receiver from several senders", c="the time-out is ignored")
def _():
    senders = [lan.here() for _ in range(5)]
    with lan.there() as two:
        two.buffers(receive=LIMIT)
        sent = [0] * len(senders)
        stop = threading.Event()

        def flood(index):
            sock = senders[index]
            sock.timeout(send=0.5)
            while not stop.is_set():
                if outcome(lambda: sock.send(bytes([index]) * 500, two.address)) == 500:
                    sent[index] += 1
                else:
                    time.sleep(0.01)

        threads = [threading.Thread(target=flood, args=(index,)) for index in range(len(senders))]
        for thread in threads:
            thread.start()
        got = [0] * len(senders)
        end = time.monotonic() + 2
        two.timeout(receive=5)
        while time.monotonic() < end:
            got[two.recv().data[0]] += 1
        stop.set()
        for thread in threads:
            thread.join()
        while sum(got) < sum(sent):
            got[two.recv().data[0]] += 1
        equal(got, sent)
        equal(two.pull(), None)
        for sock in senders:
            sock.close()
