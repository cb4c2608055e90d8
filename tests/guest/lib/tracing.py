# SPDX-License-Identifier: GPL-2.0
"""Trace events of RDS, read through tracefs."""

import contextlib
import os
import re
import subprocess
import time
from pathlib import Path

import guestlib as g
import snapshot

ROOT = Path("/sys/kernel/tracing")
RDS = ROOT / "events/rds"

PLACE = ["laddr", "faddr", "netns_inum", "transport", "tos", "path"]
DATAGRAM = ["flags", "lport", "fport", "len", "seq"]
# Fields of each event, in order.
EVENTS = {
    "rds_state_change": PLACE + ["last", "curr"],
    "rds_send": PLACE + DATAGRAM,
    "rds_receive": PLACE + DATAGRAM,
    "rds_retransmit": PLACE + DATAGRAM,
    "rds_drop": PLACE + DATAGRAM + ["reason"],
    "rds_cong_send": PLACE + ["ports"],
    "rds_cong_receive": PLACE + ["ports"],
}

# Reasons of rds_drop in the order of their numbers, and the counter of each.
REASONS = {
    "old_sequence": "recv_drop_old_seq",
    "no_socket": "recv_drop_no_sock",
    "dead_socket": "recv_drop_dead_sock",
    "ping_disabled": "recv_drop_no_sock",
    "ping_unanswerable": "drop_ping_unanswerable",
    "unread": "drop_unread",
    "bad_control_buffer": "drop_bad_control_buffer",
    "truncated": "drop_truncated",
    "cut_off": "drop_cut_off",
    "undelivered": "drop_undelivered",
    "closed": "drop_closed",
    "cancelled": "drop_cancelled",
    "conn_destroyed": "drop_conn_destroyed",
    "surplus_path": "drop_surplus_path",
    "control_refused": "drop_control_refused",
    "bad_header": "drop_conn_bad_header",
    "not_drained": "drop_conn_not_drained",
    "wrong_way": "drop_conn_wrong_way",
    "not_accepted": "drop_conn_not_accepted",
    "crowded": "drop_conn_crowded",
    "parked": "drop_conn_parked",
}
COUNTERS = sorted(set(REASONS.values()))
# How many of the last events are shown of what went wrong.
SHOWN = 2000


def mount():
    """Makes tracefs visible."""
    if not (ROOT / "events").exists():
        g.run("mount", "-t", "tracefs", "tracefs", str(ROOT))
    (ROOT / "buffer_size_kb").write_text("4096")


@contextlib.contextmanager
def shown_if_it_fails():
    """Keeps the events of RDS, and prints the last ones in lines `trace: ...` if something is raised."""
    mount()
    (ROOT / "trace").write_text("")
    (RDS / "enable").write_text("1")
    try:
        yield
    except g.Skip:
        raise
    except Exception:
        (RDS / "enable").write_text("0")
        for line in (ROOT / "trace").read_text().splitlines()[-SHOWN:]:
            print(f"trace: {line.strip()}")
        raise
    finally:
        (RDS / "enable").write_text("0")


def inode(namespace):
    """What events call a namespace."""
    return os.stat(f"/run/netns/{namespace}").st_ino


class Event(dict):
    """The fields of an event by name, numbers as numbers; its own name is `kind`."""

    _LINE = re.compile(r": (rds_\w+): (.*)$")

    def __init__(self, kind, text):
        words = (word.split("=", 1) for word in text.split())
        super().__init__({name: _value(value) for name, value in words})
        self.kind = kind

    def has(self, **wanted):
        """Whether it has these fields with these values."""
        return all(self.get(name) == value for name, value in wanted.items())


def _value(text):
    if text.startswith("::ffff:") and "." in text:
        return text[7:]
    try:
        return int(text, 0)
    except ValueError:
        return text


class Watch:
    """All events of RDS while it is entered; afterwards each drop must have been counted, and each count traced."""

    def __enter__(self):
        self._switch("1")
        g.wait_for(self._begins_quietly, "namespaces of the last case are still being taken down")
        return self

    def _begins_quietly(self):
        """Begins to count; false if something of the last case is dropped meanwhile, which may be seen once only."""
        (ROOT / "trace").write_text("")
        self.before = self._counts()
        time.sleep(0.1)
        return not self.all("rds_drop")

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                g.wait_for(lambda: not self.uncounted(), "drops are counted and traced alike", 5)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.uncounted()}") from None
        finally:
            self._switch("0")

    @staticmethod
    def _switch(choice):
        (RDS / "enable").write_text(choice)

    @staticmethod
    def _counts():
        now = snapshot.counters()
        return {name: now[name] for name in COUNTERS}

    def uncounted(self):
        """Counters that do not agree with the events: how much was counted, how much traced."""
        counted = {name: now - self.before[name] for name, now in self._counts().items()}
        traced = dict.fromkeys(COUNTERS, 0)
        for event in self.all("rds_drop"):
            traced[REASONS[event["reason"]]] += 1
        return {name: (counted[name], traced[name]) for name in COUNTERS if counted[name] != traced[name]}

    def all(self, kind, **wanted):
        """The events of a kind that have certain fields."""
        lines = (Event._LINE.search(line) for line in (ROOT / "trace").read_text().splitlines())
        events = (Event(*line.groups()) for line in lines if line and line[1] == kind)
        return [event for event in events if event.has(**wanted)]

    def one(self, kind, **wanted):
        """Waits for the event of a kind that has certain fields; there must be one only."""
        try:
            g.wait_for(lambda: self.all(kind, **wanted), f"{kind} with {wanted}", 20)
        except AssertionError as error:
            raise AssertionError(f"{error}, but {self.all(kind)}") from None
        found = self.all(kind, **wanted)
        g.check(len(found) == 1, f"{len(found)} times {kind} with {wanted}: {found}")
        return found[0]

    def some(self, kind, least=1, **wanted):
        """Waits for events of a kind that have certain fields."""
        try:
            g.wait_for(lambda: len(self.all(kind, **wanted)) >= least, f"{kind} with {wanted}", 20)
        except AssertionError as error:
            raise AssertionError(f"{error}, but {self.all(kind)}") from None
        return self.all(kind, **wanted)


def fields(event):
    """The fields that tracefs says an event has, but those that every event has."""
    text = (RDS / event / "format").read_text()
    names = re.findall(r"field:[^;]*?(\w+)(?:\[\d+\])?;", text)
    return [name for name in names if not name.startswith("common_")]


def reasons():
    """The names of reasons with their numbers, as tracefs tells programs."""
    _, text = (RDS / "rds_drop/format").read_text().split("REC->reason", 1)
    return {name: int(number) for number, name in re.findall(r'\{ (\d+), "(\w+)" \}', text)}


def perf_lines(output, *command):
    """The events of RDS while a command runs, as perf prints them."""
    g.run("perf", "record", "-q", "-B", "-N", "-a", "-e", "rds:*", "-o", output, *command)
    done = subprocess.run(["perf", "script", "-i", output], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "rds:rds_" in line]
