# SPDX-License-Identifier: GPL-2.0
"""Modules, network namespaces and links of a scenario."""

import contextlib
import os
import socket
import subprocess
from pathlib import Path

from cases import eventually


def run(*command, check=True):
    """Runs a program; its output."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0 or not check, f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}"
    return done.stdout


def ip(commands):
    """Runs lines of `ip` commands."""
    lines = "\n".join(line.strip() for line in commands.strip().splitlines())
    done = subprocess.run(["ip", "-batch", "-"], input=lines + "\n", check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"ip: {done.stderr.strip()}"


@contextlib.contextmanager
def inside(namespace):
    """What the calling thread does inside happens in a network namespace; None is the one it is in."""
    if namespace is None:
        yield
        return
    with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{namespace}") as there:
        os.setns(there.fileno(), os.CLONE_NEWNET)
        try:
            yield
        finally:
            os.setns(home.fileno(), os.CLONE_NEWNET)


def sysctl(name, value=None, namespace=None):
    """Reads or writes a tunable."""
    path = Path("/proc/sys") / name.replace(".", "/")
    with inside(namespace):
        if value is None:
            return path.read_text().strip()
        path.write_text(f"{value}\n")
    return None


def loaded(module):
    """Whether a module is loaded."""
    return Path("/sys/module", module, "initstate").exists()


def references(module):
    """How many references a module has."""
    return int(Path("/sys/module", module, "refcnt").read_text())


def load(*modules):
    """Loads modules."""
    for module in modules:
        run("modprobe", module)


def unload():
    """Unloads RDS; fails if something holds it."""
    run("modprobe", "-r", "rds_tcp", "rds")
    left = [module for module in ("rds_tcp", "rds") if loaded(module)]
    assert not left, f"still loaded: {left}"


def references_settle(module, count):
    """Waits until a module has `count` references: sockets are freed a little after they are closed."""
    eventually(lambda: references(module) == count, f"{module} has {references(module)} references, not {count}")


def wait_until_it_waits(pid):
    """Waits until a process sleeps in `sendmsg` or `recvmsg`."""
    eventually(lambda: Path(f"/proc/{pid}/syscall").read_text().split()[0] in ("46", "47"), "the call waits")


def has_link(name):
    """Whether the calling thread's namespace has an interface."""
    return name in [link for _, link in socket.if_nameindex()]


def interface(name):
    """Index of an interface of the calling thread's namespace."""
    return socket.if_nametoindex(name)
