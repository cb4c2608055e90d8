# SPDX-License-Identifier: GPL-2.0
"""Connections that end while they are accepted, and that are accepted with too little memory."""

import errno
import random
import socket
import struct
import threading
import time

import faults
import guestlib as g
import netlink
import sockdiag
from wire import header

PEERS = 8
HERE = "10.8.0.1"


def address(number):
    """The address of a peer; all are on the second side of the wire."""
    return f"10.8.0.{10 + number}"


def peers():
    """A socket on our side, and one for each peer."""
    g.join("one", "two")
    with g.inside("two"):
        for number in range(PEERS):
            netlink.add_address("eth0", address(number), 24)
    # With a time-out Python would wait itself, whatever the flags.
    here = g.rds("one", HERE, 4000, timeout=0)
    return here, [g.rds("two", address(number), 4000, timeout=0) for number in range(PEERS)]


class Repeat(threading.Thread):
    """Does something in a namespace again and again."""

    def __init__(self, ns, action):
        super().__init__()
        self.ns, self.action, self.over, self.count, self.trouble = ns, action, False, 0, None
        self.start()

    def run(self):
        with g.inside(self.ns):
            while not self.over:
                try:
                    self.action()
                except Exception as error:
                    self.trouble = error
                    return
                self.count += 1
                time.sleep(0.005)


def end(threads):
    """Ends them, and fails if one of them did."""
    for thread in threads:
        thread.over = True
    for thread in threads:
        thread.join()
    trouble = [thread.trouble for thread in threads if thread.trouble]
    g.check(not trouble, f"{trouble}")


def intrude(chance):
    """A connection from a peer's address that ends at once, in one way or the other."""
    with socket.socket() as probe:
        probe.bind((address(chance.randrange(PEERS)), 0))
        probe.settimeout(1)
        if chance.random() < 0.5:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))
        if chance.random() < 0.2:
            # It is closed before it is connected.
            probe.setblocking(False)
        try:
            probe.connect((HERE, g.RDS_TCP_PORT))
            if chance.random() < 0.3:
                probe.send(header(1, 100, 4000, 4000)[: chance.choice((1, 47, 48))])
        except OSError:
            pass


class Traffic:
    """Numbers from our side to each peer and back; each must arrive once, in order."""

    def __init__(self):
        self.here, self.there = peers()
        self.sent = [0] * PEERS
        self.answered = [0] * PEERS
        self.received = [0] * PEERS
        self.back = [0] * PEERS

    def step(self):
        """Sends what can be sent, and takes what is there."""
        for number in range(PEERS):
            if sent(self.here, b"%d" % self.sent[number], (address(number), 4000)):
                self.sent[number] += 1
            if sent(self.there[number], b"%d" % self.answered[number], (HERE, 4000)):
                self.answered[number] += 1
        self.take()

    def take(self):
        """Takes what is there."""
        for number, sock in enumerate(self.there):
            for data, _ in ready(sock):
                g.check(data == b"%d" % self.received[number], f"peer {number}: {data} not {self.received[number]}")
                self.received[number] += 1
        for data, (source, _) in ready(self.here):
            number = int(source.rpartition(".")[2]) - 10
            g.check(data == b"%d" % self.back[number], f"from peer {number}: {data} not {self.back[number]}")
            self.back[number] += 1

    def complete(self):
        """Whether all has arrived."""
        self.take()
        return (self.received, self.back) == (self.sent, self.answered)

    def end(self):
        """Fails unless all arrives, nothing twice, and new messages pass both ways."""
        self.step()
        g.wait_for(self.complete, "not everything arrives", 2 * g.SOON, 0.1)
        time.sleep(0.5)
        g.check(self.complete(), "more arrives than was sent")
        print(f"# {sum(self.sent)} and {sum(self.answered)} messages", flush=True)
        for sock in (self.here, *self.there):
            sock.close()


def sent(sock, data, target):
    """Whether a message was taken; a lack of memory is a reason why not."""
    try:
        return g.try_send(sock, data, target)
    except OSError as error:
        g.check(error.errno == errno.ENOMEM, f"{error}")
        return False


def ready(sock):
    """The messages that can be read now."""
    while True:
        try:
            yield sock.recvfrom(100, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return


def connections_that_end_at_once_while_others_are_dropped():
    """Many TCP connections from the addresses of peers whose own connections are being dropped (R-37)."""
    traffic = Traffic()
    threads = [Repeat("two", lambda chance=random.Random(seed): intrude(chance)) for seed in range(3)]
    threads.append(Repeat("one", lambda: (sockdiag.kill(g.RDS_TCP_PORT), time.sleep(0.1))))
    stop = time.monotonic() + g.amount(8, 3, 60)
    try:
        while time.monotonic() < stop:
            traffic.step()
            time.sleep(0.02)
    finally:
        end(threads)
    print(f"# {sum(thread.count for thread in threads[:-1])} intruders, {threads[-1].count} cuts", flush=True)
    traffic.end()


def accepting_while_allocations_fail():
    """Connections are made and accepted while allocations of the transport fail (R-39)."""
    faults.prepare()
    traffic = Traffic()
    cutter = Repeat("one", lambda: (sockdiag.kill(g.RDS_TCP_PORT), time.sleep(0.3)))
    try:
        faults.only_below(*faults.code_of("rds_tcp"))
        for kind in faults.KINDS:
            faults.setting(kind, probability=5)
        stop = time.monotonic() + g.amount(8, 3, 60)
        while time.monotonic() < stop:
            traffic.step()
            time.sleep(0.05)
    finally:
        faults.off()
        end([cutter])
    traffic.end()


CASES = (accepting_while_allocations_fail, connections_that_end_at_once_while_others_are_dropped)
