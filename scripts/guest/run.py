# SPDX-License-Identifier: GPL-2.0
"""Takes one guest, or a pair, from start to verdict."""

import selectors
import signal
import socket
import time

from guest import Phase

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Seconds between two looks at what has no event of its own.
TICK = 0.5


class Interrupted(BaseException):
    """A signal that asks the runner to end."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number


def catch_signals():
    """Makes the signals that end a run clean up first."""

    def interrupt(number, _frame):
        raise Interrupted(number)

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)


class Single:
    """The course of a run with one guest."""

    def __init__(self, guest):
        self.guests = (guest,)

    def start(self, selector):
        self.guests[0].start(selector)

    def step(self):
        """Does what the states of the guests ask for; called after every event."""
        (guest,) = self.guests
        guest.release()
        guest.leave()

    def status(self):
        """The status of the run as far as the commands decide it; None if a guest ended too early."""
        return self.guests[0].status


class Pair:
    """The course of a run with two guests: A serves, B decides when the run is over."""

    def __init__(self, server, client):
        self.guests = (server, client)
        self._server_failed = False

    def start(self, selector):
        for guest, link in zip(self.guests, socket.socketpair()):
            guest.start(selector, link)

    def step(self):
        """Does what the states of the guests ask for; called after every event."""
        server, client = self.guests
        server.release()
        if server.phase not in (Phase.BOOTING, Phase.UP):
            client.release()
        self._exchange_ready()
        client_over = client.status is not None or client.phase is Phase.GONE
        if not client_over and (server.status or server.phase is Phase.GONE):
            self._server_failed = True
            client.kill()
        if client_over or self._server_failed:
            server.stop()
            server.leave()
            client.leave()

    def _exchange_ready(self):
        server, client = self.guests
        if server.ready:
            client.tell_peer_ready()
        if client.ready:
            server.tell_peer_ready()

    def status(self):
        """The status of the run as far as the commands decide it; None if a guest ended too early."""
        server, client = self.guests
        if self._server_failed:
            return server.status
        return client.status


def drive(course, timeout):
    """Runs to the end; True if that came in time. No guest is left behind, whatever happens."""
    deadline = time.monotonic() + timeout
    selector = selectors.DefaultSelector()
    try:
        course.start(selector)
        while selector.get_map():
            rest = deadline - time.monotonic()
            if rest <= 0:
                return False
            for key, _ in selector.select(min(rest, TICK)):
                key.data()
            course.step()
            for guest in course.guests:
                guest.tick()
        return True
    finally:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        for guest in course.guests:
            guest.kill()
        _drain(selector)
        for guest in course.guests:
            guest.finish()


def _drain(selector):
    """Takes what the ended guests had still written."""
    end = time.monotonic() + 5
    while selector.get_map() and time.monotonic() < end:
        for key, _ in selector.select(TICK):
            key.data()
