# SPDX-License-Identifier: GPL-2.0
"""RDS_INFO: section 2 of the reference; R-10."""

import ctypes
import mmap
import os
import threading

import snapshot
from address import sin, sin6
from api import lan
from cases import ON_C, ON_DEBUG, Cases, equal, eventually, fails
from rdssock import MSG_DONTWAIT, Sock, call

CASES = Cases("snapshot")
V4_OF = {
    snapshot.CONNECTIONS6: snapshot.CONNECTIONS,
    snapshot.SEND6: snapshot.SEND,
    snapshot.RETRANS6: snapshot.RETRANS,
    snapshot.RECV6: snapshot.RECV,
    snapshot.SOCKETS6: snapshot.SOCKETS,
    snapshot.TCP_SOCKETS6: snapshot.TCP_SOCKETS,
}


def _get(sock, option, buffer, size):
    """The bare call: (what it came to, length written back)."""
    length = ctypes.c_int(size)
    try:
        result = call("getsockopt", sock.fd, 276, option, buffer, ctypes.byref(length))
    except OSError as error:
        result = os.strerror(error.errno)
        return error.errno, length.value
    return result, length.value


ENOSPC, EINVAL, EFAULT = 28, 22, 14


def _settled():
    """Whether all connections to the neighbour have eight paths, and the handshakes on them are over.

    Earlier cases leave connections of other local addresses and types of service behind.
    """
    peers = [sock.peer for sock in snapshot.tcp_sockets()]
    counts = [peers.count(peer) for peer in (lan.B, lan.B6)]
    whole = all(count > 0 and count % 8 == 0 for count in counts)
    return whole and not snapshot.raw(snapshot.RETRANS6)[1]


class Scene:
    """Sockets, connections and messages of every kind, so that no list is empty."""

    def __enter__(self):
        self.socks = []
        keep = self.socks.append
        for one, two, gone in ((lan.A, lan.B, lan.NOBODY), (lan.A6, lan.B6, lan.NOBODY6)):
            sender, own, far = lan.here(one), lan.here(one), lan.there(two)
            for sock in (sender, own, far):
                keep(sock)
            sender.send(b"x" * 11, own.address)
            sender.send(b"y" * 12, far.address)
            for _ in range(3):
                sender.send(b"z" * 13, (gone, 77))
            assert far.readable(10)
        # From then on nothing happens but retries of the connections to nobody.
        eventually(_settled, "the connections have all their paths", 20)
        keep(Sock())
        self.v4, self.own4, self.far4, self.v6, self.own6, self.far6, self.unbound = self.socks
        return self

    def __exit__(self, *_):
        for sock in self.socks:
            sock.close()


@CASES.case("sizes of records, probes and buffers that are too small")
def _():
    with Scene(), Sock() as sock:
        for option, each in snapshot.SIZES.items():
            size, data = snapshot.raw(option, sock)
            equal(size, each, f"record size of {option}")
            equal(len(data) % each, 0, f"length of {option}")
            total = len(data)
            if total == 0:
                equal(_get(sock, option, None, 0), (each, 0), f"probe of {option}")
                continue
            equal(_get(sock, option, None, 0), (ENOSPC, total), f"probe of {option}")
            buffer = ctypes.create_string_buffer(total + 100)
            for wanted in (1, each - 1, each, total - 1):
                if wanted < total:
                    equal(_get(sock, option, buffer, wanted), (ENOSPC, total), f"{wanted} bytes for {option}")
            equal(_get(sock, option, buffer, total), (each, total), f"exact buffer for {option}")
            equal(_get(sock, option, buffer, total + 99), (each, total), f"large buffer for {option}")


@CASES.case("nothing is written behind the snapshot")
def _():
    with Scene(), Sock() as sock:
        for option in snapshot.SIZES:
            _, data = snapshot.raw(option, sock)
            buffer = ctypes.create_string_buffer(b"\xee" * 20000, 20000)
            _, total = _get(sock, option, buffer, 20000)
            equal(buffer.raw[total:], b"\xee" * (20000 - total), f"what follows {option}")
            equal(total, len(data))


@CASES.case("lists are empty at first")
def _():
    with Sock() as sock:
        for option in (snapshot.RECV, snapshot.RECV6, snapshot.SOCKETS):
            equal(_get(sock, option, None, 0), (snapshot.SIZES[option], 0), f"{option}")


for number in (10002, 10008, 10009, 10010, 10017, 10018, 10020, 10021, 9999):
    CASES.row(f"option {number}", lambda n=number: Sock().get(n, 4096), "ENOPROTOOPT")
    CASES.row(f"probe of option {number}", lambda n=number: Sock().get(n, 0), "ENOPROTOOPT")


@CASES.case("bad lengths and buffers")
def _():
    with Sock() as sock:
        for size in (-1, -(2**31), 2**31 - 1, 2**31 - 4095):
            equal(_get(sock, snapshot.COUNTERS, None, size)[0], EINVAL, f"length {size}")
        for where in (4096, 2**63 + 4096):
            equal(_get(sock, snapshot.COUNTERS, ctypes.c_void_p(where), 4096)[0], EFAULT, f"buffer at {where:#x}")
        fails("EFAULT", lambda: call("getsockopt", sock.fd, 276, snapshot.COUNTERS, None, None))


