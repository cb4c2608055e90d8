# SPDX-License-Identifier: GPL-2.0
"""What a peer may say on a connection that was accepted from it; R-45."""

import fcntl
import os
import random
import socket
import struct
import termios
import time

import snapshot
import wire
from cases import ON_DEBUG, Cases, equal, eventually, fails, outcome
from hostile.field import HOST, SLOW, Peer, fresh_address, nothing, said, sink
from memory import Watch
from rdssock import MSG_DONTWAIT

CASES = Cases("stream")
MIB = 1 << 20
LONGEST = MIB + 65536


@CASES.case("an ordinary peer is served")
def _():
    with sink() as sock, Peer(greet=True) as peer:
        peer.message(b"hello", 4001, sock.port)
        got = sock.recv()
        equal((got.data, got.source), (b"hello", (peer.address, 4001)))
        sock.send(b"hello back", (peer.address, 4001))
        equal(peer.data(4001), b"hello back")
        peer.alive()


for length in (LONGEST + 1, 2 * MIB, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):

    def _check(length=length):
        watch = Watch()
        resets = snapshot.counter("conn_reset")
        with sink() as sock:
            peer = Peer(greet=True)
            with peer:
                peer.send(wire.header(9, length, 4001, sock.port))
                # The connection is over, so the rest is not even taken.
                rest = bytes(MIB)
                for _ in range(64):
                    if not peer.send(rest):
                        break
                    watch.look()
                assert peer.dropped(), "the connection goes on"
            nothing(sock)
            watch.bounded(16 * 1024, "a length that no message has")
            eventually(lambda: snapshot.counter("conn_reset") > resets, "the reset is counted")
            # The same peer may come back.
            with Peer(peer.address, greet=True) as again:
                again.message(b"sane", 4001, sock.port, seq=1)
                equal(sock.recv().data, b"sane")

    CASES.case(f"R-45 a message of {length:#x} bytes ends the connection", c="any length is accepted", memory=True)(
        _check
    )


@CASES.case("R-45 the log says why", c="any length is accepted")
def _():
    assert said("sent a bad header"), "nothing in the kernel log"


@CASES.case("the longest message that a peer of another make may send")
def _():
    with sink() as sock, Peer(greet=True) as peer:
        data = os.urandom(LONGEST)
        peer.message(data, 4001, sock.port)
        got = sock.recv(2 * MIB)
        equal(got.size, LONGEST)
        assert got.data == data, "changed"
        peer.alive()


