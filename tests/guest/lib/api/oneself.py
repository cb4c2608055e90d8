# SPDX-License-Identifier: GPL-2.0
"""A socket that sends to itself until it is congested by itself: R-29."""

import snapshot
from api import lan
from api.congestion import LIMIT, congest, drain
from cases import Cases, equal, eventually, fails, outcome
from rdssock import CMSG_CONG_UPDATE, CONG_MONITOR, MSG_DONTWAIT, Sock

CASES = Cases("oneself")
EXEMPT = "loopback sockets are exempt"


def _congests_itself(address):
    """What is read then makes room again, over and over; each message arrives once."""
    with Sock.at(address) as sock:
        sock.buffers(1 << 20, LIMIT)
        for _ in range(3):
            count = congest(sock, sock)
            assert count >= LIMIT // 1000, f"only {count} messages fit"
            equal(drain(sock), count)
            eventually(lambda: outcome(lambda: sock.send(b"again", sock.address, MSG_DONTWAIT)) == 5, "sending again", 1)
            got = sock.recv()
            equal((got.data, got.source), (b"again", sock.address))
            equal(sock.pull(), None)


def _tells_itself(address):
    """The map of free ports is sent to oneself, too; a monitor hears of it."""
    with Sock.at(address) as sock:
        sock.buffers(1 << 20, LIMIT)
        sock.set(CONG_MONITOR, 1)
        count = congest(sock, sock)
        fails("ENOBUFS", lambda: sock.send(b"x", sock.address, MSG_DONTWAIT))
        told = []

        def read():
            """Takes what there is, messages and notices; whether that was all."""
            nonlocal count
            while True:
                try:
                    got = sock.recv(1000, MSG_DONTWAIT, control=256)
                except BlockingIOError:
                    return count == 0 and told
                told.extend(kind for _, kind, _ in got.control)
                count -= got.size == 1000

        eventually(read, "all messages and a notice")
        equal((count, told), (0, [CMSG_CONG_UPDATE]))


def _keeps_no_connection(address):
    """The connection to oneself is one, and its messages are all acknowledged."""
    with Sock.at(address) as sock:
        for number in range(100):
            sock.send(b"%d" % number, sock.address)
            equal(sock.recv().data, b"%d" % number)
        own = [c for c in snapshot.connections(sock) if (c.local, c.peer) == (address, address)]
        equal(len(own), len({c.transport for c in own}))
        for kind in (snapshot.SEND6, snapshot.RETRANS6):
            equal([m for m in snapshot.messages(kind, sock) if m.lport == sock.port], [])


for address, c in ((lan.A, None), (lan.A6, None), ("127.0.0.1", EXEMPT), ("::1", EXEMPT)):
    CASES.case(f"R-29 congestion by its own messages at {address}", c=c)(lambda a=address: _congests_itself(a))
    CASES.case(f"R-29 a notice to itself at {address}", c=c)(lambda a=address: _tells_itself(a))
    CASES.case(f"R-29 nothing is left of its messages at {address}")(lambda a=address: _keeps_no_connection(a))
