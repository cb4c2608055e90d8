# SPDX-License-Identifier: GPL-2.0
"""Calls that meet on one socket: R-28, R-40, and the like for the other calls."""

import os
import random
import select
import threading
import time

from address import sin
from api import lan
from cases import ON_DEBUG, SOAK, Cases, equal, outcome
from rdssock import CANCEL_SENT_TO, MSG_DONTWAIT, TCP, TRANSPORT, Sock

CASES = Cases("races")


def _at_once(*actions):
    """Runs actions at the same time; what each came to."""
    barrier = threading.Barrier(len(actions))
    results = [None] * len(actions)

    def run(index):
        barrier.wait()
        results[index] = outcome(actions[index])

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@CASES.case("R-28 bind, send and close at once", limit=300)
def _():
    seen = set()
    with lan.here() as target:
        to = target.address
        for turn in range(1000 if SOAK else 30 if ON_DEBUG else 150):
            sock = Sock()
            fd = sock.fd
            # So that each of the three comes first now and then.
            pause = turn % 4 * 2e-4
            # The descriptor may be another socket by then, but no one else makes any here.
            results = _at_once(
                lambda: sock.bind(sin(lan.A)),
                lambda: sock.send(b"x", to, MSG_DONTWAIT),
                lambda: (time.sleep(pause), os.close(fd)),
            )
            sock.fd = -1
            seen.add(results[1])
            assert results[0] in ("ok", "EBADF"), f"bind: {results[0]}"
            assert results[1] in (1, "ENOTCONN", "EBADF", "EAGAIN"), f"send: {results[1]}"
    assert "ENOTCONN" in seen or 1 in seen, f"{seen}"


@CASES.case("R-28 bind and send in a loop", limit=300)
def _():
    with lan.here() as target:
        to = target.address
        for _ in range(1000 if SOAK else 20 if ON_DEBUG else 100):
            with Sock() as sock:
                done = threading.Event()

                def send():
                    while not done.is_set():
                        result = outcome(lambda: sock.send(b"x", to, MSG_DONTWAIT))
                        assert result in (1, "ENOTCONN"), f"send: {result}"
                        if result == 1:
                            return

                sender = threading.Thread(target=send)
                sender.start()
                sock.bind(sin(lan.A))
                sender.join(10)
                done.set()
                assert not sender.is_alive()
            target.recv()


@CASES.case("one of two binds wins", limit=300)
def _():
    for _ in range(1000 if SOAK else 20 if ON_DEBUG else 80):
        with Sock() as one, Sock() as two:
            address = sin(lan.A, 4242)
            equal(sorted(_at_once(lambda: one.bind(address), lambda: two.bind(address))), ["EADDRINUSE", "ok"])
        with Sock() as one:
            equal(sorted(_at_once(lambda: one.bind(sin(lan.A)), lambda: one.bind(sin(lan.A2)))), ["EINVAL", "ok"])
        with Sock() as one:
            got = _at_once(lambda: one.bind(sin(lan.A)), lambda: one.set(TRANSPORT, TCP))
            assert got[0] == "ok" and got[1] in ("ok", "EOPNOTSUPP"), f"{got}"


@CASES.case("close while another reads", limit=60)
def _():
    # The call holds the socket; it ends with the next message or signal, or when its time is up.
    for _ in range(5):
        with lan.here() as one:
            two = lan.here()
            two.timeout(receive=0.5)
            result = []
            reader = threading.Thread(target=lambda: result.append(outcome(two.recv)))
            reader.start()
            time.sleep(0.1)
            port = two.port
            two.close()
            one.send(b"x", (lan.A, port))
            reader.join(10)
            equal(len(result), 1)


@CASES.case("R-40 two senders on one socket, destinations in turn", limit=60)
def _():
    with lan.here() as own, lan.there() as far:
        for sock in (own, far):
            sock.buffers(receive=1 << 22)
            sock.timeout(receive=10)
        # The first messages of a socket are those that choose a connection for it.
        for count in (4,) * 10 + (100 if ON_DEBUG else 1000,):
            with lan.here() as one:
                _two_senders(one, (far, own), count)


def _two_senders(one, targets, count):
    """Two threads send numbers to two sockets in turn, each beginning with another one; all must be right."""

    def send(mark, first):
        for number in range(count):
            equal(one.send(b"%c %d" % (mark, number), targets[(first + number) % 2].address), 2 + len(str(number)))

    equal(_at_once(lambda: send(ord("a"), 0), lambda: send(ord("b"), 1)), ["ok", "ok"])
    for index, sock in enumerate(targets):
        got = {b"a": [], b"b": []}
        for _ in range(count):
            message = sock.recv()
            equal(message.source, one.address)
            mark, number = message.data.split()
            got[mark].append(int(number))
        equal(got, {b"a": list(range(index, count, 2)), b"b": list(range(1 - index, count, 2))})
        equal(sock.pull(), None)


@CASES.case("cancel, send, read, poll and close together", limit=300)
def _():
    stop = time.monotonic() + (6 if ON_DEBUG else 4)
    chosen = random.Random(7)
    while time.monotonic() < stop:
        socks = [lan.here(), lan.there(), lan.here()]
        places = [sock.address for sock in socks]
        done = threading.Event()

        def churn(index, seed):
            pick = random.Random(seed)
            sock = socks[index]
            while not done.is_set():
                action = pick.randrange(5)
                if action == 0:
                    outcome(lambda: sock.set(CANCEL_SENT_TO, sin(*pick.choice(places))))
                elif action == 1:
                    outcome(lambda: sock.recv(9, MSG_DONTWAIT))
                elif action == 2:
                    outcome(lambda: sock.poll(select.POLLIN | select.POLLOUT))
                else:
                    outcome(lambda: sock.send(bytes(pick.choice((0, 1, 600, 9000))), pick.choice(places), MSG_DONTWAIT))

        threads = [
            threading.Thread(target=churn, args=(index, chosen.random())) for index in range(len(socks)) for _ in "ab"
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        done.set()
        for thread in threads:
            thread.join()
        for sock in socks:
            sock.close()
