# SPDX-License-Identifier: GPL-2.0
"""Send and receive buffers, and cancelling: sections 1.7 and 1.9 of the reference.

Most cases send to an address that nobody has: what is sent there stays charged until it is cancelled.
"""

import os
import select
import signal
import socket
import threading
import time

import lab
import snapshot
from address import name, sin, sin6
from api import lan
from cases import ON_DEBUG, Cases, equal, eventually, fails, outcome
from rdssock import CANCEL_SENT_TO, MSG_DONTWAIT, Sock

CASES = Cases("buffers")
GONE = (lan.NOBODY, 9)
SOL_SOCKET = socket.SOL_SOCKET


def _fill(sock, size, to=GONE, most=100000):
    """Sends messages of a size until the buffer is full; how many went."""
    for count in range(most):
        if outcome(lambda: sock.send(bytes(size), to, MSG_DONTWAIT)) == "EAGAIN":
            return count
    return most


@CASES.case("the limit is what SO_SNDBUF was given")
def _():
    with lan.here() as sock:
        sock.set(socket.SO_SNDBUF, 16384, SOL_SOCKET)
        equal(sock.get_int(socket.SO_SNDBUF, SOL_SOCKET), 32768)
        equal(sock.send(bytes(16384), (lan.A, 9)), 16384)
        fails("EMSGSIZE", lambda: sock.send(bytes(16385), (lan.A, 9)))


