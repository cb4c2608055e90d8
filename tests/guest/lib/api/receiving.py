# SPDX-License-Identifier: GPL-2.0
"""recvmsg and what comes with a message: sections 1.6 and 1.10 of the reference; R-20, R-31."""

import ctypes
import mmap
import os
import select
import signal
import socket
import struct
import threading
import time

import lab
from api import lan
from cases import ON_C, Cases, equal, fails, outcome
from rdssock import (
    CMSG_RXPATH_LATENCY,
    MSG_CTRUNC,
    MSG_DONTWAIT,
    MSG_ERRQUEUE,
    MSG_OOB,
    MSG_PEEK,
    MSG_TRUNC,
    MSG_WAITALL,
    RXPATH_LATENCY,
    SOL_RDS,
    TIMESTAMP_NEW,
    TIMESTAMP_OLD,
    Sock,
)
from snapshot import counter

CASES = Cases("receive")
SOL_SOCKET = socket.SOL_SOCKET


def _pair(*data):
    one, two = lan.here(), lan.here()
    for piece in data:
        one.send(piece, two.address)
    return one, two


@CASES.case("flags that read nothing")
def _():
    # A sender that closes takes back what was not delivered yet.
    one, sock = _pair(b"abc")
    with one, sock:
        assert sock.readable(5)
        equal(sock.recv(9, MSG_OOB).size, 0)
        fails("EAGAIN", lambda: sock.recv(9, MSG_ERRQUEUE | MSG_DONTWAIT))
        fails("EAGAIN", lambda: sock.recv(9, MSG_ERRQUEUE))
        equal(sock.recv(9).data, b"abc")


@CASES.case("unbound and empty sockets have nothing")
def _():
    with Sock() as sock:
        fails("EAGAIN", lambda: sock.recv(9, MSG_DONTWAIT))
    with lan.here() as sock:
        fails("EAGAIN", lambda: sock.recv(9, MSG_DONTWAIT))
        os.set_blocking(sock.fd, False)
        fails("EAGAIN", sock.recv)


@CASES.case("peek leaves the message")
def _():
    one, two = _pair(b"first", b"second")
    with one, two:
        for _ in range(3):
            got = two.recv(100, MSG_PEEK)
            equal((got.data, got.source), (b"first", one.address))
        equal(two.recv().data, b"first")
        equal(two.recv(3, MSG_PEEK | MSG_DONTWAIT).data, b"sec")
        equal(two.recv().data, b"second")
        fails("EAGAIN", lambda: two.recv(9, MSG_PEEK | MSG_DONTWAIT))


@CASES.case("a short buffer cuts the message")
def _():
    one, two = _pair(b"abcdef", b"abcdef", b"abcdef", b"next")
    with one, two:
        got = two.recv(3)
        equal((got.size, got.data, got.flags), (3, b"abc", MSG_TRUNC))
        got = two.recv(3, MSG_TRUNC)
        equal((got.size, got.data, got.flags), (6, b"abc", MSG_TRUNC))
        got = two.recv(0, MSG_TRUNC)
        equal((got.size, got.flags), (6, MSG_TRUNC))
        got = two.recv(4, MSG_TRUNC)
        equal((got.size, got.data, got.flags), (4, b"next", 0))


@CASES.case("peek and cut at once")
def _():
    one, two = _pair(b"abcdef")
    with one, two:
        got = two.recv(2, MSG_PEEK | MSG_TRUNC)
        equal((got.size, got.data, got.flags), (6, b"ab", MSG_TRUNC))
        equal(two.recv().data, b"abcdef")


@CASES.case("cutting a long message of many pieces")
def _():
    data = os.urandom(100000)
    for one, two in (_pair(), lan.pair()):
        with one, two:
            for size in (1, 4095, 4096, 4097, 65537, 99999):
                one.send(data, two.address)
                got = two.recv(size)
                equal((got.size, got.flags), (size, MSG_TRUNC))
                assert got.data == data[:size], "wrong bytes"
            equal(two.pull(), None)


