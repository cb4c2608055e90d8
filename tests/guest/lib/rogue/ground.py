# SPDX-License-Identifier: GPL-2.0
"""Where the scenario of hostile RDMA peers takes place: one guest that is client, server and both of their enemies.

`ram0` is mapped from the server to the client, over the same soft-RoCE device, by an honest pair whose traffic never
stops. `ram1` and `ram3` are for those who speak to the server by hand, `ram2` for those who may only read.
"""

import contextlib
import errno
import mmap
import os
import re
import threading
import time

import guestlib as g
import rnbd
from cases import ON_DEBUG, SOAK, Cases, eventually

SLOW = 4 if ON_DEBUG else 1
# A place in the code logs this often, then it is silent for the rest of the time.
LOG_BURST, LOG_SECONDS = 10, 5.0
DEPTH, CHUNK = 32, 65536
DISK_KIB = 8192
# Another address of the server, for a second path of a session.
SECOND_ADDRESS = "192.168.77.2"
# Names of hostile sessions that are there for longer.
KEPT = set()


def few(*values):
    """All of them in a soak; in a check the first and the last, since `rust/proto` has unit tests of the rest."""
    return values if SOAK else (values[0], values[-1])


def mixed(*tables):
    """One table of several, each in its order, spread over all: what logs in one place does not do so in a row."""
    whole = Cases("mixed")
    placed = [(number / len(table.all), case) for table in tables for number, case in enumerate(table.all)]
    whole.all = [case for _, case in sorted(placed, key=lambda pair: pair[0])]
    return whole


def up(invalidate="Y"):
    """Makes it; the modules of both roles are loaded."""
    rnbd.set_up_fabric()
    g.ip(f"address add {SECOND_ADDRESS}/24 dev fabric0")
    g.run("modprobe", "brd", "rd_nr=4", f"rd_size={DISK_KIB}")
    start_server(invalidate)
    g.run("modprobe", "rnbd_client")


def start_server(invalidate):
    """Loads the server; its chunks are few and small, since each path costs all of them."""
    sizes = f"sess_queue_depth={DEPTH}", f"max_chunk_size={CHUNK}"
    g.run("modprobe", "rtrs_server", *sizes, f"always_invalidate={invalidate}")
    g.run("modprobe", "rnbd_server", "dev_search_path=/dev")


def stop_server():
    """Unloads it."""
    g.run("modprobe", "-r", "rnbd_server", "rtrs_server", timeout=2 * g.SOON)


def down():
    """Takes everything away."""
    rnbd.unmap_all()
    rnbd.tear_down()


class Log:
    """The lines of RTRS and RNBD in the kernel's log, from now on."""

    def __init__(self):
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)
        self.kept = []

    def _more(self):
        while True:
            try:
                record = os.read(self.fd, 8192).decode(errors="replace")
            except BlockingIOError:
                return
            except BrokenPipeError:
                # Some were overwritten before they were read.
                continue
            text = record.split(";", 1)[1].split("\n", 1)[0]
            # The file escapes what is special to it.
            text = re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), text)
            if re.match(r"(rtrs|rnbd)_(client|server):", text):
                self.kept.append(text)

    def skip(self):
        """Forgets what was said up to now."""
        self._more()
        self.kept.clear()

    def lines(self, pattern=""):
        """What was said that matches."""
        self._more()
        return [line for line in self.kept if re.search(pattern, line)]

    def wait(self, pattern, seconds=2.0):
        """The same, waiting for the first."""
        end = time.monotonic() + seconds * SLOW
        while not (found := self.lines(pattern)) and time.monotonic() < end:
            time.sleep(0.005)
        return found


LOG = Log()


def tells(pattern, act):
    """Does what must be answered by exactly one line in the log that matches; the result of `act`."""
    for again in (True, False):
        LOG.skip()
        result = act()
        found = LOG.wait(pattern)
        if found or not again:
            break
        # The place may have said enough for a while.
        time.sleep(LOG_SECONDS + 0.2)
    assert len(found) == 1, f"lines like {pattern!r}: {found} among {LOG.lines()[-4:]}"
    return result


def transfer(device, write, offset, data, size=4096):
    """Direct I/O, which no cache answers: the bytes that were read, if they were."""
    memory = mmap.mmap(-1, size)
    memory[:] = data
    file = os.open(device.node, os.O_RDWR | os.O_DIRECT)
    try:
        (os.pwritev if write else os.preadv)(file, [memory], offset)
    finally:
        os.close(file)
    return memory[:]


class Honest:
    """Traffic of an ordinary client with the server, all the time; tells whether somebody disturbs it."""

    def __init__(self, number=0):
        self.device = rnbd.map_device(f"ram{number}", session="honest")
        self.rounds = 0
        self.longest = 0.0
        self.trouble = None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            while not self.stop.is_set():
                start = time.monotonic()
                offset = self.rounds % 512 * 4096
                data = b"%016d" % self.rounds * 256
                transfer(self.device, True, offset, data)
                if transfer(self.device, False, offset, bytes(4096)) != data:
                    self.trouble = f"round {self.rounds} came back changed"
                    return
                self.rounds += 1
                self.longest = max(self.longest, time.monotonic() - start)
                time.sleep(0.02)
        except OSError as error:
            self.trouble = f"{errno.errorcode.get(error.errno)} in round {self.rounds}"

    def check(self, most=5.0):
        """Fails if there was trouble since the last look, or a request took longer than `most` seconds."""
        before = self.rounds
        eventually(lambda: self.trouble or self.rounds > before, "a request of the honest client", 10)
        assert self.trouble is None, f"honest client: {self.trouble}"
        longest, self.longest = self.longest, 0.0
        assert longest < most * SLOW, f"a request of the honest client took {longest:.1f} s"

    def end(self):
        """Stops it and unmaps its device."""
        self.stop.set()
        self.thread.join(60)
        self.device.unmap()


def disk(number, offset, size=4096):
    """What the server's disk has there, past every cache."""
    memory = mmap.mmap(-1, size)
    file = os.open(f"/dev/ram{number}", os.O_RDONLY | os.O_DIRECT)
    try:
        os.preadv(file, [memory], offset)
    finally:
        os.close(file)
    return memory[:]


def server_paths():
    """Paths that the server shows, as (session, path)."""
    found = []
    for session in _names("/sys/class/rtrs-server"):
        found += [(session, path) for path in _names(f"/sys/class/rtrs-server/{session}/paths")]
    return found


def _names(folder):
    with contextlib.suppress(FileNotFoundError):
        return [name for name in os.listdir(folder) if name != "ctl"]
    return []


def only_honest():
    """Waits until the server has no other session than that of the honest client, and those that are kept."""
    eventually(lambda: {name for name, _ in server_paths()} <= {"honest"} | KEPT, "the end of the hostile sessions", 15)
