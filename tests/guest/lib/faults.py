# SPDX-License-Identifier: GPL-2.0
"""Allocations that fail, in the kernels that can let them."""

import ctypes
import errno
import os

import guestlib as g

FAULTS = "/sys/kernel/debug"
KINDS = ("failslab", "fail_page_alloc")
EVERYWHERE = (0, 2**64 - 1)
SYS_FINIT_MODULE, SYS_DELETE_MODULE = 313, 176
# A call that still fails at its so many-th allocation has no end.
MOST = 200
# What a call may answer when there is no memory.
# EFAULT is a copy from or to the user that fails, ENFILE what socket() says if there is none for the file.
FAIR = {errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN, errno.EFAULT, errno.ENFILE}

_libc = ctypes.CDLL(None, use_errno=True)


def setting(kind, **values):
    for name, value in values.items():
        with open(f"{FAULTS}/{kind}/{name.replace('_', '-')}", "w") as file:
            file.write(f"{value}\n")


def only_below(begin, end):
    """Only allocations fail that have a function from this range of addresses among their callers."""
    for kind in KINDS:
        setting(kind, require_start=hex(begin), require_end=hex(end), stacktrace_depth=32)


def off():
    # First of all: half of a range would let everything fail, also what sets the other half.
    for kind in KINDS:
        setting(kind, probability=0)
    only_below(*EVERYWHERE)


def prepare():
    """Also those allocations fail that may wait, and pages one by one; without a report for each."""
    for kind in KINDS:
        if not os.path.isdir(f"{FAULTS}/{kind}"):
            raise g.Skip(f"this kernel has no {kind}")
        setting(kind, verbose=0, ignore_gfp_wait="N", probability=0, times=-1)
    setting("fail_page_alloc", min_order=0, ignore_gfp_highmem="N")
    only_below(*EVERYWHERE)


class FailNth:
    """Lets the N-th allocation of this thread fail."""

    def __init__(self):
        self.fd = os.open("/proc/thread-self/fail-nth", os.O_RDWR)

    def arm(self, number):
        os.pwrite(self.fd, b"%d" % number, 0)

    def disarm(self):
        """Whether the failure has happened."""
        try:
            happened = int(os.pread(self.fd, 20, 0).rstrip(b"\0\n")) == 0
        except OSError as error:
            # Copies to the user count as well: it was this one that failed, so none did before.
            g.check(error.errno == errno.EFAULT, f"fail-nth: {error}")
            happened = False
        while True:
            try:
                os.pwrite(self.fd, b"0", 0)
                return happened
            except OSError as error:
                # The same, for the copy of the zero; the failure is used up by that.
                g.check(error.errno == errno.EFAULT, f"fail-nth: {error}")


def some(most=20000):
    """Numbers of allocations for calls that have too many to let each fail: all at first, then fewer and fewer."""
    number = 1
    while number < most:
        yield number
        number += 1 + number // 8


def every_allocation(name, attempt, undo=lambda result: None, fair=FAIR, numbers=range(1, MOST)):
    """Calls `attempt` until no allocation in it is left to fail; `undo` takes back one that succeeded."""
    nth = FailNth()
    tried = refused = 0
    for number in numbers:
        error = result = None
        nth.arm(number)
        try:
            result = attempt()
        except OSError as caught:
            error = caught
        happened = nth.disarm()
        if error is None:
            undo(result)
        else:
            refused += 1
            g.check(happened, f"{name}: {error} without a failed allocation")
            g.check(error.errno in fair, f"{name}: {error} when allocation {number} fails")
        if not happened:
            print(f"# {name}: {tried} allocations failed, {refused} calls with them", flush=True)
            os.close(nth.fd)
            return
        tried += 1
    raise AssertionError(f"{name}: still fails at allocation {number}")


def in_child(attempt, number):
    """Makes the N-th allocation of `attempt` fail in a child; 0: it succeeded, 1: not, 2: nothing was left to fail."""
    child = os.fork()
    if child == 0:
        status, nth = 0, FailNth()
        nth.arm(number)
        try:
            attempt()
        except OSError:
            status = 1
        os._exit(status if nth.disarm() else 2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def load_with_failures(name, path, numbers=range(1, MOST)):
    """The module fails to load, and is loaded in the end."""
    tried = 0
    for number in numbers:
        status = in_child(lambda: load(path), number)
        g.check(status in (0, 1, 2), f"the child that loads {name} ended with {status}")
        if status == 2:
            print(f"# loading {name}: {tried} allocations failed", flush=True)
            return
        tried += 1
        if status == 0:
            g.run("rmmod", name)
    raise AssertionError(f"loading {name} still fails at allocation {number}")


def remove_with_failures(name):
    path = g.run("modinfo", "-n", name).strip()
    for number in range(1, MOST):
        status = in_child(lambda: syscall(SYS_DELETE_MODULE, name.encode(), os.O_NONBLOCK), number)
        g.check(status in (0, 2), f"{name} does not go when allocation {number} fails")
        load(path)
        if status == 2:
            return


def load(path):
    with open(path, "rb") as file:
        syscall(SYS_FINIT_MODULE, file.fileno(), b"", 0)


def syscall(*arguments):
    if _libc.syscall(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def code_of(*modules):
    """Where the code of these modules is. No other module may lie in between: it would be tried, too."""
    with open("/proc/modules") as file:
        lines = [line.split() for line in file]
    # The sizes include data that are elsewhere; the next module is no nearer than the code is long.
    starts = sorted((int(line[5], 16), int(line[1]), line[0]) for line in lines)
    names = [name for _, _, name in starts]
    places = [names.index(name) for name in modules]
    between = set(names[min(places) : max(places)]) - set(modules)
    g.check(not between, f"{between} among {modules}: load them one after the other")
    begin, last = starts[min(places)][0], starts[max(places)]
    end = last[0] + last[1]
    if max(places) + 1 < len(starts):
        end = min(end, starts[max(places) + 1][0])
    return begin, end


def function_range(name):
    """Where a function of the kernel begins and the next one does."""
    with open("/proc/kallsyms") as file:
        symbols = sorted((int(line.split()[0], 16), line.split()[2]) for line in file if "[" not in line)
    begin = next(address for address, symbol in symbols if symbol == name)
    return begin, next(address for address, _ in symbols if address > begin)


def case(function):
    """Runs a function as the case it is named after, and lets nothing fail any more."""
    with g.case(function.__name__.replace("_", "-")):
        prepare()
        try:
            function()
        finally:
            off()
