# SPDX-License-Identifier: GPL-2.0
"""Clients that connect as none should: private data, the order of connections, the name of the session."""

import errno
import os

import rtrs_wire as wire
import verbs
from cases import Cases, equal, eventually
from rogue.ground import DEPTH, SECOND_ADDRESS, only_honest, server_paths, tells
from rtrs_peer import Gone, Peer, Refused

CASES = Cases("joining")
RESET = errno.ECONNRESET


def _refused(peer, act, code):
    try:
        act()
    except Refused as refused:
        equal(refused.code, code, "the reason in the private data")
        return
    raise AssertionError("the server accepted it")


def _raw(what, data, pattern):
    """Private data that no client sends."""

    def check():
        def act():
            with Peer() as peer:
                bytes_ = data(peer) if callable(data) else data
                _refused(peer, lambda: peer.dial_raw(bytes_), RESET)

        tells(pattern, act)

    CASES.case(f"private data: {what}", limit=30)(check)


def _changed(**fields):
    return lambda peer: wire.connect(peer.path, peer.session, **fields)


# The connection manager pads what is short with zeros.
_raw("none", b"", "connection request: magic is 0x0000")
_raw("zeros", bytes(56), "connection request: magic is 0x0000")
_raw("ones", b"\xff" * 56, "connection request: magic is 0xffff")
_raw("6 bytes, up to the version", wire.connect(b"", b"")[:6], "connection has index 0, it must be below 0")
_raw("10 bytes, up to the number of connections", wire.connect(b"", b"", cid=3, cid_num=3)[:10], "has index 3")
_raw("magic in the other order", _changed(magic=0xBD1B), "magic is 0xbd1b, it must be 0x1bbd")
_raw("version 1", _changed(version=0x0100), "peer has version 1.0, the major must be 2")
_raw("version 3", _changed(version=0x0300), "peer has version 3.0, the major must be 2")
_raw("version in the other order", _changed(version=0x0002), "peer has version 0.2, the major must be 2")
_raw("no connections", _changed(cid_num=0), "connection has index 0, it must be below 0")
_raw("index is the number of connections", _changed(cid=2, cid_num=2), "connection has index 2, it must be below 2")
_raw("index 65535", _changed(cid=65535, cid_num=4), "connection has index 65535")
_raw("4097 connections", _changed(cid_num=4097), "path wants 4097 connections, at most 4096")
_raw("65535 connections", _changed(cid_num=65535), "path wants 65535 connections")
_raw("begins with connection 1", _changed(cid=1, cid_num=2), "begins with connection 1, it must begin with 0")


@CASES.case("private data: what does not count may be anything")
def _():
    for fields in (
        {"version": 0x02FF},
        {"recon": 0},
        {"recon": 65535},
        {"first": 0xFF, "rest": b"\xff" * 11},
        {"cma": 0xFF, "ip": 0xFF},
    ):
        with Peer() as peer:
            peer.dial(**fields)
            equal((peer.geometry.depth, peer.geometry.rest), (DEPTH, bytes(36)))
            peer.introduce()
            equal(peer.greet(), 2)


def _second(what, code, pattern, act, ready=lambda peer: peer.dial(0)):
    """What a client with one connection must not ask for."""

    def check():
        def attempt():
            with Peer(cid_num=3) as peer:
                ready(peer)
                _refused(peer, lambda: act(peer), code)

        tells(pattern, attempt)

    CASES.case(what, limit=30)(check)


_second("a session that does not exist", errno.ENXIO, "session does not exist and this path may not create it",
        lambda peer: peer.dial(0, first=0), ready=lambda _: None)
_second("a second connection of a session that does not exist", errno.ENXIO, "session does not exist",
        lambda peer: peer.dial(1, first=0), ready=lambda _: None)
_second("a connection of another session's path", RESET, "begins with connection 1, it must",
        lambda peer: peer.dial(1, session=os.urandom(16)))
_second("another path between the same addresses", errno.EEXIST, "path between these addresses already",
        lambda peer: peer.dial(0, path=os.urandom(16)))
_second("another path that begins with connection 1", errno.EEXIST, "path between these addresses already",
        lambda peer: peer.dial(1, path=os.urandom(16)))
_second("a connection twice", RESET, "connection 0 exists already", lambda peer: peer.dial(0))
_second("another number of connections", RESET, "path wants 7 connections, it began with 3",
        lambda peer: peer.dial(1, cid_num=7))


@CASES.case("connections in any order", limit=30)
def _():
    with Peer(cid_num=4) as peer:
        for cid in (0, 3, 1, 2):
            peer.dial(cid)
        peer.introduce()
        equal(peer.greet(), 2)
        for cid in range(4):
            equal(peer.read(wire.session_info(), 36, cid=cid)[0], 0)


@CASES.case("a connected path is connected once more", limit=30)
def _():
    def act():
        with Peer(cid_num=1) as peer:
            peer.up()
            end = peer.ends[0]
            _refused(peer, lambda: peer.dial(0), RESET)
            peer.ends[0] = end
            assert peer.is_dropped(), "the first life of the path goes on"

    tells("path is connected, it must be connecting", act)


