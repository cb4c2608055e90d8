# SPDX-License-Identifier: GPL-2.0
"""Something is used at the moment when it is deleted: buffer sizes of a namespace, addresses of a link."""

import collections
import errno
import itertools
import os
import socket
import threading
import time
from concurrent import futures

import guestlib as g
import netlink
from address import sin6
from rdssock import MSG_DONTWAIT, Sock

SIZES = ("rds_tcp_sndbuf", "rds_tcp_rcvbuf")


class Writer(threading.Thread):
    """Writes the buffer sizes of a namespace until there are none, which resets its connections each time."""

    def __init__(self, ns):
        super().__init__()
        with g.inside(ns):
            self.files = [os.open(f"/proc/sys/net/rds/tcp/{name}", os.O_WRONLY) for name in SIZES]
        self.written = 0
        self.error = None
        self.over = False
        self.start()

    def run(self):
        for number, file in zip(itertools.count(), itertools.cycle(self.files)):
            try:
                os.pwrite(file, b"%d" % (20000 + number % 1000), 0)
                self.written += 1
            except OSError as error:
                self.error = error.errno
            if self.error or self.over:
                return
            # Whoever deletes the namespace needs a processor, too.
            time.sleep(0.002)

    def end(self):
        """Waits until the sizes are gone; what a write then said."""
        self.join(4 * g.SOON)
        self.over = True
        self.join()
        for file in self.files:
            os.close(file)
        return self.error


def leave(number):
    """Two namespaces with traffic in them end while their buffer sizes are written; those who write."""
    names = (f"one{number}", f"two{number}")
    addresses = g.join(*names)
    socks = [g.rds(ns, address, 4000) for ns, address in zip(names, addresses)]
    own = g.rds(names[0], "127.0.0.1", 4000)
    socks[0].sendto(b"first", (addresses[1], 4000))
    socks[1].recv(100)
    writers = [Writer(ns) for ns in (names[0], *names)]
    for _ in range(10):
        g.try_send(socks[0], bytes(9000), (addresses[1], 4000))
        g.try_send(socks[1], bytes(9000), (addresses[0], 4000))
        g.try_send(own, bytes(9000), ("127.0.0.1", 4000))
    # The last to go is what ends the namespace: now the sockets, now the files in /run/netns.
    steps = [lambda: [sock.close() for sock in (*socks, own)], lambda: g.delete(*names)]
    for step in steps if number % 2 else reversed(steps):
        step()
    return writers


def buffer_sizes_of_a_namespace_that_goes():
    """Both buffer sizes are written through open files while the namespace ends, with traffic in it (R-12)."""
    written = 0
    for turn in range(g.amount(10, 1, 100)):
        writers = [writer for number in range(4) for writer in leave(number)]
        ends = [writer.end() for writer in writers]
        g.check(set(ends) == {errno.ENOENT}, f"turn {turn}: the last writes said {ends}")
        written += sum(writer.written for writer in writers)
        g.check(all(writer.written for writer in writers), f"turn {turn}: nothing was written while a namespace went")
    print(f"# {written} writes", flush=True)


def address_of_a_link_that_goes():
    """Link-local addresses are bound, and sent from, while one link after the other is made and deleted (R-15)."""
    netlink.add_namespace("one")
    netlink.add_namespace("two")
    over = threading.Event()
    results = collections.Counter()
    # The loopback link, at first.
    latest = [1]
    binders = [threading.Thread(target=bind_and_send, args=(over, latest, results)) for _ in "ab"]
    # A link is gone from sight at once, but it takes long until its deletion has ended.
    with g.inside("one"), futures.ThreadPoolExecutor(16) as deleting:
        netlink.set_up("lo")
        for binder in binders:
            binder.start()
        try:
            deletions = flicker(latest, deleting, results, g.amount(8, 3, 60))
        finally:
            over.set()
            for binder in binders:
                binder.join()
    print(f"# {len(deletions)} links; {dict(results)}", flush=True)
    for deletion in deletions:
        deletion.result()
    wrong = {what for what in results if what[0] == "bind"} - {("bind", "ok"), ("bind", "EADDRNOTAVAIL")}
    g.check(not wrong, f"{wrong}")
    g.check(len(results) >= 3, f"only {dict(results)}: the link was always there, or never")


def flicker(latest, deleting, results, seconds):
    """Makes links with an address and has them deleted, each sooner or later, for some time and until there were at least
    three results; the deletions."""
    deletions, begin = [], time.monotonic()
    while time.monotonic() < begin + seconds or (len(results) < 3 and time.monotonic() < begin + g.SOON):
        name = f"veth{len(deletions)}"
        netlink.add_veth(name, None, name, "two")
        latest[0] = socket.if_nametoindex(name)
        netlink.set_up(name)
        netlink.add_address(name, "fe80::8:1", 64)
        time.sleep(len(deletions) % 5 * 0.004)
        deletions.append(deleting.submit(netlink.delete_link, name))
        if len(deletions) > 12:
            deletions[-12].result()
    return deletions


def bind_and_send(over, latest, results):
    """Binds to the address of the latest link, and sends from there; counts what that came to."""
    with g.inside("one"):
        while not over.wait(0.002):
            # By name it would not do: for one that is not there the kernel starts a program.
            index = latest[0]
            with Sock() as sock:
                said = outcome(lambda: sock.bind(sin6("fe80::8:1", 0, index)))
                results["bind", said] += 1
                if said == "ok":
                    said = outcome(lambda: sock.send(b"x", ("fe80::8:2", 4000, index), MSG_DONTWAIT))
                    results["send", said] += 1


def outcome(call):
    """What a call came to, as a word."""
    try:
        call()
        return "ok"
    except OSError as error:
        return errno.errorcode[error.errno]


CASES = (buffer_sizes_of_a_namespace_that_goes, address_of_a_link_that_goes)
