# SPDX-License-Identifier: GPL-2.0
"""The network of the hostile-peer scenario.

This namespace is the one under attack, at `HOST` and `HOST6`. Namespace `hostile` owns half of the network, all of it
smaller than `HOST`, so from there TCP connections can come from thousands of peers; they are plain sockets of this
program, which does what no RDS would do. For the opposite role it listens at `LARGER6`: it has to be there before the
modules are loaded, which then can listen on IPv4 only in that namespace, and that is closed by a filter.

Namespace `honest` has an ordinary RDS peer on a link of its own.
"""

import itertools
import select
import socket
import struct
import threading
import time

import lab
import wire
from cases import ON_DEBUG, equal, eventually
from rdssock import MSG_DONTWAIT, Sock

HOST, HOST6 = "10.8.128.1", "fd08::80"
LARGER6 = "fd08::ff"
NEAR, FAR = "10.9.0.1", "10.9.0.2"
HOSTILE, HONEST = "hostile", "honest"
SLOW = 4 if ON_DEBUG else 1


def up():
    """Makes it; the listener at `LARGER6`."""
    lab.ip(f"""
        link set lo up
        netns add {HOSTILE}
        netns add {HONEST}
        link add h0 type veth peer name x0 netns {HOSTILE}
        link add n0 type veth peer name y0 netns {HONEST}
        link set h0 addrgenmode none
        link set n0 addrgenmode none
        addr add {HOST}/16 dev h0
        addr add {HOST6}/64 dev h0 nodad
        addr add {NEAR}/24 dev n0
        link set h0 up
        link set n0 up
    """)
    with lab.inside(HONEST):
        lab.ip(f"""
            link set lo up
            addr add {FAR}/24 dev y0
            link set y0 up
        """)
    with lab.inside(HOSTILE):
        lab.ip(f"""
            link set lo up
            link set x0 addrgenmode none
            addr add 10.8.0.1/16 dev x0
            addr add {LARGER6}/64 dev x0 nodad
            link set x0 up
            route add local 10.8.0.0/17 dev lo
        """)
        lab.run("nft", "add table ip shut; add chain ip shut in { type filter hook input priority 0; }; "
                f"add rule ip shut in tcp dport {wire.PORT} reject with tcp reset")
        listener = socket.create_server((LARGER6, wire.PORT), family=socket.AF_INET6, backlog=64)
        # A long message must not fit into what TCP takes unread: it would count as arrived.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    return listener


def down():
    """Takes it away."""
    lab.ip(f"""
        netns del {HOSTILE}
        netns del {HONEST}
    """)


_numbers = itertools.count(256)


def fresh_address():
    """An address of the hostile namespace that was not used yet."""
    number = next(_numbers)
    return f"10.8.{number // 256}.{number % 256}"


