# SPDX-License-Identifier: GPL-2.0
"""Clients that are many, that say nothing, and that leave at any time: memory stays bounded, others are served."""

import errno
import threading
import time

import rtrs_wire as wire
import verbs
from cases import ON_DEBUG, SOAK, Cases, equal, eventually
from memory import Watch
from rogue.ground import DISK_KIB, KEPT, SLOW, few, only_honest
from rtrs_peer import Peer, Refused
from verbs import until

FLOODS = Cases("crowds")
LEAVING = Cases("leaving")
QUIET = Cases("quiet")
# What a connection costs on both sides, in KiB: both are here.
BOTH_SIDES = 250
# Paths that the server lets be half open.
HALF_OPEN = 64


@FLOODS.case("N-37 hundreds of half-open connections", limit=240)
def _():
    count = 1000 if SOAK and not ON_DEBUG else 120
    watch, peers, refused = Watch(), [], 0
    for _ in range(count):
        peer = Peer()
        try:
            peer.dial_raw(wire.connect(peer.path, peer.session), receives=1)
            peers.append(peer)
        except Refused as reason:
            equal(reason.code, errno.EBUSY)
            peer.close()
            refused += 1
    dropped = eventually(lambda: sum(not peer.look() for peer in peers), "the oldest are dropped")
    assert dropped + refused >= count - HALF_OPEN, f"{count} came, {dropped} were dropped and {refused} refused"
    watch.bounded(len(peers) * BOTH_SIDES, f"{len(peers)} connections")
    # Whoever comes now is let in as soon as the youngest of them are not so young any more.
    with until(_newcomer, 5 * SLOW) as newcomer:
        equal(newcomer.greet(), 2)
    for peer in peers:
        peer.close()
    watch.returns(16 * 1024, "half-open connections that are gone", 20)


def _newcomer():
    peer = Peer()
    try:
        return peer.up()
    except Refused as reason:
        peer.close()
        equal(reason.code, errno.EBUSY)
        return None


@FLOODS.case("N-37 paths that announce 4096 connections each keep nobody out", limit=60)
def _():
    peers = [Peer(cid_num=4096) for _ in range(20)]
    for peer in peers:
        peer.dial_raw(wire.connect(peer.path, peer.session, cid_num=4096), receives=1)
    with Peer(cid_num=3) as newcomer:
        equal(newcomer.up().greet(), 2)
    for peer in peers:
        assert peer.look(), "it was dropped though there was room"
        peer.close()


@FLOODS.case("paths that come and go", limit=240)
def _():
    watch = Watch()
    for _ in range(500 if SOAK and not ON_DEBUG else 20):
        with Peer() as peer:
            peer.up()
    only_honest()
    watch.returns(8 * 1024, "paths that are gone", 20)


# Leaving.
def _under_way(peer):
    peer.up()
    device = peer.must_open("ram2", wire.RO)
    size = 32768
    for chunk in range(8):
        message = wire.io(device, wire.OP_READ, chunk * 64, size)
        peer.put(chunk, message + wire.read_header(32, peer.target(size)), size + 32, start=size)


def _open_under_way(peer):
    peer.up()
    peer.put(0, wire.open_device(b"ram2", wire.RO) + wire.read_header(264, peer.target(56)), 56 + 264, start=56)


def _asking(peer):
    peer.dial_all()
    peer.ends[0].post(verbs.SEND, wire.info_request(peer.name.encode()))


for _what, _reach in (
    ("after the first connection", lambda peer: peer.dial(0)),
    ("after all connections", Peer.dial_all),
    ("when it has told its name", _asking),
    ("when the path is up", Peer.up),
    ("while a device is opened", _open_under_way),
    ("with requests under way", _under_way),
):

    @LEAVING.case(_what, limit=60)
    def _(reach=_reach):
        for polite in few(True, False) * (5 if SOAK else 1):
            with Peer(cid_num=2) as peer:
                reach(peer)
                if polite:
                    for end in peer.ends.values():
                        end.disconnect()
        only_honest()


@LEAVING.case("its devices are free at once for the next")
def _():
    for _ in range(3):
        with Peer() as peer:
            peer.up()
            device = eventually(lambda peer=peer: peer.open("ram2", wire.RO)[1], "the device is free", 5)
            equal(device.sectors, DISK_KIB * 2)


class Silence:
    """Two clients that say nothing more, one half open and one whose path is up, and when each was dropped."""

    def __init__(self):
        self.half = Peer(cid_num=2)
        self.half.dial(0)
        self.whole = Peer().up()
        KEPT.add(self.whole.name)
        self.begin = time.monotonic()
        self.dropped = {}
        for peer in (self.half, self.whole):
            threading.Thread(target=self._wait, args=(peer,), daemon=True).start()

    def _wait(self, peer):
        while peer not in self.dropped:
            event = peer.channel.event(1)
            if event is not None and event.kind == verbs.DISCONNECTED:
                self.dropped[peer] = time.monotonic() - self.begin

    def check(self, peer, least):
        """Fails unless that one was dropped about then."""
        eventually(lambda: peer in self.dropped, "the silent client is dropped", 60)
        took = self.dropped[peer]
        # The server looks seven times, 5 seconds apart; on a busy machine each look comes late.
        assert least - 1 < took < least + 25 * SLOW, f"dropped after {took:.1f} s"
        KEPT.discard(peer.name)
        peer.close()


SILENT = []


@QUIET.case("a client that does not complete its connections is dropped after 30 s", limit=120)
def _():
    SILENT[0].check(SILENT[0].half, 30)


@QUIET.case("a client whose path is up and that answers no heartbeat is dropped after 30 s", limit=120)
def _():
    SILENT[0].check(SILENT[0].whole, 30)


def _takes_name():
    with Peer() as peer:
        peer.dial_all()
        peer.ends[0].post(verbs.SEND, wire.info_request(b"honest"))
        assert peer.is_dropped(40), "two clients have one name"
    only_honest()


if SOAK:
    # It takes 15 s.
    QUIET.case("another client with the name of one that is alive is refused", limit=90)(_takes_name)
