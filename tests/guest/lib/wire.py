# SPDX-License-Identifier: GPL-2.0
"""RDS over TCP as bytes."""

import struct
from collections import namedtuple

PORT = 16385
HEADER = 48
MAP = 8192
PROBE_PORT = 1

F_MAP, F_ACK, F_RETRANS = 1, 2, 4

Header = namedtuple("Header", "seq ack len sport dport flags credit pad csum ext")
_LAYOUT = "!QQIHHBB4s2s16s"


def header(seq, length, sport, dport, flags=0, ext=b"", csum=b"\0\0", ack=0, pad=b"\0" * 4, credit=0):
    """A header; the payload length is whatever is said."""
    return struct.pack(_LAYOUT, seq, ack, length, sport, dport, flags, credit, pad, csum, ext.ljust(16, b"\0"))


def message(seq, data, sport, dport, flags=0, ext=b"", **more):
    """A message with its header."""
    return header(seq, len(data), sport, dport, flags, ext, **more) + data


def cong_map(ports=(), length=MAP):
    """A congestion map message."""
    bits = bytearray(length)
    for port in ports:
        bits[port // 8] |= 1 << port % 8
    return header(0, length, 0, 0, F_MAP) + bytes(bits)


def probe(seq, npaths=1, generation=0x11223344, reply=False):
    """A multipath probe or its answer."""
    ext = b"\x05" + struct.pack("!H", npaths) + b"\x06" + struct.pack("!I", generation) + b"\x08\x00"
    ports = (0, PROBE_PORT) if reply else (PROBE_PORT, 0)
    return header(seq, 0, *ports, 0, ext)


def parse(raw):
    """A header from its bytes."""
    return Header(*struct.unpack(_LAYOUT, raw[:HEADER]))


class Reader:
    """Takes a received stream apart."""

    def __init__(self):
        self.buffer = b""

    def feed(self, data):
        """Adds bytes; yields (header, payload) of each message that is whole."""
        self.buffer += data
        while len(self.buffer) >= HEADER:
            head = parse(self.buffer)
            end = HEADER + head.len
            if len(self.buffer) < end:
                return
            yield head, self.buffer[HEADER:end]
            self.buffer = self.buffer[end:]
