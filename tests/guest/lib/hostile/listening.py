# SPDX-License-Identifier: GPL-2.0
"""The opposite role: the module, whose address is smaller, connects to a peer that misbehaves; R-05."""

import contextlib
import select
import socket
import struct
import threading
import time

import lab
import snapshot
import wire
from cases import ON_DEBUG, Cases, equal, eventually, outcome
from hostile.field import HOST6, HOSTILE, LARGER6, SLOW, Peer
from rdssock import MSG_DONTWAIT, Sock

CASES = Cases("listen")
LISTENER = []
PORT = 4001


def _next(seconds=10):
    """The module's next connection, untouched."""
    LISTENER[0].settimeout(seconds * SLOW)
    sock, source = LISTENER[0].accept()
    equal(source[0], HOST6)
    sock.settimeout(5 * SLOW)
    return Peer(LARGER6, sock), source[1]


def _accept(seconds=10):
    """The module's connection that is in use: the first that is not over already."""
    end = time.monotonic() + seconds * SLOW
    while True:
        peer, port = _next(seconds)
        while not peer.ended and not peer.got and time.monotonic() < end:
            peer.read(0.1)
        if peer.got:
            return peer, port
        peer.close()
        assert time.monotonic() < end, "no connection that is used"


def _accept_unread(seconds=10):
    """The same, with nothing read from it."""
    end = time.monotonic() + seconds * SLOW
    while True:
        peer, _ = _next(seconds)
        if outcome(lambda peer=peer: len(peer.sock.recv(1, socket.MSG_PEEK))) == 1:
            return peer
        peer.close()
        assert time.monotonic() < end, "no connection that is used"


def _messages(sock, count, seconds=20):
    """The next `count` messages of a socket, over whichever connections they come; all of those are closed.

    A peer that says nothing is not believed to have read something, so it may be sent to the next one, too.
    """
    peers, found = [], {}
    end = time.monotonic() + seconds * SLOW
    while len(found) < count:
        assert time.monotonic() < end, f"{len(found)} of {count} messages within {seconds} s"
        ready, _, _ = select.select([LISTENER[0], *(peer.sock for peer in peers if not peer.ended)], [], [], 0.1)
        if LISTENER[0] in ready:
            peers.append(_next()[0])
        for peer in peers:
            if peer.sock in ready:
                peer.read()
        for peer in peers:
            found.update({head.seq: data for head, data in peer.got if head.dport == PORT and head.sport == sock.port})
    for peer in peers:
        peer.close(reset=True)
    return [data for _, data in sorted(found.items())]


def _kill():
    """Ends the module's connection to us."""
    lab.run("ss", "-K", "dst", f"[{LARGER6}]")


def _socket():
    sock = Sock.at(HOST6)
    sock.timeout(receive=5 * SLOW)
    return sock


def _drop(peer, reset=True):
    peer.close(reset)


@CASES.case("the module connects from a port that says path 0, and sends its map, a probe and the message")
def _():
    with _socket() as sock:
        sock.send(b"hello", (LARGER6, PORT))
        peer, port = _accept()
        equal(port % 8, 0)
        peer.wait_for(lambda h: h.flags == wire.F_MAP, "the map")
        head, _ = peer.wait_for(lambda h: True, "the probe")
        equal((head.sport, head.dport, head.len, head.seq), (1, 0, 0, 1))
        equal(head.ext[:1], b"\x05")
        head, data = peer.wait_for(lambda h: True, "the message")
        equal((data, head.sport, head.dport, head.seq), (b"hello", sock.port, PORT, 2))
        peer.message(b"back", PORT, sock.port)
        got = sock.recv()
        equal((got.data, got.source), (b"back", (LARGER6, PORT)))
        _drop(peer)


@CASES.case("R-05 reset or end right after the connection is made", limit=120)
def _():
    lab.sysctl("net.rds.reconnect_max_delay_ms", 100)
    with _socket() as sock:
        for number in range(10 if ON_DEBUG else 60):
            sock.send(b"may be lost with its connection", (LARGER6, PORT), MSG_DONTWAIT)
            peer, _ = _next()
            _drop(peer, number % 2 == 0)
        # Nothing is stuck.
        sock.send(b"after all that", (LARGER6, PORT))
        peer, _ = _accept()
        while peer.data(PORT) != b"after all that":
            pass
        _drop(peer)


@CASES.case("reset in the middle of what it sends", limit=120)
def _():
    with _socket() as sock:
        sock.buffers(send=1 << 22)
        data = bytes(range(256)) * 2000
        sock.send(data, (LARGER6, PORT))
        for number in range(5 if ON_DEBUG else 20):
            peer, _ = _next()
            # From the third on that is more than what comes before the message.
            peer.sock.recv(1 + 5000 * number, socket.MSG_WAITALL)
            _drop(peer, number % 2 == 0)
        peer, _ = _accept()
        head, got = peer.wait_for(lambda h: h.dport == PORT, "the message", 10)
        assert got == data, "changed"
        assert head.flags & wire.F_RETRANS
        _drop(peer)


