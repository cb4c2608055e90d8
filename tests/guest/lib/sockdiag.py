# SPDX-License-Identifier: GPL-2.0
"""Ends TCP connections from outside, as `ss -K` does, without a program for it."""

import errno
import socket
import struct

_SOCK_DIAG = 4
_BY_FAMILY, _DESTROY = 20, 21
_REQUEST, _ACK, _DUMP = 1, 4, 0x300
_ERROR, _DONE = 2, 3
# Every state but TIME_WAIT, CLOSE and LISTEN: those are no connections.
_STATES = 0xFFF & ~(1 << 6 | 1 << 7 | 1 << 10)
_ID = slice(4, 52)


def _message(kind, flags, family, states, identity):
    body = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, states) + identity
    return struct.pack("=IHHII", 16 + len(body), kind, _REQUEST | flags, 1, 0) + body


def _replies(sock):
    """The messages of a dump: type and content."""
    while True:
        raw = sock.recv(1 << 16)
        while raw:
            size, kind = struct.unpack_from("=IH", raw)
            if kind == _DONE:
                return
            yield kind, raw[16:size]
            raw = raw[(size + 3) & ~3 :]


def kill(port):
    """Ends all TCP connections from or to a port in the namespace the thread is in; how many there were."""
    ended = 0
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as sock:
        for family in (socket.AF_INET, socket.AF_INET6):
            sock.send(_message(_BY_FAMILY, _DUMP, family, _STATES, bytes(48)))
            found = [content[_ID] for kind, content in _replies(sock) if kind == _BY_FAMILY]
            for identity in found:
                if port in struct.unpack_from("!HH", identity):
                    sock.send(_message(_DESTROY, _ACK, family, _STATES, identity))
                    error = -struct.unpack_from("=i", sock.recv(1 << 16), 16)[0]
                    # ENOENT: it has ended by itself.
                    if error not in (0, errno.ENOENT):
                        raise OSError(error, "SOCK_DESTROY")
                    ended += error == 0
    return ended
