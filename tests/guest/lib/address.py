# SPDX-License-Identifier: GPL-2.0
"""Socket addresses as bytes, so that tests can pass wrong ones."""

import ipaddress
import socket
import struct


def sin(address, port=0, family=socket.AF_INET):
    """A `sockaddr_in`."""
    return struct.pack("=H", family) + struct.pack("!H4s8x", port, ipaddress.IPv4Address(address).packed)


def sin6(address, port=0, scope=0, flow=0, family=socket.AF_INET6):
    """A `sockaddr_in6`."""
    packed = ipaddress.IPv6Address(address).packed
    return struct.pack("=H", family) + struct.pack("!HI16s", port, flow, packed) + struct.pack("=I", scope)


def name(address, port=0, scope=0):
    """The socket address of an address in text form, of whichever family."""
    return sin6(address, port, scope) if ":" in address else sin(address, port)


def read(raw):
    """(address, port) of a socket address, with the scope as third where there is one; None if it is cut."""
    if len(raw) < 16:
        return None
    (family,) = struct.unpack_from("=H", raw)
    (port,) = struct.unpack_from("!H", raw, 2)
    if family == socket.AF_INET:
        return str(ipaddress.IPv4Address(raw[4:8])), port
    if family == socket.AF_INET6 and len(raw) >= 28:
        (scope,) = struct.unpack_from("=I", raw, 24)
        address = str(ipaddress.IPv6Address(raw[8:24]))
        return (address, port, scope) if scope else (address, port)
    return family, raw


def ip4(raw):
    """Text form of four bytes."""
    return str(ipaddress.IPv4Address(raw))


def ip6(raw):
    """Text form of sixteen bytes; a mapped IPv4 address in IPv4 form."""
    address = ipaddress.IPv6Address(raw)
    return str(address.ipv4_mapped or address)
