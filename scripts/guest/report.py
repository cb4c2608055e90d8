# SPDX-License-Identifier: GPL-2.0
"""Finds what a kernel complains about in its console log."""

import re

# A line that matches means that the kernel, or one of its checkers, found a fault.
COMPLAINT = re.compile(
    rb"""
      \bBUG\b | \bWARNING: | \bOops\b | Kernel\ panic | kernel\ panic | general\ protection\ fault
    | Unable\ to\ handle | stack-protector: | double\ fault
    | rust_kernel:\ panicked
    | KASAN | KFENCE | KCSAN | UBSAN: | ODEBUG:
    | weft-leakcheck:
    | possible\ recursive\ locking | possible\ circular\ locking | possible\ irq\ lock | inconsistent\ lock\ state
    | [Ii]nvalid\ wait\ context | bad\ unlock\ balance | bad\ contention | held\ lock\ freed | still\ has\ locks\ held
    | lock\ held\ when\ returning | suspicious\ RCU\ usage | DEBUG_LOCKS_WARN_ON
    | INFO:\ (?: task | rcu | trying\ to\ register\ non-static\ key | possible )
    | rcu_\w+\ (?: self- )? detected\ .*stall | soft\ lockup | hard\ LOCKUP
    | sleeping\ function\ called | scheduling\ while\ atomic
    | refcount_t: | unregister_netdevice:\ waiting | ref_tracker: | leaked\ reference | reference\ already\ released
    | list_(?:add|del)\ corruption | Bad\ page\ state | Objects\ remaining
    | cannot\ create\ duplicate\ filename | tried\ to\ init\ an\ initialized\ object
    """,
    re.VERBOSE,
)
# Lines that match but are how a checker says that it works, or sees less because a test lets allocations fail.
HARMLESS = re.compile(
    rb"KernelAddressSanitizer initialized|KASAN: stack|rcu_cpu_kthread|ref_tracker: memory allocation failure"
)
PANIC = re.compile(rb"Kernel panic|kernel panic", re.IGNORECASE)

LINES_BEFORE = 8
LINES_AFTER = 80
LINES_TAIL = 25


class Console:
    """The console log of one guest so far, and the complaints in it."""

    def __init__(self, log=None):
        self.lines = []
        self.complaints = []
        self.panicked = False
        self._partial = b""
        self._log = log

    def feed(self, data):
        """Takes what the kernel wrote."""
        if self._log:
            self._log.write(data)
            self._log.flush()
        *lines, self._partial = (self._partial + data).replace(b"\r", b"").split(b"\n")
        for line in lines:
            self._line(line)

    def finish(self):
        """Takes the last line, if the guest died in the middle of it."""
        if self._partial:
            self._line(self._partial)
            self._partial = b""

    def _line(self, line):
        if COMPLAINT.search(line) and not HARMLESS.search(line):
            self.complaints.append(len(self.lines))
        self.panicked = self.panicked or bool(PANIC.search(line))
        self.lines.append(line)

    def report(self):
        """The first complaint with its surroundings."""
        first = self.complaints[0]
        begin, end = max(0, first - LINES_BEFORE), first + LINES_AFTER
        later = sum(1 for at in self.complaints if at >= end)
        text = self.lines[begin:end]
        if later:
            text.append(b"... and %d more such lines; --log FILE keeps the whole log" % later)
        return b"\n".join(text)

    def tail(self):
        """The end of the log."""
        return b"\n".join(self.lines[-LINES_TAIL:])
