# SPDX-License-Identifier: GPL-2.0
"""A process that may use little memory, and has to give some back for each message that it receives."""

import mmap
import os
import select
import socket
import struct
import traceback
from pathlib import Path

import guestlib as g
import netlink

GROUPS = Path("/sys/fs/cgroup")
LIMIT = 32 << 20
# Twice this is more than the process may have.
SPARE = 20 << 20
# So many messages are kept in memory of their own.
KEPT = 64
SIZE = 100000
SENDERS = 8


class Group:
    """A control group with little memory."""

    def __init__(self):
        self.path = GROUPS / "starving"

    def __enter__(self):
        (GROUPS / "cgroup.subtree_control").write_text("+memory\n")
        self.path.mkdir()
        (self.path / "memory.max").write_text(f"{LIMIT}\n")
        return self

    def __exit__(self, *_):
        # Processes leave it a little after their end.
        g.wait_for(lambda: not (self.path / "cgroup.procs").read_text(), "the control group is in use")
        self.path.rmdir()

    def enter(self):
        """Moves this process into it."""
        (self.path / "cgroup.procs").write_text(f"{os.getpid()}\n")

    def events(self):
        """What happened in it, by name."""
        lines = (self.path / "memory.events").read_text().splitlines()
        return {name: int(count) for name, count in map(str.split, lines)}


def memory(size, more=0):
    """Memory that has no pages yet."""
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | more)


def use_up():
    """Uses all memory there is, and lets the kernel take it when it needs some, but not before."""
    pieces = []
    for _ in range(2):
        pieces.append(memory(SPARE, mmap.MAP_POPULATE))
        pieces[-1].madvise(mmap.MADV_FREE)
    return pieces


def payload(number):
    """The content of a message."""
    return struct.pack("=I", number) * (SIZE // 4)


def receive(two, count, ready):
    """Makes a socket, says so, and receives from all senders, into memory whose pages have to be taken from elsewhere."""
    seen = {}
    with g.rds("two", two, 4000) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * SIZE)
        os.write(ready, b".")
        for turn in range(count * SENDERS):
            if turn % KEPT == 0:
                kept = []
                kept = use_up()
            kept.append(memory(SIZE))
            size, (source, _) = sock.recvfrom_into(kept[-1])
            number = seen[source] = seen.get(source, -1) + 1
            g.check(kept[-1][:size] == payload(number), f"message {number} of {source} is another one")
            sock.sendto(b"%d" % number, (source, 4000))


def in_group(group, function, *arguments):
    """Starts a process in the group."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            group.enter()
            function(*arguments)
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def send(two, count):
    """Sends to the process over as many connections as there are senders; all of them are new."""
    socks = []
    # With a time-out Python would make them non-blocking, and they would not wait for the end of congestion.
    for number in range(SENDERS):
        with g.inside("one"):
            netlink.add_address("eth0", f"10.8.0.{10 + number}", 24)
        sock = g.rds("one", f"10.8.0.{10 + number}", 4000, None)
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):
            sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", 2 * g.SOON, 0))
        socks.append(sock)
    for number in range(count):
        for sock in socks:
            sock.sendto(payload(number), (two, 4000))
    for number in range(count):
        for sock in socks:
            g.check(sock.recv(100) == b"%d" % number, f"another answer than {number}")
    for sock in socks:
        sock.close()


def receiver_at_its_memory_limit():
    """Connections are accepted for, and messages received by, a process that is at the limit of its memory (R-39)."""
    _, two = g.join("one", "two")
    count = g.amount(10, 2, 100)
    reader, writer = os.pipe()
    with Group() as group:
        child = in_group(group, receive, two, count, writer)
        os.close(writer)
        try:
            g.check(select.select([reader], [], [], g.SOON)[0] and os.read(reader, 1), "the process did not begin")
            send(two, count)
        finally:
            os.close(reader)
            # One that has nothing more to receive gives up by itself.
            _, status = os.waitpid(child, 0)
        events = group.events()
    print(f"# {events}", flush=True)
    g.check(status == 0, f"the process ended with {status:#x}")
    g.check(events["max"] > count, f"it was not at its limit: {events}")


CASES = (receiver_at_its_memory_limit,)
