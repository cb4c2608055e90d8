# SPDX-License-Identifier: GPL-2.0
"""How much a peer may send, and how often connect: memory stays bounded, others are served."""

import contextlib
import fcntl
import os
import socket
import struct
import time

import lab
import snapshot
import wire
from cases import ON_DEBUG, SOAK, Cases, equal, eventually, outcome
from hostile.field import HOST, HOSTILE, SLOW, Peer, fresh_address, returning, sink
from memory import Watch
from rdssock import MSG_DONTWAIT, Sock

CASES = Cases("flood")
MIB = 1 << 20
KIB = 1024


def _many(peer, count, make):
    """One long string of messages."""
    return b"".join(make(next(peer.seq)) for _ in range(count))


@CASES.case("pings are answered one for one", limit=120)
def _():
    count = 500 if ON_DEBUG else 3000
    before = snapshot.counter("recv_ping")
    with Peer(greet=True) as peer:
        # Not more at once than the module is ready to answer.
        for _ in range(0, count, 500):
            peer.send(_many(peer, 500, lambda seq: wire.header(seq, 0, 4001, 0)))
            for _ in range(500):
                peer.pong(4001)
        peer.alive()
        equal(peer.pongs(), 0)
    equal(snapshot.counter("recv_ping"), before + count + 2)