@CASES.case("MSG_WAITALL and SO_RCVLOWAT change nothing")
def _():
    one, two = _pair(b"ab", b"cd")
    with one, two:
        two.set(socket.SO_RCVLOWAT, 100, SOL_SOCKET)
        equal(two.recv(100, MSG_WAITALL).data, b"ab")
        equal(two.recv(100).data, b"cd")


@CASES.case("an empty message is a message")
def _():
    one, two = _pair(b"", b"x", b"")
    with one, two:
        got = two.recv()
        equal((got.size, got.source, got.flags), (0, one.address, 0))
        equal(two.recv().data, b"x")
        equal((two.recv().size, two.pull()), (0, None))


@CASES.case("names of every length")
def _():
    one, two = _pair(*[b"x"] * 6)
    with one, two:
        whole = two.recv(9)
        equal((whole.namelen, whole.name), (16, one.raw_name()))
        equal(two.recv(9, namelen=0).namelen, 0)
        for size in (1, 8, 15):
            got = two.recv(9, namelen=size)
            equal((got.namelen, got.name), (16, whole.name[:size]))
        equal(two.recv(9, namelen=16).name, whole.name)


@CASES.case("names of IPv6")
def _():
    one, two = lan.here(lan.A6), lan.here(lan.A6)
    with one, two:
        one.send(b"x", two.address)
        one.send(b"x", two.address)
        equal(two.recv(9, namelen=28).name, one.raw_name())
        got = two.recv(9, namelen=20)
        equal((got.namelen, got.name), (28, one.raw_name()[:20]))


@CASES.case("receive time-out")
def _():
    with lan.here() as sock:
        sock.timeout(receive=0.3)
        start = time.monotonic()
        fails("ETIMEDOUT", sock.recv)
        took = time.monotonic() - start
        assert 0.25 <= took < 5, f"it took {took:.2f} s"
        fails("EAGAIN", lambda: sock.recv(9, MSG_DONTWAIT))
        fails("ETIMEDOUT", lambda: sock.recv(9, MSG_PEEK))


@CASES.case("a message ends the wait")
def _():
    one, two = _pair()
    with one, two:
        timer = threading.Timer(0.3, lambda: one.send(b"late", two.address))
        timer.start()
        equal(two.recv().data, b"late")
        timer.join()
        timer = threading.Timer(0.3, lambda: one.send(b"later", two.address))
        timer.start()
        two.timeout(receive=10)
        equal(two.recv(9, MSG_PEEK).data, b"later")
        timer.join()


def _interrupt(restart):
    """Receives in a child that gets SIGUSR1 after a while; what its recvmsg came to."""
    one, two = _pair()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.signal(signal.SIGUSR1, lambda *_: None)
        signal.siginterrupt(signal.SIGUSR1, not restart)
        os.write(writer, b".")
        try:
            result = two.recv().data
        except OSError as error:
            result = str(error.errno).encode()
        os.write(writer, result)
        os._exit(0)
    os.read(reader, 1)
    lab.wait_until_it_waits(child)
    os.kill(child, signal.SIGUSR1)
    time.sleep(0.3)
    one.send(b"data", two.address)
    result = os.read(reader, 100)
    os.waitpid(child, 0)
    for end in (reader, writer):
        os.close(end)
    one.close()
    two.close()
    return result


CASES.row("a signal ends the wait", lambda: _interrupt(restart=False), b"4")
CASES.row("a restarting signal does not", lambda: _interrupt(restart=True), b"data")


@CASES.case("R-31 a bad buffer leaves the message queued")
def _():
    for size in (5, 600, 5000, 70000):
        for one, two in (_pair(), lan.pair(), (Sock.at("127.0.0.1"), Sock.at("127.0.0.1"))):
            with one, two:
                data = os.urandom(size)
                one.send(data, two.address)
                one.send(b"second", two.address)
                assert two.readable(5)
                good = ctypes.create_string_buffer(2)
                for iov in (
                    [(4096, size)],
                    [(0, size)],
                    [(0xFFFF888000000000, size)],
                    [(2**64 - 4096, 100)],
                    [(ctypes.addressof(good), 2), (4096, size)],
                ):
                    fails("EFAULT", lambda two=two, iov=iov: two.recv(iov=iov, flags=MSG_DONTWAIT))
                equal(two.recv(size + 1).data, data)
                equal(two.recv().data, b"second")


