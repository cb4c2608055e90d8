# SPDX-License-Identifier: GPL-2.0
"""What scenarios in Python have in common: cases, namespaces, RDS sockets."""

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
import weakref

sys.dont_write_bytecode = True

import netlink
from netlink import inside

MODE = os.environ.get("WEFT_MODE", "check")
DEBUG = os.environ.get("WEFT_KERNEL") == "debug"
RUST = os.environ.get("WEFT_IMPL", "rust") == "rust"

SOL_RDS = 276
RDS_CANCEL_SENT_TO = 1
RDS_RECVERR = 5
RDS_CONG_MONITOR = 6
SO_RDS_TRANSPORT = 8
RDS_CMSG_CONG_UPDATE = 5
TRANSPORT_TCP = 2
RDS_TCP_PORT = 16385

# How long something may take that ought to happen at once, on a machine that may be busy.
SOON = 60 if DEBUG else 30


def amount(base, debug, soak):
    """The number that fits this run; a soak on the debug kernel is as long as the check on the other."""
    if MODE == "soak":
        return base if DEBUG else soak
    return debug if DEBUG else base


class Skip(Exception):
    """A case that cannot be tried here; the text says why."""


failures = 0
# All RDS sockets that may be open.
_sockets = weakref.WeakSet()


def passed(name):
    print(f"PASS {name}", flush=True)


def failed(name, reason):
    global failures
    failures += 1
    print(f"FAIL {name}: {reason}", flush=True)


@contextlib.contextmanager
def case(name):
    """A named case that passes unless something is raised in it; returns how long it took."""
    begin = time.monotonic()
    try:
        yield
    except Skip as skip:
        print(f"SKIP {name}: {skip}", flush=True)
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        text = str(error).splitlines()[0] if str(error) else "see the output"
        failed(name, f"{type(error).__name__}: {text}")
    else:
        passed(name)
    print(f"# {name} took {time.monotonic() - begin:.1f} s", flush=True)


def check(condition, text):
    """Raises `text` unless the condition holds."""
    if not condition:
        raise AssertionError(text)


def wait_for(condition, text, seconds=SOON, step=0.02):
    """Waits until the condition holds; returns how long it took."""
    begin = time.monotonic()
    while not condition():
        check(time.monotonic() - begin < seconds, f"{text}: not within {seconds} s")
        time.sleep(step)
    return time.monotonic() - begin


def run(*words, **options):
    """Runs a program; what it prints is in the exception if it fails."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    check(done.returncode == 0, f"{' '.join(words[:6])}: status {done.returncode}: {done.stdout.strip()[-300:]}")
    return done.stdout


def ip(*lines, ns=None):
    """Lets ip(8) execute lines, in a namespace if one is given."""
    inside = ["-n", ns] if ns else []
    run("ip", *inside, "-batch", "-", input="".join(f"{line}\n" for line in lines))


def join(a, b, number=0):
    """Two namespaces on one wire; returns their addresses 10.8.NUMBER.1 and .2 (also fd08:NUMBER::1 and ::2)."""
    netlink.add_namespace(a)
    netlink.add_namespace(b)
    for ns in (a, b):
        with inside(ns):
            netlink.set_up("lo")
    return wire(a, b, number)


def wire(a, b, number=0, device="eth0"):
    """Joins two namespaces, as `join` does; `device` is the name of the first one's end."""
    netlink.add_veth(device, a, "eth0", b)
    for side, (ns, name) in enumerate(((a, device), (b, "eth0")), 1):
        with inside(ns):
            netlink.add_address(name, f"10.8.{number}.{side}", 24)
            netlink.add_address(name, f"fd08:{number}::{side}", 64)
            netlink.set_up(name)
    return f"10.8.{number}.1", f"10.8.{number}.2"


def delete(*names):
    """Deletes namespaces; returns how long that took."""
    begin = time.monotonic()
    for name in names:
        netlink.delete_namespace(name)
    return time.monotonic() - begin


def namespaces():
    try:
        return os.listdir("/run/netns")
    except FileNotFoundError:
        return []


def rds(ns=None, address=None, port=0, timeout=SOON):
    """An RDS socket, bound if an address is given."""
    with inside(ns):
        sock = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET, 0)
    _sockets.add(sock)
    if address:
        sock.bind((address, port))
    sock.settimeout(timeout)
    return sock


def try_send(sock, data, target):
    """Sends without waiting; False if there is no room, here or there."""
    try:
        sock.sendto(data, socket.MSG_DONTWAIT, target)
        return True
    except (BlockingIOError, TimeoutError):
        return False
    except OSError as error:
        if error.errno == errno.ENOBUFS:
            return False
        raise


def refcount(module):
    with open(f"/sys/module/{module}/refcnt") as file:
        return int(file.read())


def tidy():
    """Closes the sockets that a failed case has left, and removes all namespaces."""
    for sock in list(_sockets):
        sock.close()
    delete(*namespaces())


def named(name, function, *arguments):
    """A case for `main` of this name, which calls the function."""

    def case():
        function(*arguments)

    case.__name__ = name
    return case


def main(*cases):
    """Runs functions as the cases they are named after; each starts and ends without namespaces."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    try:
        for function in cases:
            with case(function.__name__.replace("_", "-")):
                function()
            tidy()
    finally:
        tidy()
    sys.exit(failures > 0)