class Peer:
    """A TCP connection to the module, or from it, that speaks as it likes."""

    _ports = itertools.count(1250)

    def __init__(self, address=None, sock=None, greet=False, first=1, path=0):
        self.address = address or fresh_address()
        self.reader = wire.Reader()
        self.got = []
        self.ended = False
        self.seq = itertools.count(first)
        if sock is None:
            with lab.inside(HOSTILE):
                sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.settimeout(5 * SLOW)
            # A source port that says which path this is.
            sock.bind((self.address, (next(self._ports) * 8 % 60000 or 8) + path))
            sock.connect((HOST, wire.PORT))
        self.sock = sock
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if greet:
            self.greet()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self, reset=False):
        """Closes the connection, or resets it."""
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))
        self.sock.close()

    def send(self, data):
        """Sends bytes; False if the connection is gone."""
        try:
            self.sock.sendall(data)
            return True
        except (ConnectionError, TimeoutError):
            return False

    def message(self, data, sport, dport, flags=0, seq=None, **more):
        """Sends a message."""
        return self.send(wire.message(next(self.seq) if seq is None else seq, data, sport, dport, flags, **more))

    def read(self, seconds=0.0):
        """Reads what there is within some time; True if something came or the connection ended."""
        ready, _, _ = select.select([self.sock], [], [], seconds)
        if not ready:
            return False
        try:
            data = self.sock.recv(1 << 20)
        except ConnectionError:
            data = b""
        if not data:
            self.ended = True
            return True
        self.got += self.reader.feed(data)
        return True

    def wait_for(self, condition, what, seconds=5.0):
        """Reads until a message fulfils a condition, and takes that one."""
        end = time.monotonic() + seconds * SLOW
        while True:
            for number, (head, data) in enumerate(self.got):
                if condition(head):
                    del self.got[number]
                    return head, data
            assert not self.ended, f"{what}: the connection ended"
            assert time.monotonic() < end, f"{what}: nothing within {seconds:g} s"
            self.read(0.1)

    def data(self, dport, seconds=5.0):
        """The next message to a port, as bytes."""
        return self.wait_for(lambda h: h.dport == dport and h.sport > 1, f"message to port {dport}", seconds)[1]

    def pongs(self):
        """How many answers to pings have come that nobody waited for."""
        return sum(head.sport == 0 and head.dport != wire.PROBE_PORT for head, _ in self.got)

    def pong(self, port, seconds=5.0):
        """Waits for the answer to a ping."""
        self.wait_for(lambda h: (h.sport, h.dport) == (0, port), f"answer to port {port}", seconds)

    def greet(self, seconds=5.0, npaths=1):
        """Sees that the module uses this connection: the map and, for an answer, the handshake."""
        head, data = self.wait_for(lambda h: h.flags == wire.F_MAP, "the congestion map", seconds)
        equal((head.len, head.seq, len(data)), (wire.MAP, 0, wire.MAP))
        self.send(wire.probe(next(self.seq), npaths))
        self.wait_for(lambda h: (h.sport, h.dport) == (0, wire.PROBE_PORT), "the answer to a probe", seconds)

    def dropped(self, seconds=5.0):
        """Whether the module ends the connection within some time."""
        end = time.monotonic() + seconds * SLOW
        while not self.ended and time.monotonic() < end:
            self.read(0.1)
        return self.ended

    def alive(self):
        """Fails unless pings are answered."""
        self.message(b"", 4097, 0)
        self.pong(4097)


def returning(address, seconds=20):
    """A greeted connection of a peer that tries until it is served, as peers do."""
    end = time.monotonic() + seconds * SLOW
    while True:
        peer = Peer(address)
        try:
            peer.greet(seconds)
            return peer
        except (AssertionError, OSError) as error:
            peer.close(reset=True)
            assert time.monotonic() < end, f"peer {address} is not served within {seconds} s: {error}"
            time.sleep(0.2)


class Honest:
    """Traffic of an ordinary peer, all the time; tells whether somebody disturbs it."""

    def __init__(self):
        self.near = Sock.at(NEAR)
        with lab.inside(HONEST):
            self.far = Sock.at(FAR)
        self.rounds = 0
        self.longest = 0.0
        self.trouble = None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        eventually(lambda: self.rounds, "the honest peer's first message", 10)

    def _run(self):
        for sock in (self.near, self.far):
            sock.timeout(send=60, receive=60)
        number = 0
        try:
            while not self.stop.is_set():
                start = time.monotonic()
                data = b"%d " % number + bytes(number % 3000)
                for one, two in ((self.near, self.far), (self.far, self.near)):
                    one.send(data, two.address)
                    got = two.recv()
                    assert (got.data, got.source) == (data, one.address), f"message {number} arrived changed"
                number += 1
                self.rounds = number
                self.longest = max(self.longest, time.monotonic() - start)
                time.sleep(0.02 * SLOW)
        except Exception as error:
            self.trouble = f"{type(error).__name__} {error}"

    def check(self, most=10.0):
        """Fails if there was trouble since the last look, or a message took longer than `most` seconds."""
        before = self.rounds
        eventually(lambda: self.trouble or self.rounds > before + 1, "an honest message", 10)
        assert self.trouble is None, f"honest peer: {self.trouble}"
        longest, self.longest = self.longest, 0.0
        assert longest < most * SLOW, f"an honest message took {longest:.1f} s"

    def end(self):
        """Stops it."""
        self.stop.set()
        self.thread.join(60)
        self.near.close()
        self.far.close()


def sink(receive=1 << 22):
    """A socket of the host that peers may send to."""
    sock = Sock.at(HOST)
    sock.buffers(send=1 << 22, receive=receive)
    sock.timeout(receive=5 * SLOW)
    return sock


def nothing(sock):
    """Fails if a socket has a message."""
    time.sleep(0.1)
    try:
        got = sock.recv(100, MSG_DONTWAIT)
    except BlockingIOError:
        return
    raise AssertionError(f"unexpected message of {got.size} bytes from {got.source}")


def said(text):
    """How often the kernel log has a text."""
    return lab.run("dmesg").count(text)

