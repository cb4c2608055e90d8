# SPDX-License-Identifier: GPL-2.0
"""RDS sockets by bare system calls, so that every argument can be wrong."""

import ctypes
import fcntl
import os
import select
import socket
import struct
from dataclasses import dataclass, field

from address import name as address_of
from address import read as read_address

AF_RDS = 21
SOL_RDS = 276

CANCEL_SENT_TO, GET_MR, FREE_MR = 1, 2, 3
RECVERR, CONG_MONITOR, GET_MR_FOR_DEST, TRANSPORT = 5, 6, 7, 8
RXPATH_LATENCY = 10
TIMESTAMP_OLD, TIMESTAMP_NEW = 29, 63

CMSG_RDMA_ARGS, CMSG_RDMA_DEST, CMSG_RDMA_MAP, CMSG_RDMA_STATUS, CMSG_CONG_UPDATE = 1, 2, 3, 4, 5
CMSG_ATOMIC_FADD, CMSG_ATOMIC_CSWP, CMSG_MASKED_FADD, CMSG_MASKED_CSWP = 6, 7, 8, 9
CMSG_ASYNC_SEND, CMSG_RXPATH_LATENCY, CMSG_ZCOPY_COOKIE, CMSG_ZCOPY_COMPLETION = 10, 11, 12, 13

IB, GAP, TCP, LOOP, NONE = 0, 1, 2, 3, -1

SIOCRDSSETTOS, SIOCRDSGETTOS = 0x89E0, 0x89E1

MSG_OOB, MSG_PEEK, MSG_DONTROUTE, MSG_CTRUNC, MSG_TRUNC = 1, 2, 4, 8, 0x20
MSG_DONTWAIT, MSG_EOR, MSG_WAITALL, MSG_CONFIRM = 0x40, 0x80, 0x100, 0x800
MSG_ERRQUEUE, MSG_NOSIGNAL, MSG_MORE, MSG_ZEROCOPY = 0x2000, 0x4000, 0x8000, 0x4000000
MSG_FASTOPEN = 0x20000000

SO_ZEROCOPY = 60
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33

_libc = ctypes.CDLL(None, use_errno=True)


class _Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


