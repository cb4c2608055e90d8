# SPDX-License-Identifier: GPL-2.0
"""Namespaces, links and addresses without a program for each: under emulation a program takes longer than what it does.

The namespaces are those of `ip netns`: a file in /run/netns that the namespace is mounted on.
"""

import ctypes
import errno
import os
import socket
import struct
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path("/run/netns")

_NEWLINK, _DELLINK, _NEWADDR, _DELADDR, _NEWROUTE = 16, 17, 20, 21, 24
_REQUEST_ACK, _CREATE_NEW = 0x5, 0x600
_MS_BIND, _MS_REC, _MS_SHARED, _MNT_DETACH = 0x1000, 0x4000, 0x100000, 2
_libc = ctypes.CDLL(None, use_errno=True)


def _call(function, *arguments):
    if getattr(_libc, function)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")


def _share():
    _call("mount", b"", b"/run/netns", b"none", _MS_SHARED | _MS_REC, None)


def add_namespace(name):
    """Like `ip netns add`."""
    FOLDER.mkdir(exist_ok=True)
    try:
        _share()
    except OSError as error:
        # It is no mount point yet. Nothing else tells: a bind mount of a folder on itself looks like the folder.
        if error.errno != errno.EINVAL:
            raise
        _call("mount", b"/run/netns", b"/run/netns", b"none", _MS_BIND | _MS_REC, None)
        _share()
    path = FOLDER / name
    path.touch(exist_ok=False)
    with open("/proc/thread-self/ns/net") as own:
        os.unshare(os.CLONE_NEWNET)
        try:
            _call("mount", b"/proc/thread-self/ns/net", os.fsencode(path), b"none", _MS_BIND, None)
        finally:
            os.setns(own.fileno(), os.CLONE_NEWNET)


def delete_namespace(name):
    """Like `ip netns delete`."""
    path = FOLDER / name
    _call("umount2", os.fsencode(path), _MNT_DETACH)
    path.unlink()


@contextmanager
def inside(name):
    """Enters a namespace with this thread; None is where the thread is anyway."""
    if name is None:
        yield
        return
    with open("/proc/thread-self/ns/net") as own, open(FOLDER / name) as other:
        os.setns(other.fileno(), os.CLONE_NEWNET)
        try:
            yield
        finally:
            os.setns(own.fileno(), os.CLONE_NEWNET)


def _attribute(kind, data):
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def _text(kind, value):
    return _attribute(kind, value.encode() + b"\0")


def _request(kind, flags, body):
    """Sends a request to the namespace the thread is in, and raises what the kernel answers."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as sock:
        sock.send(struct.pack("=IHHII", 16 + len(body), kind, _REQUEST_ACK | flags, 1, 0) + body)
        error = struct.unpack_from("=i", sock.recv(65536), 16)[0]
    if error:
        raise OSError(-error, os.strerror(-error))


def _link(name, namespace):
    """The attributes of a link: its name, and the open file of its namespace."""
    return _text(3, name) + (_attribute(28, struct.pack("=I", namespace.fileno())) if namespace else b"")


def add_veth(name, namespace, peer, peer_namespace):
    """A pair of links; None stands for the namespace the thread is in."""
    files = [open(FOLDER / each) if each else None for each in (namespace, peer_namespace)]
    try:
        other = _attribute(1, bytes(16) + _link(peer, files[1]))
        info = _attribute(18 | 0x8000, _text(1, "veth") + _attribute(2 | 0x8000, other))
        _request(_NEWLINK, _CREATE_NEW, bytes(16) + _link(name, files[0]) + info)
    finally:
        for file in files:
            if file:
                file.close()


def set_up(name, up=True):
    """Switches a link of the namespace the thread is in on, or off."""
    index = socket.if_nametoindex(name)
    _request(_NEWLINK, 0, struct.pack("=BxHiII", 0, 0, index, 1 if up else 0, 1))


def delete_link(name):
    """Removes a link of the namespace the thread is in, and the other end of a pair."""
    _request(_DELLINK, 0, struct.pack("=BxHiII", 0, 0, socket.if_nametoindex(name), 0, 0))


def _address(name, address, bits):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    # IFA_F_NODAD
    body = struct.pack("=BBBBi", family, bits, 2 if ":" in address else 0, 0, socket.if_nametoindex(name))
    return body + _attribute(2, packed) + _attribute(1, packed)


def add_address(name, address, bits):
    """Gives a link an address; an IPv6 address is usable at once."""
    _request(_NEWADDR, _CREATE_NEW, _address(name, address, bits))


def remove_address(name, address, bits):
    """Takes an address from a link."""
    _request(_DELADDR, 0, _address(name, address, bits))


def add_route(network, bits, gateway):
    """An IPv4 route."""
    body = struct.pack("=BBBBBBBBI", socket.AF_INET, bits, 0, 0, 254, 4, 0, 1, 0)
    body += _attribute(1, socket.inet_aton(network)) + _attribute(5, socket.inet_aton(gateway))
    _request(_NEWROUTE, _CREATE_NEW, body)