@CASES.case("R-31 a failed read is not booked")
def _():
    one, two = _pair(b"x" * 100)
    with one, two:
        for _ in range(50):
            fails("EFAULT", lambda: two.recv(iov=[(4096, 100)], flags=MSG_DONTWAIT))
        before = counter("recv_delivered")
        equal(two.recv().size, 100)
        equal(counter("recv_delivered"), before + 1)


@CASES.case("R-31 a read that fails lets no later message pass")
def _():
    data = os.urandom(1 << 20)
    for turn in range(20):
        one, two = _pair()
        with one, two:
            one.buffers(send=1 << 22)
            two.buffers(receive=1 << 22)
            one.send(data, two.address)
            one.send(b"second", two.address)
            # To copy to memory that was never touched takes long, and fails at the last byte.
            memory = mmap.mmap(-1, len(data), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            results = []
            reader = threading.Thread(
                target=lambda: results.append(
                    outcome(lambda: two.recv(iov=[(place, len(data) - 1), (4096, 1)], flags=MSG_DONTWAIT).size)
                )
            )
            reader.start()
            time.sleep(turn * 2e-4)
            equal(two.recv(4, MSG_DONTWAIT).data, data[:4])
            reader.join()
            # It may have begun when the first message was gone.
            equal(two.pull(), b"second" if results == ["EFAULT"] else None)


@CASES.case("several readers share the messages")
def _():
    one, two = _pair()
    with one, two:
        got, threads = [], []

        def read():
            while True:
                data = two.recv().data
                if data == b"end":
                    return
                got.append(int(data))

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(300):
            one.send(b"%d" % number, two.address)
        for _ in threads:
            one.send(b"end", two.address)
        for thread in threads:
            thread.join()
        equal(sorted(got), list(range(300)))


# Times.
def _stamped(option, level, size=256):
    one, two = _pair()
    with one, two:
        two.set(option, 1, level)
        before = time.time()
        one.send(b"x", two.address)
        got = two.recv(9, control=size)
        after = time.time()
        return got, before, after


def _check_stamp(got, kind, before, after):
    equal([(level, number, len(data)) for level, number, data in got.control], [(SOL_SOCKET, kind, 16)])
    seconds, micros = struct.unpack("=qq", got.control[0][2])
    assert 0 <= micros < 1_000_000
    when = seconds + micros / 1e6
    assert before - 0.01 <= when <= after + 0.01, f"{when} is not between {before} and {after}"


for what, option, level, kind in (
    ("SO_TIMESTAMP", 29, SOL_SOCKET, 29),
    ("SO_TIMESTAMP_NEW", 63, SOL_SOCKET, 63),
    ("SO_TIMESTAMP of RDS", TIMESTAMP_OLD, SOL_RDS, 29),
    ("SO_TIMESTAMP_NEW of RDS", TIMESTAMP_NEW, SOL_RDS, 63),
):

    def _check(option=option, level=level, kind=kind):
        got, before, after = _stamped(option, level)
        _check_stamp(got, kind, before, after)

    CASES.row(what, _check, "ok")


@CASES.case("the time is that of queueing, and only if it was wanted then")
def _():
    one, two = _pair(b"before")
    with one, two:
        two.set(TIMESTAMP_OLD, 1)
        sent = time.time()
        one.send(b"x", two.address)
        queued = time.time()
        time.sleep(0.3)
        equal(two.recv(9, control=256).control, [])
        _check_stamp(two.recv(9, control=256), 29, sent, queued)
        one.send(b"x", two.address)
        two.set(TIMESTAMP_OLD, 0)
        equal(two.recv(9, control=256).control, [])


for size in (0, 3, 5, 8):
    CASES.row(
        f"timestamp option of {size} bytes", lambda n=size: Sock().set(TIMESTAMP_OLD, b"\1\0\0\0\0\0\0\0"[:n]), "EFAULT"
    )


@CASES.case("a small control buffer is marked")
def _():
    got, _, _ = _stamped(29, SOL_SOCKET, size=20)
    equal((got.size, got.flags), (1, MSG_CTRUNC))
    got, _, _ = _stamped(29, SOL_SOCKET, size=0)
    equal(got.size, 1)


def _trace(*raw):
    return bytes(raw).ljust(4, b"\0")


# the positions are 0, 1, 2.
for raw in ((1, 3), (1, 255), (2, 0, 3), (3, 0, 1, 3), (3, 3, 0, 0), (4, 0, 0, 0), (255, 0, 0, 0)):
    CASES.row(f"R-20 trace {raw}", lambda r=raw: Sock().set(RXPATH_LATENCY, _trace(*r)), "EFAULT")
for raw in ((0,), (1, 0), (1, 2), (2, 2, 2), (3, 2, 1, 0), (0, 9, 9, 9), (1, 1, 9, 9)):
    CASES.row(f"R-20 trace {raw}", lambda r=raw: Sock().set(RXPATH_LATENCY, _trace(*r)), "ok")
for size in (0, 1, 3, 5):
    CASES.row(f"trace option of {size} bytes", lambda n=size: Sock().set(RXPATH_LATENCY, bytes(n)), "EFAULT")


@CASES.case("R-20 latency of the points asked for")
def _():
    for one, two in (_pair(), lan.pair()):
        with one, two:
            two.set(RXPATH_LATENCY, _trace(3, 2, 0, 1))
            one.send(b"x", two.address)
            assert two.readable(5)
            time.sleep(0.2)
            got = two.recv(9, control=256)
            equal([(level, kind, len(data)) for level, kind, data in got.control], [(SOL_RDS, CMSG_RXPATH_LATENCY, 32)])
            data = got.control[0][2]
            equal(data[:8], bytes([3, 2, 0, 1, 0, 0, 0, 0]))
            times = struct.unpack("=QQQ", data[8:])
            assert times[0] >= 150_000_000, f"queued to delivered took {times[0]} ns"
            # C has no time of the header for messages that do not leave the machine.
            assert ON_C or (times[1] < 10**10 and times[2] < 10**10), f"{times}"
            two.set(RXPATH_LATENCY, _trace(1, 2))
            one.send(b"x", two.address)
            data = two.recv(9, control=256).control[0][2]
            equal((data[:8], data[16:]), (bytes([1, 2, 0, 0, 0, 0, 0, 0]), bytes(16)))


@CASES.case("R-20 a bad position turns the trace off")
def _():
    one, two = _pair()
    with one, two:
        two.set(RXPATH_LATENCY, _trace(1, 2))
        fails("EFAULT", lambda: two.set(RXPATH_LATENCY, _trace(1, 3)))
        one.send(b"x", two.address)
        equal(two.recv(9, control=256).control, [])


@CASES.case("timestamp before latency")
def _():
    one, two = _pair()
    with one, two:
        two.set(RXPATH_LATENCY, _trace(1, 0))
        two.set(TIMESTAMP_OLD, 1)
        one.send(b"x", two.address)
        kinds = [(level, kind) for level, kind, _ in two.recv(9, control=256).control]
        equal(kinds, [(SOL_SOCKET, 29), (SOL_RDS, CMSG_RXPATH_LATENCY)])


@CASES.case("counters of a delivery")
def _():
    names = ("recv_queued", "recv_delivered", "copy_to_user", "recv_bytes_added_to_sock", "recv_bytes_freed_fromsock")
    before = [counter(name) for name in names]
    one, two = _pair(b"x" * 1000)
    with one, two:
        equal(two.recv().size, 1000)
        equal([counter(name) - old for name, old in zip(names, before)], [1, 1, 1000, 1000, 1000])


@CASES.case("messages that were not read go with the socket")
def _():
    one, two = _pair(*[b"x" * 1000] * 50)
    with one:
        assert two.poll(select.POLLIN)
        two.close()
        one.send(b"to nobody", (lan.A, 4321))
