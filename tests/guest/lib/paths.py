# SPDX-License-Identifier: GPL-2.0
"""The paths of a session of RTRS: what shows and changes them, and how the machine loses and finds them."""

import contextlib
import os
import threading

import guestlib as g
import rnbd

CLASS = "/sys/class/rtrs-client"


def paths(session="t"):
    """The directories of all paths."""
    folder = f"{CLASS}/{session}/paths"
    return [f"{folder}/{name}" for name in sorted(os.listdir(folder))]


def setting(session="t", **values):
    """Changes settings of a session."""
    for name, value in values.items():
        rnbd.must_write(f"{CLASS}/{session}/{name}", str(value))


def is_up(path):
    return rnbd.read(f"{path}/state") == "connected\n"


def disconnect(path):
    rnbd.must_write(f"{path}/disconnect", "1")


def reconnect(path):
    return rnbd.write(f"{path}/reconnect", "1")


def bring_back(session="t"):
    """Connects every path that is down, and waits until all are up."""

    def all_are_up():
        down = [path for path in paths(session) if not is_up(path)]
        return not [path for path in down if reconnect(path)]

    g.wait_for(all_are_up, "a path does not come back", step=0.2)


def becomes(device, state, seconds=g.SOON):
    return g.wait_for(lambda: device.show("state") == f"{state}\n", f"{device.disk} is not {state}", seconds)


def connects(session="t"):
    """How often the paths of a session were connected again."""
    return sum(int(rnbd.read(f"{path}/stats/reconnects").split()[0]) for path in paths(session))


# Seconds that requests of the Rust client wait for a path. C has no such thing.
PATIENCE = 90


@contextlib.contextmanager
def lasting(session="t"):
    """What is done inside outlasts the session's connections.

    When soft-RoCE sends something again, it also executes again the registrations of memory that stand behind it in the
    queue. That fails, and ends the connection without telling why. A lost packet is enough, or a machine that is so busy
    that an answer takes half a second. C loses its connections in the same way.
    """
    if g.RUST:
        setting(session, no_path_timeout=PATIENCE)
    with mending(session):
        yield


@contextlib.contextmanager
def mending(session="t"):
    """Paths that break meanwhile are connected again at once, not after half a minute."""
    over = threading.Event()

    def run():
        while not over.wait(0.5):
            # The session, or the path, may have gone.
            with contextlib.suppress(OSError):
                for path in paths(session):
                    if not is_up(path):
                        reconnect(path)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
