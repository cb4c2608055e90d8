# SPDX-License-Identifier: GPL-2.0
"""What sendmsg returns while the link and its connections come and go, and what arrives."""

import collections
import errno
import random
import signal
import struct
import threading
import time

import guestlib as g
import netlink
import sockdiag
from rdssock import MSG_DONTWAIT, Sock

PORT = 4000
# What a call may say that has not sent anything, here.
REFUSALS = {"EAGAIN", "ENOBUFS", "ETIMEDOUT", "EINTR"}
OUTAGE_SECONDS = 2
PAUSE = 0.01 if g.DEBUG else 0.001


class Sender:
    """A socket that sends numbers, and remembers for which of them it was told that they are sent."""

    def __init__(self, own, target, how):
        with g.inside("one"):
            self.sock = Sock.at(own)
        self.sock.buffers(send=30000)
        self.sock.timeout(send=0.1 if how == "patient" else 10)
        self.address = self.sock.address
        self.target = target
        self.flags = MSG_DONTWAIT if how == "hasty" else 0
        self.taken = []
        self.results = collections.Counter()
        self.number = 0

    def send(self):
        """Sends the next number; whatever the result, this number is not sent again."""
        size = 8 + self.number * 997 % 9000
        data = struct.pack("=Q", self.number) + bytes(size - 8)
        try:
            sent = self.sock.send(data, self.target, self.flags)
            g.check(sent == size, f"{sent} instead of {size}")
            self.taken.append(self.number)
            self.results["sent"] += 1
        except OSError as error:
            self.results[errno.errorcode[error.errno]] += 1
        self.number += 1

    def check(self, got):
        """Fails unless what has arrived is what was said to be sent."""
        refused = set(got) - set(self.taken)
        g.check(not refused, f"{self.address}: the errno was wrong for {sorted(refused)[:5]}: they arrived")
        g.check(got == self.taken, f"{self.address}: {len(got)} of {len(self.taken)} arrived once and in order")
        wrong = set(self.results) - {"sent"} - REFUSALS
        g.check(not wrong, f"{self.address}: {wrong}")


class Reader(threading.Thread):
    """Reads all that arrives, slowly enough that the port is congested now and then."""

    def __init__(self, address):
        super().__init__()
        with g.inside("two"):
            self.sock = Sock.at(address, PORT)
        self.sock.buffers(receive=60000)
        self.sock.timeout(receive=0.2)
        self.got = collections.defaultdict(list)
        self.count = 0
        self.over = False
        self.start()

    def run(self):
        chance = random.Random(3)
        while not self.over:
            try:
                message = self.sock.recv()
            except TimeoutError:
                continue
            self.got[message.source].append(struct.unpack_from("=Q", message.data)[0])
            self.count += 1
            if chance.random() < 0.01:
                time.sleep(0.1)


class Loop(threading.Thread):
    """Sends one number after the other."""

    def __init__(self, sender):
        super().__init__()
        self.sender = sender
        self.over = False
        self.start()

    def run(self):
        while not self.over:
            self.sender.send()
            time.sleep(PAUSE)


def cut(ns):
    """All connections of a namespace end."""
    with g.inside(ns):
        sockdiag.kill(g.RDS_TCP_PORT)


def outage(first_messages):
    """The link is down for a while, and connections end meanwhile; some messages are the first of a connection."""
    with g.inside("one"):
        netlink.set_up("eth0", False)
    cut("one")
    for _ in range(5):
        first_messages.send()
    time.sleep(OUTAGE_SECONDS)
    with g.inside("one"):
        netlink.set_up("eth0")


def disturb(one, target, victim):
    """Outages and cut connections; the sender called `victim` gets a signal now and then. The senders made for it."""
    extra = []
    for number in range(g.amount(6, 2, 40)):
        with g.inside("one"):
            netlink.add_address("eth0", f"10.8.0.{10 + number}", 24)
        extra.append(Sender(f"10.8.0.{10 + number}", target, "hasty"))
        outage(extra[-1])
        for ns in ("one", "two"):
            for _ in range(10):
                signal.pthread_kill(victim.ident, signal.SIGUSR1)
                time.sleep(0.03)
            cut(ns)
    return extra


def what_sendmsg_says_on_a_flapping_link():
    """The length is returned for exactly those messages that arrive, an errno for all others (R-35)."""
    one, two = g.join("one", "two")
    signal.signal(signal.SIGUSR1, lambda *_: None)
    target = (two, PORT)
    reader = Reader(two)
    senders = {how: Sender(one, target, how) for how in ("hasty", "patient", "interrupted")}
    loops = [Loop(sender) for sender in senders.values()]
    extra, begin = [], time.monotonic()
    try:
        extra = disturb(one, target, loops[-1])
    finally:
        for loop in loops:
            loop.over = True
        for loop in loops:
            loop.join(g.SOON)
        print(f"# it took {time.monotonic() - begin:.1f} s", flush=True)
        everyone = [*senders.values(), *extra]
        taken = sum(len(sender.taken) for sender in everyone)
        try:
            g.wait_for(lambda: reader.count >= taken, "not everything arrives")
            time.sleep(1)
        finally:
            reader.over = True
            reader.join()
    for how, sender in senders.items():
        print(f"# {how}: {dict(sender.results)}", flush=True)
    for sender in everyone:
        sender.check(reader.got[sender.address])
        sender.sock.close()
    for how, said in (("hasty", "EAGAIN"), ("patient", "ETIMEDOUT"), ("interrupted", "EINTR")):
        g.check(senders[how].results[said], f"the {how} sender never got {said}")
    reader.sock.close()


CASES = (what_sendmsg_says_on_a_flapping_link,)