def _sibling(peer):
    """Another path of the same session, between other addresses."""
    return Peer(session=peer.session, address=SECOND_ADDRESS)


@CASES.case("a client that introduces itself once more has lost its paths, whether the server has noticed or not", limit=60)
def _():
    def act():
        with Peer() as peer, _sibling(peer) as other:
            peer.up()
            equal(peer.greet(), 2)
            # Once more on the same path is no new life.
            equal(peer.must_open("ram3"), 0)
            equal(peer.greet(), 2)
            equal(peer.write(wire.io(0, wire.OP_WRITE, 0, 4096), bytes(4096)), 0)
            other.up(peer.name)
            equal(other.greet(), 2)
            assert peer.is_dropped(), "the path of the earlier life goes on"
            equal(other.write(wire.io(0, wire.OP_WRITE, 0, 4096), bytes(4096)), errno.ENOTCONN)
            # The number means something in requests of the earlier life that may still come.
            equal(other.must_open("ram3"), 1)
            equal(other.write(wire.io(1, wire.OP_WRITE, 0, 4096), bytes(4096)), 0)

    tells("its client has lost all its paths, closing", act)
    only_honest()


@CASES.case("a path that is too late for its session does not revive it", limit=60)
def _():
    def act():
        with Peer() as peer, _sibling(peer) as late:
            peer.up()
            late.dial_all()
            peer.ends[0].disconnect()
            assert peer.is_dropped(), "the path goes on"
            eventually(lambda: not any(name == peer.name for name, _ in server_paths()), "the path goes", 10)
            try:
                late.introduce(peer.name)
                equal(late.greet(), 2)
            except Gone:
                return
            raise AssertionError("the session goes on, and has forgotten what its client had opened")

    tells("opening the session failed with .*, closing", act)
    only_honest()


@CASES.case("4096 connections are announced and do not come", limit=30)
def _():
    with Peer(cid_num=4096) as peer:
        peer.dial(0)
        with Peer() as other:
            equal(other.up().greet(), 2)


# What must be the name of the session.
def _named(what, message, pattern, cid=0):
    def check():
        def act():
            with Peer(cid_num=2) as peer:
                peer.dial_all()
                peer.ends[cid].post(verbs.SEND, message)
                if cid:
                    # It is not received before the path is set up.
                    peer.ends[0].post(verbs.SEND, wire.info_request(peer.name.encode()))
                assert peer.is_dropped(), "the path goes on"

        tells(pattern, act)

    CASES.case(f"name: {what}", limit=30)(check)


GOOD = wire.info_request(b"good")
_named("nothing", b"", "info request has 0 bytes, it must have 272, closing")
_named("one byte", b"\0", "info request has 1 bytes")
_named("one byte less", GOOD[:-1], "info request has 271 bytes")
_named("one byte more", GOOD + b"\0", "connection 0: .*, closing")
_named("type 1", wire.info_request(b"a", kind=1), "message has type 1, it must be 0")
_named("type 65535", wire.info_request(b"a", kind=65535), "message has type 65535")
_named("N-29 it has no end", b"\0\0" + b"A" * 270, "session name does not end within 255 bytes")
_named("it is empty", wire.info_request(b""), "session name is empty")
_named("it has a line end", wire.info_request(b"a\nb"), r"session name contains '\\n'")
_named("it has a slash", wire.info_request(b"../../x"), "session name contains '.'")
_named("it is a folder", wire.info_request(b"a/b"), "session name contains '/'")
_named("it is not ASCII", wire.info_request(b"\xc3\xa4"), "session name contains")
_named("on connection 1", GOOD, "connection 1.*, closing", cid=1)


@CASES.case("name: strange and good ones")
def _():
    for name in ("%s%n%x", "x" * 254, " ", "honest2 ip:1"):
        with Peer() as peer:
            peer.up(name)
            equal(peer.greet(), 2)
            assert name in {session for session, _ in server_paths()}, f"{name!r} is not in sysfs"
        only_honest()


@CASES.case("N-10 the name before all connections are there", limit=30)
def _():
    def act():
        with Peer(cid_num=5) as peer:
            peer.dial(0)
            peer.ends[0].post(verbs.SEND, GOOD)
            assert peer.is_dropped(), "the path goes on"

    tells(r"counting the connections failed with (ENOTCONN|Error\(107\)), closing", act)


@CASES.case("the name twice", limit=30)
def _():
    def act():
        with Peer() as peer:
            peer.up()
            peer.ends[0].post(verbs.SEND, GOOD)
            assert peer.is_dropped(), "the path goes on"

    tells("connection 0: .*, closing", act)


@CASES.case("requests and heartbeats before the name", limit=30)
def _():
    def act():
        with Peer() as peer:
            peer.dial_all()
            peer.announce(wire.immediate(wire.HEARTBEAT))
            peer.announce(wire.request(0, 32, DEPTH))
            try:
                peer.introduce()
            except Gone:
                return
            raise AssertionError("the path goes on")

    tells("a request before the path is set up, closing", act)


@CASES.case("the path that failed leaves nothing")
def _():
    only_honest()