@CASES.case("read-only buffers")
def _():
    with Sock() as sock:
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        area = libc.mmap(None, ctypes.c_size_t(8192), mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        assert _get(sock, snapshot.COUNTERS, ctypes.c_void_p(area), 8192)[0] == EFAULT


@CASES.case("any offset, across pages")
def _():
    with Scene(), Sock() as sock:
        area = mmap.mmap(-1, 4 * mmap.PAGESIZE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(area))
        for option in (snapshot.SOCKETS6, snapshot.RECV6, snapshot.SEND6):
            each, data = snapshot.raw(option, sock)
            for offset in (1, 4095, 4096 - 7, 4096 - each, 4096 - each + 1, 64):
                result = _get(sock, option, ctypes.c_void_p(base + offset), len(data) + 16)
                equal(result, (each, len(data)), f"{option} at offset {offset}")
                equal(area[offset : offset + len(data)], data, f"{option} at offset {offset}")


@CASES.case("counters: names, order, padding")
def _():
    records = snapshot.records(snapshot.COUNTERS)
    names = [record[:32].split(b"\0")[0].decode() for record in records]
    want = snapshot.CORE_COUNTERS + snapshot.TCP_COUNTERS + ([] if ON_C else snapshot.DROP_COUNTERS)
    equal(names, want)
    for record in records:
        equal(record[:32].rstrip(b"\0").count(b"\0"), 0, "a name with garbage behind it")


@CASES.case("sockets")
def _():
    with Scene() as scene:
        scene.v4.connect(sin(lan.B, 5555))
        scene.v6.connect(sin6(lan.B6, 6666))
        scene.v4.buffers(20000, 30000)
        inode = {sock: os.fstat(sock.fd).st_ino for sock in scene.socks}
        by_inode = {sock.inode: sock for sock in snapshot.sockets()}
        equal(
            by_inode[inode[scene.v4]],
            snapshot.Socket(20000, lan.A, lan.B, scene.v4.port, 5555, 30000, inode[scene.v4]),
        )
        found = by_inode[inode[scene.v6]]
        equal((found.bound, found.peer, found.bport, found.pport), (lan.A6, lan.B6, scene.v6.port, 6666))
        equal((found.sndbuf, found.rcvbuf), (106496, 106496))
        found = by_inode[inode[scene.unbound]]
        equal((found.bound, found.peer, found.bport, found.pport), ("::", "::", 0, 0))
        assert inode[scene.far4] not in by_inode, "a socket of another namespace is listed"
        old = {sock.inode: sock for sock in snapshot.sockets(v6=False)}
        equal(
            old[inode[scene.v4]], snapshot.Socket(20000, lan.A, lan.B, scene.v4.port, 5555, 30000, inode[scene.v4])
        )
        equal(old[inode[scene.own4]].peer, "0.0.0.0")
        for sock in (scene.v6, scene.unbound, scene.far4):
            assert inode[sock] not in old, "a socket that is not IPv4"


@CASES.case("connections")
def _():
    with Scene():
        for v6, pairs in ((False, ((lan.A, lan.B),)), (True, ((lan.A, lan.B), (lan.A6, lan.B6)))):
            every = snapshot.connections(v6=v6)
            equal(len({(c.local, c.peer, c.transport) for c in every}), len(every))
            for local, peer in pairs:
                found = next(c for c in every if (c.local, c.peer) == (local, peer))
                equal(found.transport, "tcp")
                assert found.flags & snapshot.CONNECTED, f"flags {found.flags}"
                assert found.next_tx > 1 and found.next_rx >= 1, f"{found}"
                if not v6:
                    equal(found.tos, 0)
            found = next(c for c in every if (c.local, c.peer) == (lan.A, lan.A))
            equal((found.transport, found.flags & snapshot.CONNECTED), ("loopback", snapshot.CONNECTED))
            found = next(c for c in every if (c.local, c.peer) == (lan.A, lan.NOBODY))
            assert not found.flags & snapshot.CONNECTED, f"flags {found.flags}"
        assert not any(":" in c.local for c in snapshot.connections(v6=False))
        # The last byte of the transport's name means something to old tools.
        for record in snapshot.records(snapshot.CONNECTIONS):
            equal(record[24:40].split(b"\0")[0].ljust(16, b"\0"), record[24:40])
            equal(record[39], 0)


@CASES.case("R-10 messages")
def _():
    with Scene() as scene:
        for v6 in (False, True):
            lists = (snapshot.RECV6, snapshot.SEND6, snapshot.RETRANS6) if v6 else (
                snapshot.RECV, snapshot.SEND, snapshot.RETRANS)
            for sender, own, gone in ((scene.v4, scene.own4, lan.NOBODY), (scene.v6, scene.own6, lan.NOBODY6)):
                received = [m for m in snapshot.messages(lists[0]) if m.lport == own.port and m.fport == sender.port]
                waiting = snapshot.messages(lists[1]) + snapshot.messages(lists[2])
                queued = [m for m in waiting if (m.peer, m.lport) == (gone, sender.port)]
                if gone == lan.NOBODY6 and not v6:
                    equal((received, queued), ([], []))
                    continue
                if ON_C and not v6:
                    # C lists them with 0.0.0.0 for both addresses.
                    equal(queued, [])
                    continue
                here = sender.address[0]
                equal(len(received), 1)
                equal(received[0], snapshot.Message(received[0].seq, 11, here, here, own.port, sender.port, 0, 0))
                assert received[0].seq > 0
                equal([(m.len, m.local, m.fport, m.flags, m.tos) for m in queued], [(13, here, 77, 0, 0)] * 3)
                numbers = [m.seq for m in queued]
                equal(numbers, list(range(numbers[0], numbers[0] + 3)))


@CASES.case("what was acknowledged is on no list")
def _():
    with lan.here() as one, lan.there() as two:
        for _ in range(20):
            one.send(bytes(1000), two.address)
        for _ in range(20):
            two.recv()

        def left():
            lists = snapshot.messages(snapshot.SEND6) + snapshot.messages(snapshot.RETRANS6)
            return [m for m in lists if m.lport == one.port]

        eventually(lambda: not left(), "all is acknowledged")


@CASES.case("TCP sockets")
def _():
    with Scene() as scene:
        listed = snapshot.tcp_sockets()
        found = next(t for t in listed if (t.local, t.peer) == (lan.A, lan.B))
        # This side has the smaller address, so it connected, from a port that says "path 0".
        equal((found.pport, found.lport % 8, found.hdr_rem, found.data_rem), (16385, 0, 48, 0))
        assert found.sent and found.una and found.seen, f"{found}"
        found = next(t for t in listed if (t.local, t.peer) == (lan.A6, lan.B6))
        equal(found.pport, 16385)
        old = snapshot.tcp_sockets(v6=False)
        assert any((t.local, t.peer, t.pport) == (lan.A, lan.B, 16385) for t in old)
        assert not any(":" in t.local for t in old)
        equal(snapshot.SIZES[snapshot.TCP_SOCKETS], len(snapshot.records(snapshot.TCP_SOCKETS)[0]))
        assert scene


@CASES.case("every mapped form has its IPv4 form")
def _():
    with Scene(), Sock() as sock:
        for new, old in V4_OF.items():
            if new in (snapshot.SOCKETS6, snapshot.RECV6):
                continue
            _, data6 = snapshot.raw(new, sock)
            _, data4 = snapshot.raw(old, sock)
            assert len(data4) // snapshot.SIZES[old] <= len(data6) // snapshot.SIZES[new]


@CASES.case("snapshots while everything changes", limit=60)
def _():
    stop = threading.Event()
    seconds = 2

    def churn():
        while not stop.is_set():
            with lan.here() as one, lan.there() as two, Sock() as _:
                for _ in range(5):
                    one.send(b"x", two.address, MSG_DONTWAIT)
                    one.send(b"x", one.address, MSG_DONTWAIT)

    threads = [threading.Thread(target=churn) for _ in range(2)]
    for thread in threads:
        thread.start()
    timer = threading.Timer(seconds, stop.set)
    timer.start()
    rounds = 0
    with Sock() as sock:
        while not stop.is_set():
            for option, each in snapshot.SIZES.items():
                size, data = snapshot.raw(option, sock)
                equal((size, len(data) % each), (each, 0))
            rounds += 1
    for thread in threads:
        thread.join()
    assert rounds


@CASES.case("reading connections does not hold up messages", limit=90)
def _():
    # Whoever looks at a connection must not make a sender believe that somebody else sends its message.
    stop = threading.Event()

    def look():
        size = ctypes.c_int(0)
        with Sock() as sock:
            buffer = ctypes.create_string_buffer(65536)
            libc = ctypes.CDLL(None)
            while not stop.is_set():
                size.value = 65536
                libc.getsockopt(sock.fd, 276, snapshot.CONNECTIONS6, buffer, ctypes.byref(size))

    watchers = [threading.Thread(target=look) for _ in range(2)]
    for watcher in watchers:
        watcher.start()
    try:
        # Over loopback nothing else makes up for it.
        with Sock.at("127.0.0.1") as one, Sock.at("127.0.0.1") as two:
            for sock in (one, two):
                sock.timeout(receive=3)
            for _ in range(500 if ON_DEBUG else 3000):
                one.send(b"ping", two.address)
                equal(two.recv(9).data, b"ping")
                two.send(b"pong", one.address)
                equal(one.recv(9).data, b"pong")
    finally:
        stop.set()
        for watcher in watchers:
            watcher.join()


@CASES.case("counters are those of the module, not of the namespace")
def _():
    import lab

    with lab.inside(lan.PEER):
        equal(snapshot.counter("send_queued") > 0, True)
