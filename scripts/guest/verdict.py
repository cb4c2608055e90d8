# SPDX-License-Identifier: GPL-2.0
"""What a run comes to: its exit status, and on stderr why, if it is not simply that of the command."""

import sys

import status


def judge(course, in_time, timeout):
    """Says what went wrong, if anything, and returns the exit status."""
    failed = [guest for guest in course.guests if _explain(guest, in_time)]
    if not in_time:
        _say(None, f"timed out after {timeout:g} s")
        return status.TIMEOUT
    if failed:
        own = course.status()
        _say(None, "failed" if own is None else f"failed; the command itself ended with status {own}")
        return status.KERNEL
    return course.status()


def _explain(guest, in_time):
    """Says what is wrong with a guest, or returns False."""
    if guest.console.complaints:
        _say(guest, "the kernel reported a fault:", guest.console.report())
    elif not in_time:
        _say(guest, f"{guest.reached.name.lower()} when the time was over; kernel log:", guest.console.tail())
    elif guest.stuck:
        _say(guest, "the guest did not power off; kernel log:", guest.console.tail())
    elif guest.status is None and not guest.killed:
        _say(guest, "the guest ended before its command; kernel log:", guest.qemu_says + guest.console.tail())
    else:
        return False
    return True


def _say(guest, message, text=b""):
    name = f"{guest.name}: " if guest and guest.name else ""
    sys.stderr.write(f"scripts/vm: {name}{message}\n")
    sys.stderr.flush()
    if text:
        sys.stderr.buffer.write(text + b"\n")
        sys.stderr.buffer.flush()