class _Msghdr(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_void_p),
        ("namelen", ctypes.c_uint32),
        ("iov", ctypes.c_void_p),
        ("iovlen", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("controllen", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


def call(function, *arguments):
    """Calls a function of libc; an OSError if it returns -1."""
    result = getattr(_libc, function)(*arguments)
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def cmsg(kind, data, level=SOL_RDS, length=None):
    """One control message; `length` is what it claims to be long."""
    total = 16 + len(data)
    raw = struct.pack("=Qii", total if length is None else length, level, kind) + data
    return raw.ljust((total + 7) & ~7, b"\0")


@dataclass
class Received:
    """What one recvmsg gave."""

    size: int
    data: bytes
    source: object
    flags: int
    control: list = field(default_factory=list)
    name: bytes = b""
    namelen: int = 0


class Sock:
    """An RDS socket."""

    def __init__(self, kind=socket.SOCK_SEQPACKET, protocol=0):
        self.fd = -1
        self.fd = call("socket", AF_RDS, kind, protocol)

    @classmethod
    def at(cls, address, port=0, scope=0):
        """A socket bound to an address."""
        sock = cls()
        try:
            sock.bind(address_of(address, port, scope))
        except OSError:
            sock.close()
            raise
        return sock

    def close(self):
        """Closes it; again does nothing."""
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()

    def fileno(self):
        """The file descriptor."""
        return self.fd

    # Addresses.

    def bind(self, raw, length=None):
        """`bind` with the bytes of an address."""
        call("bind", self.fd, raw, len(raw) if length is None else length)

    def connect(self, raw, length=None):
        """`connect` with the bytes of an address."""
        call("connect", self.fd, raw, len(raw) if length is None else length)

    def _name(self, function):
        buffer = ctypes.create_string_buffer(b"\xee" * 128, 128)
        length = ctypes.c_uint32(128)
        call(function, self.fd, buffer, ctypes.byref(length))
        return buffer.raw[: length.value]

    def raw_name(self):
        """The bytes that `getsockname` gives."""
        return self._name("getsockname")

    def raw_peer(self):
        """The bytes that `getpeername` gives."""
        return self._name("getpeername")

    @property
    def address(self):
        """Own address as (address, port)."""
        return read_address(self.raw_name())

    @property
    def port(self):
        """Own port."""
        return self.address[1]

    # Messages.

    def send(self, data=b"", to=None, flags=0, control=b"", iov=None):
        """`sendmsg`; `to` is bytes or (address, port[, scope]); `iov` replaces `data` by (address, length) pairs."""
        if isinstance(to, tuple):
            to = address_of(*to)
        buffer = ctypes.create_string_buffer(data, len(data)) if iov is None else None
        pairs = iov if iov is not None else [(ctypes.addressof(buffer), len(data))]
        vector = (_Iovec * max(len(pairs), 1))(*pairs)
        name = ctypes.create_string_buffer(to, len(to)) if to is not None else None
        extra = ctypes.create_string_buffer(control, len(control)) if control else None
        header = _Msghdr(
            ctypes.addressof(name) if name else None,
            len(to) if to is not None else 0,
            ctypes.addressof(vector),
            len(pairs),
            ctypes.addressof(extra) if extra else None,
            len(control),
            0,
        )
        return call("sendmsg", self.fd, ctypes.byref(header), ctypes.c_int(flags))

    def recv(self, size=65536, flags=0, control=0, namelen=128, iov=None):
        """`recvmsg`; `iov` replaces the buffer by (address, length) pairs."""
        buffer = ctypes.create_string_buffer(max(size, 1)) if iov is None else None
        pairs = iov if iov is not None else [(ctypes.addressof(buffer), size)]
        vector = (_Iovec * max(len(pairs), 1))(*pairs)
        name = ctypes.create_string_buffer(b"\xee" * max(namelen, 1), max(namelen, 1))
        extra = ctypes.create_string_buffer(max(control, 1))
        header = _Msghdr(
            ctypes.addressof(name) if namelen else None,
            namelen,
            ctypes.addressof(vector),
            len(pairs),
            ctypes.addressof(extra) if control else None,
            control,
            0,
        )
        got = call("recvmsg", self.fd, ctypes.byref(header), ctypes.c_int(flags))
        raw = name.raw[: min(header.namelen, namelen)]
        return Received(
            got,
            buffer.raw[: min(got, size)] if buffer is not None else b"",
            read_address(raw),
            header.flags,
            list(_controls(extra.raw[: header.controllen])) if control else [],
            raw,
            header.namelen,
        )

    def pull(self, size=65536):
        """The next message's bytes, or None if there is none now."""
        try:
            return self.recv(size, MSG_DONTWAIT).data
        except BlockingIOError:
            return None

    # Options.

    def set(self, option, value, level=SOL_RDS, length=None):
        """`setsockopt` with an int or bytes."""
        raw = struct.pack("=i", value) if isinstance(value, int) else value
        call("setsockopt", self.fd, level, option, raw, len(raw) if length is None else length)

    def get(self, option, size=4, level=SOL_RDS):
        """`getsockopt`; (return value, bytes, length written back)."""
        buffer = ctypes.create_string_buffer(max(size, 1))
        length = ctypes.c_int(size)
        result = call("getsockopt", self.fd, level, option, buffer, ctypes.byref(length))
        return result, buffer.raw[: max(length.value, 0)], length.value

    def get_int(self, option, level=SOL_RDS):
        """`getsockopt` of an int."""
        return struct.unpack("=i", self.get(option, 4, level)[1])[0]

    def timeout(self, send=None, receive=None):
        """Sets SO_SNDTIMEO and SO_RCVTIMEO in seconds."""
        for option, seconds in ((socket.SO_SNDTIMEO, send), (socket.SO_RCVTIMEO, receive)):
            if seconds is not None:
                value = struct.pack("@ll", int(seconds), int(seconds % 1 * 1_000_000))
                self.set(option, value, socket.SOL_SOCKET)

    def buffers(self, send=None, receive=None):
        """Sets the limits in bytes, beyond what users may."""
        if send is not None:
            self.set(SO_SNDBUFFORCE, send, socket.SOL_SOCKET)
        if receive is not None:
            self.set(SO_RCVBUFFORCE, receive, socket.SOL_SOCKET)

    def tos(self, value=None):
        """Reads, or sets and reads nothing, the type of service."""
        if value is None:
            return fcntl.ioctl(self.fd, SIOCRDSGETTOS, b"\0")[0]
        fcntl.ioctl(self.fd, SIOCRDSSETTOS, bytes([value]))
        return None

    def poll(self, events, seconds=0.0):
        """The events of `events` that are there within some time, by poll."""
        poller = select.poll()
        poller.register(self.fd, events)
        ready = poller.poll(seconds * 1000)
        return ready[0][1] if ready else 0

    def readable(self, seconds=0.0):
        """Whether a message or notice is there within some time, spurious reports left out."""
        for _ in range(100):
            if not self.poll(select.POLLIN, seconds):
                return False
            try:
                self.recv(0, MSG_DONTWAIT | MSG_PEEK)
                return True
            except BlockingIOError:
                continue
        return False


def _controls(raw):
    while len(raw) >= 16:
        length, level, kind = struct.unpack_from("=Qii", raw)
        if length < 16:
            return
        yield level, kind, raw[16:length]
        raw = raw[(length + 7) & ~7 :]
