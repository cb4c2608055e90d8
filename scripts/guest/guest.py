# SPDX-License-Identifier: GPL-2.0
"""One guest: its QEMU process, the channels to it, and how far it has come.

The guest talks through four channels: `control` carries the job and one-word messages, `stdout` and `stderr` the
output of the command up to a token, and the console what its kernel has to say.
"""

import os
import selectors
import socket
import time
from enum import Enum

import output
import qemu

# Seconds that a guest has for the last part of its way; generous, because the machine may be busy.
DRAIN_SECONDS = 15
POWER_OFF_SECONDS = 60
STOP_SECONDS = 120
PANIC_SECONDS = 15

CHUNK = 1 << 16


class Phase(Enum):
    """How far a guest has come; `status` is known from FINISHED on, and `reached` is the last phase before GONE."""

    BOOTING = 0
    UP = 1
    RUNNING = 2
    FINISHED = 3
    LEAVING = 4
    GONE = 5


class Guest:
    """A guest from its start to its end. The owner calls `tick` after each round of the selector."""

    def __init__(self, name, machine, job, console):
        self.name = name
        self.phase = Phase.BOOTING
        self.reached = None
        self.status = None
        self.ready = False
        self.stuck = False
        self.killed = False
        self.console = console
        self.qemu_says = b""
        self._machine = machine
        self._job = job
        self._process = None
        self._channels = {}
        self._limit = None
        self._stopped = False
        self._dying = False
        self._told_peer_ready = False
        token = job.token.encode()
        self._streams = {
            "stdout": (output.UntilToken(token), output.sink(1, name)),
            "stderr": (output.UntilToken(token), output.sink(2, name)),
        }
        self._control_line = b""

    # Start and end.

    def start(self, selector, link=None):
        """Starts QEMU; `link` is this end of the wire between two guests."""
        far = {}
        for channel in (*qemu.PORTS, qemu.CONSOLE):
            self._channels[channel], far[channel] = socket.socketpair()
        if link:
            far["link"] = link
        says, told = os.pipe()
        fds = {channel: end.fileno() for channel, end in far.items()}
        self._process = qemu.start(self._machine.command(fds), tuple(fds.values()), told, told)
        os.close(told)
        for end in far.values():
            end.close()
        self._send(self._job.encoded())
        for channel, end in self._channels.items():
            self._watch(selector, end, lambda data, channel=channel: self._received(channel, data))
        self._watch(selector, os.fdopen(says, "rb", buffering=0), self._qemu_said)
        gone = os.pidfd_open(self._process.pid)
        selector.register(gone, selectors.EVENT_READ, lambda: self._exited(selector, gone))

    def kill(self):
        """Ends the guest at once. Harmless if it has ended."""
        if self._process:
            self.killed = self.killed or self.phase is not Phase.GONE
            qemu.kill(self._process)

    # What the host tells the guest. Each of these may be called again and again.

    def release(self):
        """Lets the command start once the guest is up."""
        if self.phase is Phase.UP:
            self._send(b"go\n")
            self.phase = Phase.RUNNING

    def stop(self):
        """Ends the command if it still runs; the guest then leaves as if it had ended by itself."""
        if not self._stopped:
            self._stopped = True
            self._allow(STOP_SECONDS)
            self._send(b"stop\n")

    def tell_peer_ready(self):
        """Passes on that the other guest is ready."""
        if not self._told_peer_ready:
            self._told_peer_ready = True
            self._send(b"peer\n")

    def leave(self):
        """Lets the guest power off once all its output is here."""
        if self.phase is not Phase.FINISHED:
            return
        if all(stream.ended for stream, _ in self._streams.values()) or self._late():
            self._send(b"off\n")
            self.phase = Phase.LEAVING
            self._allow(POWER_OFF_SECONDS)

    def tick(self):
        """Ends a guest that hangs on its last way."""
        if self.phase is Phase.GONE:
            return
        if self.console.panicked and not self._dying:
            self._dying = True
            self._allow(PANIC_SECONDS)
        if self.phase is not Phase.FINISHED and self._late():
            self.stuck = True
            self.kill()

    def _allow(self, seconds):
        self._limit = time.monotonic() + seconds

    def _late(self):
        return self._limit is not None and time.monotonic() > self._limit

    # What comes from the guest.

    def _watch(self, selector, source, consume):
        def readable():
            try:
                data = os.read(source.fileno(), CHUNK)
            except ConnectionResetError:
                data = b""
            if data:
                consume(data)
            else:
                selector.unregister(source)
                source.close()

        selector.register(source, selectors.EVENT_READ, readable)

    def _received(self, channel, data):
        if channel == qemu.CONSOLE:
            self.console.feed(data)
        elif channel == "control":
            *lines, self._control_line = (self._control_line + data).split(b"\n")
            for line in lines:
                self._message(line.decode("ascii", "replace").split())
        else:
            stream, sink = self._streams[channel]
            sink.write(stream.feed(data))

    def _message(self, words):
        match words:
            case ["up"]:
                self.phase = Phase.UP
            case ["ready"]:
                self.ready = True
            case ["status", number]:
                self.status = int(number)
                self.ready = self.ready or self.status == 0
                self.phase = Phase.FINISHED
                self._allow(DRAIN_SECONDS)

    def _qemu_said(self, data):
        self.qemu_says += data

    def _exited(self, selector, gone):
        selector.unregister(gone)
        os.close(gone)
        self._process.wait()
        self.reached, self.phase = self.phase, Phase.GONE

    def finish(self):
        """Passes on what waited for more; to be called when all channels have ended."""
        self.console.finish()
        for stream, sink in self._streams.values():
            sink.write(stream.finish())
            sink.finish()

    def _send(self, data):
        try:
            self._channels["control"].sendall(data)
        except OSError:
            pass  # The guest is gone, which the handle of its process tells.