def _stopped(sock, peer):
    """Has a peer send on path 0 until the module reads no further; what it has sent."""
    peer.greet(npaths=8)
    data = [bytes([number]) * 65536 for number in range(MIB // 65536 + 1)] + [b"early"]
    for piece in data:
        peer.message(piece, 4001, sock.port)
    # Order is kept for what has arrived.
    eventually(lambda: not unsent(peer.sock), "all is acknowledged")
    return data


def unsent(sock):
    """Bytes that a TCP socket has to send and that were not acknowledged."""
    return struct.unpack("=i", fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))[0]


def _heads(sock, count):
    """The first bytes of the next messages."""
    return [sock.recv().data[:5] for _ in range(count)]


@CASES.case("what another path brings waits until path 0 is read", c="it overtakes")
def _():
    with sink(receive=10000) as full, sink() as empty, Peer() as first:
        data = _stopped(full, first)
        with Peer(first.address, path=1) as second:
            second.message(b"late", 4001, empty.port)
            time.sleep(0.5 * SLOW)
            equal(empty.pull(), None)
            equal(_heads(full, len(data)), [piece[:5] for piece in data])
            equal(empty.recv().data, b"late")


@CASES.case("a congestion map that had to wait with it says of no port that it is congested", c="it overtakes")
def _():
    with sink(receive=10000) as full, sink() as empty, Peer() as first:
        data = _stopped(full, first)
        with Peer(first.address, path=1) as second, Peer(first.address, path=2) as third:
            second.message(b"late", 4001, empty.port)
            second.send(wire.header(0, wire.MAP, 0, 0, wire.F_MAP) + b"\xff" * wire.MAP)
            time.sleep(0.5 * SLOW)
            third.send(wire.header(0, wire.MAP, 0, 0, wire.F_MAP) + bytes(wire.MAP))
            time.sleep(0.5 * SLOW)
            equal(_heads(full, len(data)), [piece[:5] for piece in data])
            equal(empty.recv().data, b"late")
            time.sleep(0.5 * SLOW)
            equal(outcome(lambda: empty.send(b"x", (first.address, 4001), MSG_DONTWAIT)), 1)


for how, reset in (("closed", False), ("reset", True)):

    def _check(reset=reset):
        with sink(receive=10000) as full, Peer() as first:
            data = _stopped(full, first)
            with Peer(first.address, path=1) as second:
                second.message(b"late", 4001, full.port)
                time.sleep(0.5 * SLOW)
                second.close(reset)
            time.sleep(0.5)
            equal(_heads(full, len(data) + 1), [*(piece[:5] for piece in data), b"late"])

    CASES.case(f"it waits even if that path is {how}", c="it overtakes")(_check)


@CASES.case("nothing that has a number is sent on a connection that may be another path's", c="everything is")
def _():
    with sink() as sock:
        with Peer(path=4) as stranger:
            head, _ = stranger.wait_for(lambda h: (h.sport, h.dport) == (wire.PROBE_PORT, 0), "the probe")
            equal(head.seq, 0)
            sock.send(b"first", (stranger.address, 4001))
            time.sleep(0.5 * SLOW)
            stranger.read()
            equal([head for head, _ in stranger.got if head.flags != wire.F_MAP], [])
            stranger.send(wire.probe(1, 8, reply=True))
            assert stranger.dropped(), "the connection of path 4 stays that of path 0"
        with Peer(stranger.address) as first:
            equal(first.data(4001, 20), b"first")


@CASES.case("headers and messages that are cut by the end of the connection")
def _():
    with sink() as sock:
        address = fresh_address()
        whole = wire.message(1, b"x" * 3000, 4001, sock.port)
        for cut in (0, 1, 20, 47, 48, 49, 1000, len(whole) - 1):
            for reset in (False, True):
                peer = Peer(address, greet=True)
                peer.send(whole[:cut])
                peer.close(reset)
                nothing(sock)
        with Peer(address, greet=True) as peer:
            peer.message(b"y", 4001, sock.port)
            equal(sock.recv().data, b"y")


@CASES.case("a message that is cut and sent again arrives once")
def _():
    with sink() as sock:
        address = fresh_address()
        for size in (10, 3000, 100000):
            data = os.urandom(size)
            with Peer(address, greet=True) as peer:
                peer.send(wire.message(50, data, 4001, sock.port)[: 48 + size // 2])
            with Peer(address, greet=True) as peer:
                peer.message(data, 4001, sock.port, wire.F_RETRANS | wire.F_ACK, seq=50)
                assert sock.recv(MIB).data == data
                peer.message(b"reset", 4001, sock.port, seq=1)
                equal(sock.recv().data, b"reset")
                nothing(sock)


@CASES.case("a message that arrived before the end of the connection is not delivered again")
def _():
    with sink() as sock:
        address = fresh_address()
        for number in range(10):
            peer = Peer(address, greet=True, first=1000 * number + 1)
            peer.message(b"%d" % number, 4001, sock.port, seq=1000 * number + 10)
            equal(sock.recv().data, b"%d" % number)
            peer.close(number % 2 == 0)
            # A lower number in the greeting would mean that the peer has begun anew.
            with Peer(address, greet=True, first=1000 * number + 11) as peer:
                peer.message(b"%d" % number, 4001, sock.port, wire.F_RETRANS, seq=1000 * number + 10)
                peer.alive()
                nothing(sock)


@CASES.case("what was sent right before the end of the connection arrives")
def _():
    with sink() as sock:
        address = fresh_address()
        for _ in range(10):
            with Peer(address, greet=True) as peer:
                peer.send(b"".join(wire.message(200 + n, b"%d" % n, 4001, sock.port) for n in range(50)))
            equal([sock.recv().data for _ in range(50)], [b"%d" % n for n in range(50)])


# Fields that mean nothing over TCP.
@CASES.case("checksums, padding, credits and acknowledgements do not matter")
def _():
    with sink() as sock, Peer(greet=True) as peer:
        pick = random.Random(1)
        for number in range(100):
            peer.message(
                b"%d" % number,
                4001,
                sock.port,
                csum=pick.randbytes(2),
                pad=pick.randbytes(4),
                credit=pick.randrange(256),
                ack=pick.randrange(2**64),
            )
            equal(sock.recv().data, b"%d" % number)
        peer.alive()


@CASES.case("flags that mean nothing over TCP")
def _():
    with sink() as sock, Peer(greet=True) as peer:
        every = [flags for flags in range(256) if flags != wire.F_MAP]
        for flags in every:
            peer.message(b"%d" % flags, 4001, sock.port, flags)
        equal([sock.recv().data for _ in every], [b"%d" % flags for flags in every])
        peer.alive()


@CASES.case("unknown extension headers")
def _():
    with sink() as sock, Peer(greet=True) as peer:
        for kind in range(256):
            peer.message(b"%d" % kind, 4001, sock.port, ext=bytes([kind]) * 16)
        equal([sock.recv().data for _ in range(256)], [b"%d" % kind for kind in range(256)])
        peer.alive()


@CASES.case("random extension headers, with data, pings, pongs and probes")
def _():
    pick = random.Random(2)
    with sink() as sock, Peer(greet=True) as peer:
        for number in range(100 if ON_DEBUG else 500):
            ext = bytes(pick.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 255)) for _ in range(16))
            port = pick.choice(((4001, sock.port), (1, 0), (0, 1), (4001, 0), (0, sock.port), (1, 1), (0, 0)))
            peer.message(b"" if number % 2 else b"x", *port, ext=ext)
        peer.alive()
        while sock.pull() is not None:
            pass


@CASES.case("probes that promise anything")
def _():
    with Peer(greet=True) as peer:
        for npaths in (0, 1, 2, 8, 9, 255, 65535):
            for generation in (0, 1, 0xFFFFFFFF):
                for reply in (False, True):
                    peer.send(wire.probe(next(peer.seq), npaths, generation, reply))
        peer.alive()
    with sink() as sock, Peer(peer.address, greet=True) as peer:
        sock.send(b"still one path", (peer.address, 4001))
        equal(peer.data(4001), b"still one path")


@CASES.case("a new generation begins at sequence 1 again")
def _():
    with sink() as sock:
        address = fresh_address()
        with Peer(address) as peer:
            peer.send(wire.probe(1, generation=0x1111))
            peer.message(b"old", 4001, sock.port, seq=5000)
            equal(sock.recv().data, b"old")
        with Peer(address) as peer:
            peer.send(wire.probe(1, generation=0x2222))
            # Retransmitted, but by another life of the peer.
            peer.message(b"new", 4001, sock.port, wire.F_RETRANS, seq=2)
            equal(sock.recv().data, b"new")


# Congestion maps.
for length in (0, 1, 8191, 8193, 16384, MIB):

    def _map(length=length):
        with sink() as sock, Peer(greet=True) as peer:
            peer.send(wire.header(0, length, 0, 0, wire.F_MAP) + b"\xff" * length)
            # It is not a map: dropped with its connection, or ignored.
            if not peer.dropped(1):
                try:
                    peer.alive()
                except AssertionError:
                    assert peer.ended, "neither ended nor alive"
            equal(outcome(lambda: sock.send(b"x", (peer.address, 4001), MSG_DONTWAIT)), 1)

    CASES.case(f"R-45 a congestion map of {length} bytes says nothing")(_map)


@CASES.case("congestion maps are obeyed, and only for their peer")
def _():
    with sink() as sock, Peer(greet=True) as peer, Peer(greet=True) as other:
        received = snapshot.counter("cong_update_received")
        peer.send(wire.cong_map([4001, 65535]))
        eventually(lambda: snapshot.counter("cong_update_received") > received, "the map is counted")
        for port, want in ((4001, "ENOBUFS"), (65535, "ENOBUFS"), (4000, 1), (4002, 1)):
            equal(outcome(lambda port=port: sock.send(b"x", (peer.address, port), MSG_DONTWAIT)), want)
        equal(sock.send(b"x", (other.address, 4001), MSG_DONTWAIT), 1)
        peer.send(wire.cong_map())
        eventually(lambda: outcome(lambda: sock.send(b"x", (peer.address, 4001), MSG_DONTWAIT)) == 1, "free again")


@CASES.case("a map that blocks everything does not block pongs and probes for ever")
def _():
    with Peer(greet=True) as peer:
        peer.send(wire.cong_map(range(65536)))
        peer.message(b"", 4097, 0)
        peer.send(wire.cong_map())
        peer.alive()


@CASES.case("very many maps", memory=True)
def _():
    count = 200 if ON_DEBUG else 1000
    watch = Watch()
    with sink() as sock, Peer(greet=True) as peer:
        for number in range(count):
            peer.send(wire.cong_map([4001] if number % 2 else [4002]))
        peer.send(wire.cong_map())
        peer.alive()
        equal(sock.send(b"x", (peer.address, 4001), MSG_DONTWAIT), 1)
    watch.bounded(16 * 1024, "maps")


@CASES.case("a map beside another flag is data")
def _():
    with sink() as sock, Peer(greet=True) as peer:
        peer.message(b"\xff" * wire.MAP, 4001, sock.port, wire.F_MAP | wire.F_RETRANS, seq=77)
        equal(sock.recv().size, wire.MAP)
        peer.alive()


# Sequence numbers.
@CASES.case("gaps are legal")
def _():
    with sink() as sock, Peer(greet=True) as peer:
        for seq in (5, 100, 101, 2**31, 2**32 + 1, 2**63, 2**64 - 2):
            peer.message(b"%d" % seq, 4001, sock.port, seq=seq)
            equal(sock.recv().data, b"%d" % seq)


@CASES.case("old numbers: dropped when retransmitted, else the peer has begun anew")
def _():
    with sink() as sock, Peer(greet=True) as peer:
        dropped = snapshot.counter("recv_drop_old_seq")
        peer.message(b"100", 4001, sock.port, seq=100)
        for seq in (100, 99, 1, 0):
            peer.message(b"again", 4001, sock.port, wire.F_RETRANS, seq=seq)
        peer.message(b"101", 4001, sock.port, wire.F_RETRANS, seq=101)
        equal([sock.recv().data for _ in "12"], [b"100", b"101"])
        equal(snapshot.counter("recv_drop_old_seq"), dropped + 4)
        peer.message(b"rewound", 4001, sock.port, seq=7)
        peer.message(b"8", 4001, sock.port, wire.F_RETRANS, seq=8)
        peer.message(b"7", 4001, sock.port, wire.F_RETRANS, seq=7)
        equal([sock.recv().data for _ in "12"], [b"rewound", b"8"])
        nothing(sock)


@CASES.case("the largest number does not wrap into trouble")
def _():
    with sink() as sock, Peer(greet=True) as peer:
        for seq in (2**64 - 1, 0, 1, 2):
            peer.message(b"%d" % seq, 4001, sock.port, seq=seq)
            equal(sock.recv().data, b"%d" % seq)


# Small pieces.
@CASES.case("one byte at a time")
def _():
    with sink() as sock, Peer(greet=True) as peer:
        for data in (b"", b"a" * 300):
            for byte in wire.message(next(peer.seq), data, 4001, sock.port):
                peer.send(bytes([byte]))
            equal(sock.recv().data, data)


@CASES.case("1 MiB in tiny segments costs no more than a few MiB", limit=120, memory=True)
def _():
    size = MIB // 16 if ON_DEBUG else MIB
    step = 100
    data = os.urandom(size)
    with sink() as sock, Peer(greet=True) as peer:
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        watch = Watch()
        peer.send(wire.header(next(peer.seq), size, 4001, sock.port))
        for at in range(0, size, step):
            peer.send(data[at : at + step])
            if at % (step * 1024) == 0:
                # Keeps TCP from joining segments in the sender.
                time.sleep(0.001)
                watch.look()
        watch.bounded(8 * 1024, f"{size} bytes in segments of {step}")
        assert sock.recv(2 * MIB).data == data, "changed"
        peer.alive()


@CASES.case("segments of odd sizes")
def _():
    pick = random.Random(3)
    with sink() as sock, Peer(greet=True) as peer:
        stream, want = b"", []
        for _ in range(100):
            data = pick.randbytes(pick.choice((0, 1, 47, 48, 49, 900, 1024, 1025, 5000)))
            stream += wire.message(next(peer.seq), data, 4001, sock.port)
            want.append(data)
        while stream:
            cut = pick.choice((1, 2, 46, 48, 50, 1000, 3000, 9000))
            peer.send(stream[:cut])
            stream = stream[cut:]
        for data in want:
            assert sock.recv(MIB).data == data, "changed"


# To whom.
@CASES.case("messages for ports that nobody has are counted and dropped", memory=True)
def _():
    watch = Watch()
    with Peer(greet=True) as peer:
        dropped = snapshot.counter("recv_drop_no_sock")
        count = 2 if ON_DEBUG else 32
        for port in range(count):
            peer.message(bytes(MIB), 4001, 60000 + port)
        peer.alive()
        equal(snapshot.counter("recv_drop_no_sock"), dropped + count)
    watch.bounded(16 * 1024, "messages for nobody")


@CASES.case("sockets of another address do not get them")
def _():
    from rdssock import Sock

    with Sock.at("127.0.0.1", 4500) as one, Sock.at("10.9.0.1", 4500) as two, Peer(greet=True) as peer:
        peer.message(b"x", 4001, 4500)
        peer.alive()
        nothing(one)
        nothing(two)


@CASES.case("source ports of the protocol itself")
def _():
    with sink() as sock, Peer(greet=True) as peer:
        for sport in (0, 1, 65535):
            peer.message(b"%d" % sport, sport, sock.port)
            got = sock.recv()
            equal((got.data, got.source), (b"%d" % sport, (peer.address, sport)))
        peer.message(b"x", 4001, 1)
        peer.message(b"x", 0, 1)
        peer.alive()


@CASES.case("0/0 is ignored")
def _():
    with Peer(greet=True) as peer:
        for _ in range(200 if ON_DEBUG else 1000):
            peer.message(b"", 0, 0)
        peer.message(b"with data", 0, 0)
        peer.alive()
        equal(peer.pongs(), 0)


@CASES.case("random bytes", limit=60, c="any length is accepted")
def _():
    pick = random.Random(4)
    with sink() as sock:
        for _ in range(5 if ON_DEBUG else 30):
            with Peer() as peer:
                peer.send(pick.randbytes(pick.randrange(1, 20000)))
                assert peer.dropped(10) or peer.send(b""), "neither dropped nor open"
        while sock.pull() is not None:
            pass


@CASES.case("random headers with short payloads", limit=60)
def _():
    pick = random.Random(5)
    with sink() as sock:
        ports = (0, 1, 2, sock.port, 4001, 65535)
        for _ in range(5 if ON_DEBUG else 20):
            with Peer() as peer:
                for _ in range(50):
                    data = pick.randbytes(pick.randrange(100))
                    peer.send(
                        wire.header(
                            pick.choice((0, 1, pick.randrange(2**64))),
                            len(data),
                            pick.choice(ports),
                            pick.choice(ports),
                            pick.choice((0, 0, 1, 2, 4, 0x20, 0xFF)),
                            pick.randbytes(16),
                        )
                        + data
                    )
        while sock.pull() is not None:
            pass


@CASES.case("no list shows what is not there any more")
def _():
    eventually(lambda: not snapshot.records(snapshot.RECV6), "unread messages of closed sockets")
    fails("ENOPROTOOPT", lambda: snapshot.raw(10002))
    assert all(t.peer != HOST for t in snapshot.tcp_sockets())