@CASES.case("SO_SNDBUF is capped for users and has a least value")
def _():
    with lan.here() as sock:
        sock.set(socket.SO_SNDBUF, 1 << 30, SOL_SOCKET)
        equal(sock.get_int(socket.SO_SNDBUF, SOL_SOCKET), 2 * int(lab.sysctl("net.core.wmem_max")))
        sock.set(socket.SO_SNDBUF, 1, SOL_SOCKET)
        equal(sock.send(bytes(sock.get_int(socket.SO_SNDBUF, SOL_SOCKET) // 2), (lan.A, 9)) > 1000, True)


for size, count in ((4096, 4), (4000, 5), (16384, 1), (16383, 2), (1, 16384)):

    def _check(size=size, count=count):
        with lan.here() as sock:
            sock.set(socket.SO_SNDBUF, 16384, SOL_SOCKET)
            return _fill(sock, size)

    # One message may overshoot. The Rust modules charge each message at least 64 bytes.
    CASES.row(f"16384 bytes of buffer take messages of {size}", _check, min(count, 256), c=count)


@CASES.case("empty messages are limited in number", c="they cost nothing")
def _():
    with lan.here() as sock:
        sock.set(socket.SO_SNDBUF, 16384, SOL_SOCKET)
        equal(_fill(sock, 0), 256)
        sock.set(CANCEL_SENT_TO, sin(*GONE))
        equal(_fill(sock, 0), 256)


@CASES.case("a full buffer is not writable, cancelling makes it so")
def _():
    with lan.here() as sock:
        sock.set(socket.SO_SNDBUF, 16384, SOL_SOCKET)
        assert sock.poll(select.POLLOUT)
        before = snapshot.counter("send_queue_full")
        equal(_fill(sock, 4096), 4)
        assert snapshot.counter("send_queue_full") > before
        equal(sock.poll(select.POLLOUT, 0.1), 0)
        epoll = select.epoll()
        epoll.register(sock.fd, select.EPOLLOUT | select.EPOLLET)
        equal(epoll.poll(0.1), [])
        sock.set(CANCEL_SENT_TO, sin(*GONE))
        equal(epoll.poll(2), [(sock.fd, select.EPOLLOUT)])
        equal(epoll.poll(0.1), [])
        assert sock.poll(select.POLLOUT)
        equal(_fill(sock, 4096), 4)


@CASES.case("send time-out")
def _():
    with lan.here() as sock:
        sock.set(socket.SO_SNDBUF, 4096, SOL_SOCKET)
        sock.timeout(send=0.3)
        sock.send(bytes(4096), GONE)
        start = time.monotonic()
        fails("ETIMEDOUT", lambda: sock.send(b"x", GONE))
        took = time.monotonic() - start
        assert 0.25 <= took < 5, f"it took {took:.2f} s"
        os.set_blocking(sock.fd, False)
        fails("EAGAIN", lambda: sock.send(b"x", GONE))


@CASES.case("cancelling lets a blocked sender go on")
def _():
    with lan.here() as sock:
        sock.set(socket.SO_SNDBUF, 4096, SOL_SOCKET)
        sock.send(bytes(4096), GONE)
        timer = threading.Timer(0.3, lambda: sock.set(CANCEL_SENT_TO, sin(*GONE)))
        start = time.monotonic()
        timer.start()
        equal(sock.send(b"x", (lan.A, 9)), 1)
        assert time.monotonic() - start > 0.25
        timer.join()


@CASES.case("acknowledgements let a blocked sender go on")
def _():
    one, two = lan.pair()
    with one, two:
        one.buffers(send=16384)
        two.buffers(receive=4 << 20)
        for number in range(200):
            equal(one.send(bytes([number]) * 4000, two.address), 4000)
        equal([two.recv().data[:1] for _ in range(200)], [bytes([n]) for n in range(200)])


def _interrupted_send(restart):
    """Sends into a full buffer in a child that gets SIGUSR1; what its sendmsg came to."""
    sock = lan.here()
    sock.set(socket.SO_SNDBUF, 4096, SOL_SOCKET)
    sock.send(bytes(4096), GONE)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.signal(signal.SIGUSR1, lambda *_: None)
        signal.siginterrupt(signal.SIGUSR1, not restart)
        os.write(writer, b".")
        result = outcome(lambda: sock.send(b"x", GONE))
        os.write(writer, str(result).encode())
        os._exit(0)
    os.read(reader, 1)
    lab.wait_until_it_waits(child)
    os.kill(child, signal.SIGUSR1)
    time.sleep(0.3)
    sock.set(CANCEL_SENT_TO, sin(*GONE))
    result = os.read(reader, 100).decode()
    os.waitpid(child, 0)
    os.close(reader)
    os.close(writer)
    sock.close()
    return result


CASES.row("a signal ends a blocked send", lambda: _interrupted_send(False), "EINTR")
CASES.row("a restarting signal does not", lambda: _interrupted_send(True), "1")


# RDS_CANCEL_SENT_TO.
def _cancel(raw, address=lan.A):
    with Sock.at(address) as sock:
        sock.set(CANCEL_SENT_TO, raw)


CASES.row("cancel on an unbound socket", lambda: Sock().set(CANCEL_SENT_TO, sin(*GONE)), "ENOTCONN")
CASES.row("cancel with nothing, unbound", lambda: Sock().set(CANCEL_SENT_TO, b""), "ENOTCONN")
CASES.row("cancel with nothing", lambda: _cancel(b""), "EINVAL")
CASES.row("cancel with 15 bytes", lambda: _cancel(sin(*GONE)[:15]), "EINVAL")
CASES.row("cancel with 16 bytes", lambda: _cancel(sin(*GONE)), "ok")
CASES.row("cancel with 27 bytes", lambda: _cancel(sin6(lan.NOBODY6, 9)[:27]), "ok")
CASES.row("cancel with 28 bytes", lambda: _cancel(sin6(lan.NOBODY6, 9)), "ok")
CASES.row("cancel with 128 bytes", lambda: _cancel(sin6(lan.NOBODY6, 9).ljust(128, b"\0")), "ok")


def _cancels(raw, address=lan.A, to=GONE):
    """Whether cancelling with `raw` removes what was sent to `to`."""
    with Sock.at(address) as sock:
        sock.set(socket.SO_SNDBUF, 4096, SOL_SOCKET)
        sock.send(bytes(4096), to)
        sock.set(CANCEL_SENT_TO, raw)
        return sock.poll(select.POLLOUT) != 0


CASES.row("cancel matches the address", lambda: _cancels(sin(lan.NOBODY, 9)), True)
CASES.row("cancel does not match another port", lambda: _cancels(sin(lan.NOBODY, 10)), False)
CASES.row("cancel does not match another address", lambda: _cancels(sin("10.7.0.98", 9)), False)
CASES.row("cancel of a sockaddr_storage", lambda: _cancels(sin(*GONE).ljust(128, b"\0")), True, c=False)
CASES.row("cancel of a mapped address", lambda: _cancels(sin6(f"::ffff:{lan.NOBODY}", 9)), True)
CASES.row("cancel IPv6", lambda: _cancels(sin6(lan.NOBODY6, 9), lan.A6, (lan.NOBODY6, 9)), True)
CASES.row("cancel IPv6, another port", lambda: _cancels(sin6(lan.NOBODY6, 8), lan.A6, (lan.NOBODY6, 9)), False)


@CASES.case("cancel removes only this socket's messages to one destination")
def _():
    with lan.here() as one, lan.here() as two:
        for sock, to in ((one, 9), (one, 10), (one, 9), (two, 9)):
            sock.send(bytes(100), (lan.NOBODY, to))
        one.set(CANCEL_SENT_TO, sin(lan.NOBODY, 9))
        left = [
            (message.lport, message.fport)
            for option in (snapshot.SEND6, snapshot.RETRANS6)
            for message in snapshot.messages(option)
            if message.peer == lan.NOBODY and message.lport in (one.port, two.port)
        ]
        equal(sorted(left), sorted([(one.port, 10), (two.port, 9)]))


@CASES.case("what is cancelled leaves a gap that the receiver accepts")
def _():
    with lan.here() as one, lan.there() as two:
        one.send(b"first", two.address)
        equal(two.recv().data, b"first")
        for number in range(20):
            one.send(b"%d" % number, two.address)
        one.set(CANCEL_SENT_TO, name(*two.address))
        one.send(b"last", two.address)
        got = []
        while not got or got[-1] != b"last":
            got.append(two.recv().data)
        numbers = [int(data) for data in got[:-1]]
        equal(numbers, sorted(set(numbers)))


@CASES.case("closing cancels")
def _():
    def queued(port):
        lists = snapshot.messages(snapshot.SEND6) + snapshot.messages(snapshot.RETRANS6)
        return [message for message in lists if message.lport == port]

    with lan.here() as sock:
        port = sock.port
        _fill(sock, 4096)
        assert queued(port)
    eventually(lambda: not queued(port), "messages of a closed socket")


# Receiving.
@CASES.case("nothing is refused for a full receive buffer")
def _():
    with lan.here() as one, lan.there() as two:
        two.buffers(receive=4096)
        one.send(bytes(60000), two.address)
        equal(two.recv().size, 60000)


# poll.
@CASES.case("a new socket is writable and not readable")
def _():
    with Sock() as sock:
        sock.poll(select.POLLIN)
        equal(sock.poll(select.POLLIN | select.POLLOUT | select.POLLPRI), select.POLLOUT)
    with lan.here() as sock:
        sock.poll(select.POLLIN)
        every = select.POLLIN | select.POLLRDNORM | select.POLLOUT | select.POLLWRNORM | select.POLLRDHUP
        equal(sock.poll(every), select.POLLOUT | select.POLLWRNORM)


@CASES.case("level-triggered epoll reports a message until it is read")
def _():
    with lan.here() as one, lan.here() as two:
        two.poll(select.POLLIN)
        epoll = select.epoll()
        epoll.register(two.fd, select.EPOLLIN | select.EPOLLRDNORM)
        equal(epoll.poll(0), [])
        one.send(b"x", two.address)
        want = [(two.fd, select.EPOLLIN | select.EPOLLRDNORM)]
        for _ in range(3):
            equal(epoll.poll(2), want)
        two.recv(9, MSG_DONTWAIT)
        equal(epoll.poll(0.1), [])


@CASES.case("edge-triggered epoll reports each arrival once")
def _():
    with lan.here() as one, lan.there() as two:
        one.send(b"x", two.address)
        two.recv()
        two.poll(select.POLLIN)
        epoll = select.epoll()
        epoll.register(two.fd, select.EPOLLIN | select.EPOLLET)
        equal(epoll.poll(0.1), [])
        for _ in range(3):
            one.send(b"x", two.address)
            equal(epoll.poll(5), [(two.fd, select.EPOLLIN)])
            equal(epoll.poll(0.1), [])
        equal([two.recv().size for _ in range(3)], [1, 1, 1])


@CASES.case("poll sleeps until a message comes")
def _():
    with lan.here() as one, lan.there() as two:
        one.send(b"x", two.address)
        two.recv()
        two.poll(select.POLLIN)
        timer = threading.Timer(0.3, lambda: one.send(b"x", two.address))
        start = time.monotonic()
        timer.start()
        assert two.poll(select.POLLIN, 10), "poll did not wake"
        took = time.monotonic() - start
        assert 0.2 < took < (8 if ON_DEBUG else 3), f"it took {took:.2f} s"
        timer.join()


@CASES.case("poll wakes when acknowledgements make room")
def _():
    with lan.here() as one, lan.there() as two:
        one.buffers(send=16384)
        two.buffers(receive=1 << 20)
        one.send(b"x", two.address)
        two.recv()
        for _ in range(100):
            if outcome(lambda: one.send(bytes(4000), two.address, MSG_DONTWAIT)) == "EAGAIN":
                assert one.poll(select.POLLOUT, 10), "poll did not wake"