@CASES.case("no answer at all", limit=120)
def _():
    # The peer's machine takes no connection: the module tries again, with pauses, and calls to it do not block.
    with _socket() as sock:
        with lab.inside(HOSTILE):
            lab.run("nft", f"add table ip6 mute; add chain ip6 mute in {{ type filter hook input priority 0; }}; "
                    f"add rule ip6 mute in tcp dport {wire.PORT} drop")
        _kill()
        started = time.monotonic()
        for number in range(10):
            equal(sock.send(b"%d" % number, (LARGER6, PORT), MSG_DONTWAIT), 1)
        assert time.monotonic() - started < SLOW
        time.sleep(1)
        flags = snapshot.connection(HOST6, LARGER6).flags
        assert not flags & snapshot.CONNECTED, f"flags {flags}"
        with lab.inside(HOSTILE):
            lab.run("nft", "delete table ip6 mute")
        equal(_messages(sock, 10, 30), [b"%d" % number for number in range(10)])


@CASES.case("refusal by reset", limit=60)
def _():
    with _socket() as sock:
        with lab.inside(HOSTILE):
            lab.run("nft", f"add table ip6 mute; add chain ip6 mute in {{ type filter hook input priority 0; }}; "
                    f"add rule ip6 mute in tcp dport {wire.PORT} reject with tcp reset")
        sock.send(b"wait", (LARGER6, PORT))
        time.sleep(1.5)
        with lab.inside(HOSTILE):
            lab.run("nft", "delete table ip6 mute")
        equal(_messages(sock, 1), [b"wait"])


@CASES.case("a wake-up call is answered with a connection")
def _():
    with lab.inside(HOSTILE):
        sock = socket.socket(socket.AF_INET6)
    sock.settimeout(5 * SLOW)
    sock.bind((LARGER6, 8 * 600))
    # It is refused, perhaps before the call is over.
    if outcome(lambda: sock.connect((HOST6, wire.PORT))) == "ok":
        assert Peer(LARGER6, sock).dropped(), "the call goes on"
    sock.close()
    peer, _ = _accept()
    peer.alive()
    _drop(peer)


@CASES.case("bad headers from a peer that the module connects to", limit=60)
def _():
    with _socket() as sock:
        for length in (0x7FFFFFFF, 0xFFFFFFFF, (1 << 20) + 65537):
            sock.send(b"x", (LARGER6, PORT))
            peer, _ = _accept(20)
            peer.send(wire.header(1, length, PORT, sock.port) + bytes(100000))
            assert peer.dropped(8), "the connection goes on"
            peer.close()
        peer, _ = _accept(20)
        peer.wait_for(lambda h: h.flags == wire.F_MAP, "the map")
        peer.alive()
        _drop(peer)


@CASES.case("both ends connect at once, again and again", limit=120)
def _():
    with _socket() as sock:
        for number in range(5 if ON_DEBUG else 30):
            sock.send(b"%d" % number, (LARGER6, PORT))
            with lab.inside(HOSTILE):
                call = socket.socket(socket.AF_INET6)
            call.setblocking(False)
            outcome(lambda call=call: call.connect((HOST6, wire.PORT)))
            peer, _ = _accept(20)
            equal(peer.data(PORT, 10), b"%d" % number)
            # A peer that says nothing is not believed to have read something.
            peer.send(wire.probe(1))
            if number % 2:
                call.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))
            call.close()
            # Let the module know that it arrived before the connection goes.
            eventually(
                lambda: not [m for m in snapshot.messages(snapshot.RETRANS6) if m.peer == LARGER6 and m.fport == PORT],
                "the acknowledgement",
            )
            _drop(peer, number % 3 == 0)


def _lates(first, count, seconds=20):
    """On which path each socket's message "late" comes, by the socket's port; reads from all connections until then."""
    peers, paths = {first: 0}, {}
    end = time.monotonic() + seconds * SLOW
    while len(paths) < count:
        assert time.monotonic() < end, f"{len(paths)} of {count} late messages within {seconds} s"
        ready, _, _ = select.select([LISTENER[0], *(peer.sock for peer in peers)], [], [], 0.1)
        if LISTENER[0] in ready:
            peer, port = _next()
            peers[peer] = port % 8
        for peer, path in peers.items():
            if peer.sock in ready:
                peer.read()
                assert not peer.ended, f"path {path} ended"
            paths.update({head.sport: path for head, data in peer.got if data == b"late"})
            peer.got.clear()
    for peer in peers:
        peer.close(reset=True)
    return paths


@CASES.case("a sender that waits while the two ends agree on paths sends on its new one", limit=120)
def _():
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(_socket()) for _ in range(8)]
        # The first message of each takes all the room that its socket has, and more than the peer's TCP takes unread.
        for sock in socks:
            sock.buffers(send=300_000)
            sock.timeout(send=20 * SLOW)
            sock.send(bytes(300_000), (LARGER6, PORT))
            equal(outcome(lambda sock=sock: sock.send(b"late", (LARGER6, PORT), MSG_DONTWAIT)), "EAGAIN")
        senders = [threading.Thread(target=sock.send, args=(b"late", (LARGER6, PORT))) for sock in socks]
        for sender in senders:
            sender.start()
        peer = _accept_unread()
        time.sleep(0.2 * SLOW)
        assert all(sender.is_alive() for sender in senders), "somebody has not waited"
        peer.send(wire.probe(1, npaths=8))
        paths = _lates(peer, len(socks))
        for sender in senders:
            sender.join()
        equal(sorted(paths), sorted(sock.port for sock in socks))
        # One in eight may stay on path 0, by its port.
        assert any(paths.values()), "all come on the path that was the right one when the call began"


@CASES.case("restore", limit=60)
def _():
    lab.sysctl("net.rds.reconnect_max_delay_ms", 1000)
