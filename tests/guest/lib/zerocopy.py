# SPDX-License-Identifier: GPL-2.0
"""Sending from the program's own memory, and the numbers that come back for it."""

import contextlib
import ctypes
import mmap
import select
import socket
import struct
import time

import guestlib as g

MSG_ZEROCOPY = 0x4000000
SO_ZEROCOPY = 60
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
CMSG_COOKIE, CMSG_COMPLETION = 12, 13
BATCH = 8
ROOM = socket.CMSG_SPACE(4 + 4 * BATCH)


def pair(target=None):
    """Two sockets on one wire, the first for zero-copy."""
    one, two = g.join("one", "two")
    a, b = g.rds("one", one, 4000), g.rds("two", two, 4000)
    for sock in (a, b):
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 4 << 20)
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
    a.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
    return a, b, target or (two, 4000)


def send(sock, data, cookie, target, flags=0):
    control = [(g.SOL_RDS, CMSG_COOKIE, struct.pack("=I", cookie))]
    return sock.sendmsg([data], control, MSG_ZEROCOPY | flags, target)


def cookies_of(control):
    """The numbers in control messages."""
    found = []
    for level, kind, data in control:
        if (level, kind) == (g.SOL_RDS, CMSG_COMPLETION):
            (count,) = struct.unpack_from("=I", data)
            g.check(0 < count <= BATCH, f"{count} numbers in one message")
            found += struct.unpack_from(f"={count}I", data, 4)
    return found


def ready_numbers(sock):
    """The numbers of one call that does not wait; `None` if there is nothing to read."""
    before = sock.gettimeout()
    # With a time-out Python would wait itself.
    sock.setblocking(False)
    try:
        data, control, _, _ = sock.recvmsg(0, ROOM)
    except BlockingIOError:
        return None
    finally:
        sock.settimeout(before)
    g.check(data == b"", "data instead of numbers")
    return cookies_of(control)


def completions(sock, count, seconds=g.SOON):
    """Waits for so many numbers, and for no more; returns them and how many calls it took."""
    found, calls, end = [], 0, time.monotonic() + seconds
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    while len(found) < count and time.monotonic() < end:
        # A new connection brings news about congestion, with nothing to read.
        if poll.poll(200) and (numbers := ready_numbers(sock)):
            found += numbers
            calls += 1
    g.check(len(found) == count, f"{len(found)} numbers of {count}")
    g.check(ready_numbers(sock) is None, "there is more to read")
    return found, calls


@contextlib.contextmanager
def cut_short(pages):
    """Memory of so many pages and one more, which is gone; all of it, and what is there."""
    page = mmap.PAGESIZE
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    length = (pages + 1) * page
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    start = libc.mmap(None, length, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    g.check(libc.munmap(start + pages * page, page) == 0, "munmap")
    try:
        yield (ctypes.c_char * length).from_address(start), (ctypes.c_char * (pages * page)).from_address(start)
    finally:
        libc.munmap(start, pages * page)
