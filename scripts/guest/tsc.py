# SPDX-License-Identifier: GPL-2.0
"""The frequency of this machine's time stamp counter, which QEMU's emulated processor shows to its guest.

A guest finds it out by comparing with another clock while it boots. On a busy machine it is kept from running between
the two readings and gets it wrong, sometimes by a factor of ten; then all its time-outs are wrong as well.
"""

import ctypes
import mmap
import platform
import time
from functools import cache

# rdtsc; shl rdx, 32; or rax, rdx; ret
_CODE = bytes.fromhex("0f3148c1e2204809d0c3")
_SECONDS = 0.05
_TRIES = 50


@cache
def khz():
    """Kilohertz; None if that cannot be found out."""
    if platform.machine() != "x86_64":
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        # Memory that is writable and executable is not allowed everywhere.
        return None
    page.write(_CODE)
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    begin = _together(read)
    time.sleep(_SECONDS)
    end = _together(read)
    return round((end[1] - begin[1]) * 1e6 / (end[0] - begin[0]))


def _together(read):
    """Nanoseconds and ticks of about the same moment: of many tries, the one that was interrupted least."""
    tries = []
    for _ in range(_TRIES):
        before = time.monotonic_ns()
        ticks = read()
        after = time.monotonic_ns()
        tries.append((after - before, (before + after) // 2, ticks))
    return min(tries)[1:]
