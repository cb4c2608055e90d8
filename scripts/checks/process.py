# SPDX-License-Identifier: GPL-2.0
"""Programs that a run starts, each the leader of its own process group so that nothing of it stays behind."""

import os
import signal
import subprocess
import threading

# Seconds between the polite and the final end; a guest runner needs a moment to stop its guests.
GRACE_SECONDS = 15


class Processes:
    """All programs that run now; `stop` ends them and keeps new ones from starting."""

    def __init__(self):
        self._lock = threading.Lock()
        self._running = set()
        self._stopped = False

    def run(self, command, log, env, consume, cwd):
        """Runs a program to its end, with its output in `log` and line by line in `consume`; returns its status."""
        with self._lock:
            if self._stopped:
                return 130
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=os.environ | env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._running.add(process)
        try:
            for raw in process.stdout:
                log.write(raw)
                log.flush()
                consume(raw.decode("utf-8", "replace").rstrip("\r\n"))
            return process.wait()
        finally:
            with self._lock:
                self._running.discard(process)

    def stop(self):
        """Ends everything."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for number, patience in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, 5)):
            for process in running:
                _signal_group(process, number)
            for process in running:
                try:
                    process.wait(patience)
                except subprocess.TimeoutExpired:
                    pass


def _signal_group(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass
