# SPDX-License-Identifier: GPL-2.0
"""What the administrator can set: /proc/sys/net/rds and the module's parameter; section 5 of the reference."""

import os
import stat
from pathlib import Path

import lab
from cases import Cases, equal, outcome

CASES = Cases("sysctl")
OURS = "there is none"
# Values that are refused, and values that are taken with how they are read then.
INT = ("x", "", "2147483648", "-2147483649"), {"0": "0", "-1": "-1", "2147483647": "2147483647"}
# Times are kept in ticks of 4 ms, rounded up, and at least one.
MIN = ("x", "-1", "0", "1001"), {"1": "4", "5": "8", "1000": "1000"}
MAX = ("x", "-1", "0"), {"1": "4", "999": "1000", "100000": "100000"}

# Name, default, what is refused, what is taken, how C differs.
SYSCTLS = (
    ("reconnect_min_delay_ms", "4", *MIN, None),
    ("reconnect_max_delay_ms", "1000", *MAX, None),
    ("max_unacked_packets", "8", *INT, None),
    ("max_unacked_bytes", str(16 << 20), *INT, None),
    ("ping_enable", "1", *INT, None),
    ("idle_timeout_ms", None, ("x", "-1"), {"0": "0", "1000": "1000"}, OURS),
    ("max_unread_bytes", None, ("x", "-1"), {"0": "0", "65536": "65536"}, OURS),
    ("max_connections", None, ("x", "-1", "0", "2147483648"), {"1": "1", "2147483647": "2147483647"}, OURS),
)
# Sizes below the smallest that a socket can have are refused, the default among them; there is one for each namespace.
SIZES = ("x", "-1", "0", "1000", "2147483648"), {"10000": "10000", "2147483647": "2147483647"}


def _takes(name, refused, taken, namespace=None):
    """Writes all values and leaves the one that was there, if it can be written."""
    before = lab.sysctl(name, namespace=namespace)
    for value in refused:
        equal(outcome(lambda value=value: lab.sysctl(name, value, namespace)), "EINVAL", f"{name} = {value!r}")
        equal(lab.sysctl(name, namespace=namespace), before, f"{name} after {value!r}")
    for value, read in taken.items():
        lab.sysctl(name, value, namespace)
        equal(lab.sysctl(name, namespace=namespace), read, f"{name} = {value!r}")
    outcome(lambda: lab.sysctl(name, before, namespace))


def _mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


for name_, default_, refused_, taken_, c_ in SYSCTLS:

    def _check(name=name_, default=default_, refused=refused_, taken=taken_):
        path = f"net.rds.{name}"
        if default is not None:
            equal(lab.sysctl(path), default)
        equal(_mode(f"/proc/sys/net/rds/{name}"), 0o644)
        _takes(path, refused, taken)

    CASES.case(f"net.rds.{name_}", c=c_)(_check)


@CASES.case("the shortest pause is at most the longest")
def _():
    lab.sysctl("net.rds.reconnect_min_delay_ms", 100)
    equal(outcome(lambda: lab.sysctl("net.rds.reconnect_max_delay_ms", 96)), "EINVAL")
    lab.sysctl("net.rds.reconnect_max_delay_ms", 100)
    equal(outcome(lambda: lab.sysctl("net.rds.reconnect_min_delay_ms", 104)), "EINVAL")
    lab.sysctl("net.rds.reconnect_max_delay_ms", 1000)
    lab.sysctl("net.rds.reconnect_min_delay_ms", 4)


@CASES.case("buffer sizes belong to a namespace, all else to the first")
def _():
    lab.ip("netns add other")
    try:
        for size in ("rds_tcp_sndbuf", "rds_tcp_rcvbuf"):
            name = f"net.rds.tcp.{size}"
            equal(lab.sysctl(name), "0")
            equal(_mode(f"/proc/sys/net/rds/tcp/{size}"), 0o644)
            _takes(name, *SIZES, "other")
            equal(lab.sysctl(name), "0")
        with lab.inside("other"):
            equal(sorted(os.listdir("/proc/sys/net/rds")), ["tcp"])
    finally:
        lab.ip("netns del other")


@CASES.case("messages of a turn")
def _():
    path = Path("/sys/module/rds/parameters/send_batch_count")
    equal((path.read_text(), _mode(path)), ("1024\n", 0o444))