def _unread(what, make):
    """Something that asks for answers which are never read."""

    def check():
        count = 10000 if ON_DEBUG else 50000
        with Peer(greet=True) as peer, Peer(greet=True) as other:
            peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            watch = Watch()
            block = _many(peer, 1000, make)
            for _ in range(count // 1000):
                # The module may stop reading, or end the connection.
                if not peer.send(block):
                    break
                watch.look()
            time.sleep(0.5)
            watch.bounded(4 * KIB, f"{count} {what} with no answer read")
            other.alive()

    CASES.case(f"{what} whose answers nobody reads", limit=60, c="the answers are all queued", memory=True)(check)


_unread("pings", lambda seq: wire.header(seq, 0, 4001, 0))
_unread("probes", wire.probe)


@contextlib.contextmanager
def _tcp_holds(kib):
    """Limits what TCP keeps unread per new connection; else it decides between a tenth of a MiB and 32 MiB."""
    before = lab.sysctl("net.ipv4.tcp_rmem")
    lab.sysctl("net.ipv4.tcp_rmem", f"4096 {kib * KIB} {kib * KIB}")
    try:
        yield
    finally:
        lab.sysctl("net.ipv4.tcp_rmem", before)


@CASES.case("messages to a socket that does not read", limit=120, c="all are kept", memory=True)
def _():
    data = bytes(MIB)
    with _tcp_holds(MIB // KIB), sink(receive=65536) as sock, Peer(greet=True) as peer, Peer(greet=True) as other:
        # What this side has not sent yet lies in the same memory, and is not what is measured.
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        peer.sock.settimeout(SLOW)
        watch = Watch()
        for _ in range(4 if ON_DEBUG else 32):
            # A peer that ignores congestion. The module may stop reading, or end the connection.
            if not peer.message(data, 4001, sock.port):
                break
            watch.look()
        time.sleep(0.5)
        other.alive()
        # A message that waits for its reader, one that is half here, two copies of this program, what TCP holds.
        watch.bounded(6 * KIB, "messages that nobody reads")


@CASES.case("empty messages to a socket that does not read", limit=60, c="all are kept", memory=True)
def _():
    with sink(receive=65536) as sock, Peer(greet=True) as peer, Peer(greet=True) as other:
        port = sock.port
        peer.sock.settimeout(SLOW)
        watch = Watch()
        for _ in range(8 if ON_DEBUG else 50):
            if not peer.send(_many(peer, 1000, lambda seq: wire.header(seq, 0, 4001, port))):
                break
            watch.look()
        time.sleep(0.5)
        other.alive()
        watch.bounded(4 * KIB, "empty messages that nobody reads")


@CASES.case("answers of the protocol to a socket that does not read", limit=60, c="all are kept", memory=True)
def _():
    with sink(receive=65536) as sock, Peer(greet=True) as peer, Peer(greet=True) as other:
        port = sock.port
        peer.sock.settimeout(SLOW)
        watch = Watch()
        for _ in range(8 if ON_DEBUG else 50):
            if not peer.send(_many(peer, 1000, lambda seq: wire.header(seq, 0, 0, port))):
                break
            watch.look()
        time.sleep(0.5)
        other.alive()
        watch.bounded(4 * KIB, "pongs that nobody asked for")


@CASES.case("the overload is told to the peer as congestion")
def _():
    with sink(receive=65536) as sock, Peer(greet=True) as peer:
        for _ in range(3):
            peer.message(bytes(40000), 4001, sock.port)
        _, data = peer.wait_for(lambda h: h.flags == wire.F_MAP, "a map")
        assert data[sock.port // 8] >> sock.port % 8 & 1, "the port is not marked"
        while sock.pull() is not None:
            pass
        _, data = peer.wait_for(lambda h: h.flags == wire.F_MAP, "another map")
        equal(data, bytes(wire.MAP))


# Connections.
@CASES.case("silence after connecting", limit=60, memory=True)
def _():
    count = 20 if ON_DEBUG else 100
    watch = Watch()
    peers = [Peer() for _ in range(count)]
    started = time.monotonic()
    with Peer(greet=True) as peer:
        peer.alive()
    assert time.monotonic() - started < 3 * SLOW
    watch.bounded(count * 300, "silent connections")
    for peer in peers:
        peer.greet()
        peer.close()


@CASES.case("R-37 connections that end at once, while messages go to those peers", limit=180)
def _():
    addresses = [fresh_address() for _ in range(15 if ON_DEBUG else 30)]
    with sink() as sock:
        for number in range(30 if ON_DEBUG else 200):
            address = addresses[number % len(addresses)]
            peer = Peer(address)
            outcome(lambda a=address: sock.send(b"x" * 100, (a, 4001), MSG_DONTWAIT))
            peer.close(reset=number % 2 == 0)
        known = [c.peer for c in snapshot.connections() if c.peer in addresses]
        equal(len(known), len(set(known)))
        for address in addresses[:5]:
            with returning(address) as peer:
                peer.alive()


@CASES.case("many peers that come once", limit=180, memory=True)
def _():
    count = 2000 if SOAK else 100 if ON_DEBUG else 300
    watch = Watch()
    for number in range(count):
        Peer().close(reset=number % 2 == 0)
    watch.look()
    # A peer costs no more than two maps and its path.
    watch.bounded(count * 32, f"{count} peers")
    with Peer(greet=True) as peer:
        peer.alive()


def _checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def _syn(source, port):
    """An IPv4 packet that begins a connection to the module."""
    src, dst = socket.inet_aton(source), socket.inet_aton(HOST)
    tcp = struct.pack("!HHIIBBHHH", port, wire.PORT, 1, 0, 0x50, 2, 65535, 0, 0)
    value = _checksum(src + dst + struct.pack("!BBH", 0, 6, 20) + tcp)
    tcp = tcp[:16] + struct.pack("!H", value) + tcp[18:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 0, 0, 64, 6, 0, src, dst)
    return ip + tcp


@CASES.case("half-open connections", limit=120, memory=True)
def _():
    count = 500 if ON_DEBUG else 2000
    watch = Watch()
    with lab.inside(HOSTILE):
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    # Their answers go to addresses that nobody has, in the other half of the network.
    for number in range(count):
        raw.sendto(_syn(f"10.8.{200 + number // 250}.{1 + number % 250}", 8 * (100 + number % 100)), (HOST, 0))
        if number % 500 == 499:
            with Peer(greet=True) as peer:
                peer.alive()
    raw.close()
    watch.bounded(16 * KIB, "half-open connections")


def _lo_up():
    """Brings the loopback interface up without a program."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, 0x8914, struct.pack("16sH14x", b"lo", 1))


@CASES.case("R-13 a namespace goes with connections half done", limit=180)
def _():
    for number in range(10 if ON_DEBUG else 40):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.unshare(os.CLONE_NEWNET)
                _lo_up()
                sock = socket.socket()
                sock.setblocking(False)
                outcome(lambda: sock.connect(("127.0.0.1", wire.PORT)))
                if number % 2:
                    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
                    for port in range(8, 80, 8):
                        src = "127.1.1.1"
                        packet = bytearray(_syn(src, port))
                        packet[16:20] = socket.inet_aton("127.0.0.1")
                        packet[36:38] = b"\0\0"
                        total = packet[12:20] + struct.pack("!BBH", 0, 6, 20) + packet[20:]
                        packet[36:38] = struct.pack("!H", _checksum(bytes(total)))
                        raw.sendto(packet, ("127.0.0.1", 0))
                status = 0
            finally:
                os._exit(status)
        equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)


# Peers that do not read.
class Stalled:
    """A peer that never reads, with as much queued for it as a socket may queue."""

    def __init__(self):
        self.sock = sink()
        self.sock.buffers(send=1 << 20)
        self.peer = Peer(greet=True)
        end = time.monotonic() + 10 * SLOW
        while outcome(lambda: self.sock.send(bytes(60000), (self.peer.address, 4001), MSG_DONTWAIT)) != "EAGAIN":
            assert time.monotonic() < end, "the buffer does not fill"
        # The last acknowledgements take some time.
        before = None
        while (now := self.queued()) != before:
            assert time.monotonic() < end, "what is queued becomes less and less"
            before = now
            time.sleep(0.5)

    def queued(self):
        """How many messages the module has for the peer."""
        lists = snapshot.messages(snapshot.RETRANS6) + snapshot.messages(snapshot.SEND6)
        return len([m for m in lists if m.peer == self.peer.address and m.len])

    def close(self):
        """Ends it."""
        self.peer.close(reset=True)
        self.sock.close()


def _served(count=10):
    """Fails unless new peers are served soon."""
    for _ in range(count):
        started = time.monotonic()
        with Peer() as peer:
            peer.greet()
        took = time.monotonic() - started
        assert took < 2 * SLOW, f"a peer was served after {took:.1f} s"


@CASES.case("peers that never read do not delay others", limit=120)
def _():
    stalled = [Stalled() for _ in range(4 if ON_DEBUG else 12)]
    _served()
    for one in stalled:
        one.close()


@CASES.case("a second connection takes over, and nothing is lost", limit=60)
def _():
    with sink() as sock:
        first = Peer(greet=True)
        sock.send(b"one", (first.address, 4001))
        equal(first.data(4001), b"one")
        second = Peer(first.address)
        assert first.dropped(), "the first connection goes on"
        # The module waits a few seconds for the first connection to be closed from there, too.
        second.greet(30)
        sock.send(b"two", (first.address, 4001))
        equal(second.data(4001), b"two")
        second.message(b"three", 4001, sock.port, seq=999)
        equal(sock.recv().data, b"three")
        first.close()
        second.alive()
        second.close()


@CASES.case("a stalled connection is taken over by a good one", limit=60)
def _():
    one = Stalled()
    queued = one.queued()
    assert queued
    with Peer(one.peer.address) as good:
        good.greet(30)
        for _ in range(queued):
            equal(len(good.data(4001, 20)), 60000)
    one.close()


@CASES.case("peers that hold on to old connections do not delay others", limit=120)
def _():
    held = []
    for _ in range(4 if ON_DEBUG else 16):
        first = Peer(greet=True)
        # The module says goodbye to the first and waits for the peer to do so, which it does not.
        held += [first, Peer(first.address)]
    _served()
    for peer in held:
        peer.close(reset=True)


@CASES.case("many connections of one peer at once", limit=120, memory=True)
def _():
    address = fresh_address()
    watch = Watch()
    peers = []
    for _ in range(20 if ON_DEBUG else 60):
        # Only so many may wait; the others are refused, perhaps before the call is over.
        try:
            peers.append(Peer(address))
        except ConnectionError:
            pass
    _served(3)
    watch.bounded(16 * KIB, "connections of one peer")
    for peer in peers:
        peer.close(reset=True)
    with returning(address) as peer:
        peer.alive()


@CASES.case("connections that are reset while they are accepted", limit=60)
def _():
    for number in range(20 if ON_DEBUG else 100):
        with lab.inside(HOSTILE):
            sock = socket.socket()
        sock.bind((fresh_address(), 0))
        sock.setblocking(False)
        outcome(lambda sock=sock: sock.connect((HOST, wire.PORT)))
        if number % 3:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))
        sock.close()
    _served(3)


@CASES.case("own addresses as the source of a connection")
def _():
    # Only this machine can do that: it is refused, since such messages take the loopback transport.
    for address in (HOST, "127.0.0.1"):
        sock = socket.socket()
        sock.settimeout(5 * SLOW)
        sock.bind((address, 0))
        sock.connect((address, wire.PORT))
        peer = Peer(address, sock)
        assert peer.dropped(), "the connection goes on"
        equal([head for head, _ in peer.got], [])
        peer.close()
    assert not any(c.transport == "tcp" and c.peer == HOST for c in snapshot.connections())


@CASES.case("a namespace goes with hostile connections open", limit=90)
def _():
    lab.ip("""
        netns add brief
        link add v0 type veth peer name v1 netns brief
        link set v0 addrgenmode none
        addr add 10.10.0.1/24 dev v0
        link set v0 up
    """)
    with lab.inside("brief"):
        lab.ip("""
            link set lo up
            addr add 10.10.0.2/24 dev v1
            link set v1 up
        """)
        victim = Sock.at("10.10.0.2")
    socks = []
    for number in range(5):
        sock = socket.create_connection(("10.10.0.2", wire.PORT), 5 * SLOW, ("10.10.0.1", 8 * (500 + number)))
        begun = wire.header(2, 5000, 4001, victim.port)
        sock.sendall(wire.message(1, b"x", 4001, victim.port) + begun[: len(begun) - number])
        socks.append(sock)
    victim.timeout(receive=10)
    victim.recv()
    victim.send(bytes(50000), ("10.10.0.1", 4001))
    victim.close()
    lab.ip("netns del brief")
    eventually(lambda: not lab.has_link("v0"), "the namespace is gone", 8)
    for sock in socks:
        sock.close()
