# SPDX-License-Identifier: GPL-2.0
"""Sockets close while memory is lent, ports are congested and somebody reads."""

import collections
import errno
import random
import select
import socket
import struct
import threading
import time

import guestlib as g
from address import sin
from rdssock import (
    CANCEL_SENT_TO,
    CMSG_ZCOPY_COMPLETION,
    CMSG_ZCOPY_COOKIE,
    CONG_MONITOR,
    MSG_DONTWAIT,
    MSG_ZEROCOPY,
    SO_ZEROCOPY,
    Sock,
    cmsg,
)

SIZE = 20000


class Crowd:
    """Senders of lent memory and receivers that hardly read, used by several threads each, until all are closed."""

    def __init__(self, one, two):
        self.one, self.two = one, two
        with g.inside("one"):
            self.senders = [Sock.at(one, 4000 + number) for number in range(3)]
        with g.inside("two"):
            self.receivers = [Sock.at(two, 4000 + number) for number in range(2)]
        for sock in self.senders:
            sock.buffers(send=1 << 20)
            sock.set(SO_ZEROCOPY, 1, socket.SOL_SOCKET)
            sock.set(CONG_MONITOR, 1)
            sock.timeout(send=0.2, receive=0.2)
        for sock in self.receivers:
            sock.buffers(receive=SIZE * 2)
            sock.timeout(receive=0.1)
        self.over = threading.Event()
        self.said = collections.Counter()
        self.trouble = []

    def send(self, sock, chance):
        """Lends memory, with a number that tells the socket."""
        cookie = cmsg(CMSG_ZCOPY_COOKIE, struct.pack("=I", self.senders.index(sock)))
        target = (self.two, 4000 + chance.randrange(2))
        sock.send(bytes(SIZE), target, MSG_ZEROCOPY | chance.choice((0, MSG_DONTWAIT)), cookie)

    def numbers(self, sock, chance):
        """Takes numbers, after waiting for them in one way or the other."""
        if chance.random() < 0.5:
            sock.poll(select.POLLIN, 0.05)
        got = sock.recv(100, chance.choice((0, MSG_DONTWAIT)), control=200)
        for _, kind, data in got.control:
            if kind == CMSG_ZCOPY_COMPLETION:
                count, *found = struct.unpack(f"={len(data) // 4}I", data)
                g.check(set(found[:count]) == {self.senders.index(sock)}, f"numbers of another socket: {found}")
                self.said["numbers"] += count

    def cancel(self, sock, chance):
        """Takes back what was not sent yet."""
        sock.set(CANCEL_SENT_TO, sin(self.two, 4000 + chance.randrange(2)))

    def read(self, sock, chance):
        """Makes a little room."""
        time.sleep(chance.random() / 50)
        sock.recv(SIZE)

    def work(self, sock, actions, seed):
        """Does one thing after the other with a socket that somebody else closes at some time."""
        chance = random.Random(seed)
        while not self.over.wait(0.001):
            try:
                chance.choice(actions)(sock, chance)
                self.said["done"] += 1
            except OSError as error:
                self.said[errno.errorcode[error.errno]] += 1
            except ValueError:
                # poll() is not even called with a descriptor of -1.
                self.said["EBADF"] += 1
            except AssertionError as error:
                self.trouble.append(error)

    def run(self, seed):
        """All of it for a moment; then the sockets close, in any order, while the calls go on."""
        jobs = [(sock, (self.send, self.send, self.numbers, self.cancel)) for sock in self.senders for _ in "abc"]
        jobs += [(sock, (self.read,)) for sock in self.receivers]
        threads = [
            threading.Thread(target=self.work, args=(*job, seed * 100 + number)) for number, job in enumerate(jobs)
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        socks = self.senders + self.receivers
        random.Random(seed).shuffle(socks)
        for sock in socks:
            sock.close()
        time.sleep(0.05)
        self.over.set()
        for thread in threads:
            thread.join(g.SOON)
        g.check(not any(thread.is_alive() for thread in threads), "a call does not end")
        g.check(not self.trouble, f"{self.trouble[:1]}")


def lent_memory_congestion_and_close_at_once():
    """Each of the calls that take a socket's locks, on the same sockets, while these close (R-39)."""
    one, two = g.join("one", "two")
    said = collections.Counter()
    for seed in range(g.amount(8, 3, 80)):
        crowd = Crowd(one, two)
        crowd.run(seed)
        said += crowd.said
    print(f"# {dict(said)}", flush=True)
    g.check(said["ENOBUFS"] and said["numbers"], f"no congestion, or no numbers: {dict(said)}")
    wrong = set(said) - {"done", "numbers", "EAGAIN", "ENOBUFS", "ETIMEDOUT", "EBADF"}
    g.check(not wrong, f"{wrong}")


CASES = (lent_memory_congestion_and_close_at_once,)
