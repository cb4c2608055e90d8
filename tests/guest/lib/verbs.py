# SPDX-License-Identifier: GPL-2.0
"""RDMA connections from user space, by librdmacm and libibverbs: as much as a peer of RTRS needs, and no more manners.

An `End` is one end of a connection: an identifier of the connection manager with a queue pair, a slab of receives, and
a stage from which everything is sent. Nothing here checks what is sent.
"""

import ctypes as c
import errno
import fcntl
import mmap
import os
import select
import socket
import struct
import time
from dataclasses import dataclass

_cm = c.CDLL("librdmacm.so.1", use_errno=True)
_ib = c.CDLL("libibverbs.so.1", use_errno=True)

# Events of the connection manager.
ADDR_RESOLVED, ADDR_ERROR, ROUTE_RESOLVED, ROUTE_ERROR, CONNECT_REQUEST = range(5)
CONNECT_RESPONSE, CONNECT_ERROR, UNREACHABLE, REJECTED, ESTABLISHED, DISCONNECTED = range(5, 11)
# What can be posted.
WRITE, WRITE_IMM, SEND, SEND_IMM, READ, ATOMIC, FETCH_ADD, _, _, SEND_INV = range(10)
_SIGNALED = 2
# What completions say.
_RECEIVED, _RECEIVED_IMM, _WITH_IMM = 128, 129, 2
# The library's number of it, and the kernel's, which soft-RoCE hands on.
_WITH_INV = 8 | 4
# The number of work requests that send; those that receive have small ones.
_SENT = 1 << 32
# Bytes from which an end sends.
_STAGE = 1 << 18
# LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ
_ACCESS = 7
_TCP = 0x0106
_RC = 2


class _Sge(c.Structure):
    _fields_ = [("addr", c.c_uint64), ("length", c.c_uint32), ("lkey", c.c_uint32)]


class _SendWr(c.Structure):
    _fields_ = [
        ("wr_id", c.c_uint64),
        ("next", c.c_void_p),
        ("sg_list", c.POINTER(_Sge)),
        ("num_sge", c.c_int),
        ("opcode", c.c_int),
        ("flags", c.c_uint),
        ("imm", c.c_uint32),
        ("remote", c.c_uint64),
        # Of RDMA operations: the key. Of atomic ones: the first operand.
        ("rkey", c.c_uint64),
        ("swap", c.c_uint64),
        ("atomic_rkey", c.c_uint32),
        ("rest", c.c_uint32 * 17),
    ]


class _RecvWr(c.Structure):
    _fields_ = [("wr_id", c.c_uint64), ("next", c.c_void_p), ("sg_list", c.POINTER(_Sge)), ("num_sge", c.c_int)]


class _Wc(c.Structure):
    _fields_ = [
        ("wr_id", c.c_uint64),
        ("status", c.c_int),
        ("opcode", c.c_int),
        ("vendor", c.c_uint32),
        ("length", c.c_uint32),
        ("imm", c.c_uint32),
        ("qp_num", c.c_uint32),
        ("source", c.c_uint32),
        ("flags", c.c_uint),
        ("rest", c.c_uint8 * 8),
    ]


class _QpInit(c.Structure):
    _fields_ = [
        ("context", c.c_void_p),
        ("send_cq", c.c_void_p),
        ("recv_cq", c.c_void_p),
        ("srq", c.c_void_p),
        ("send_wr", c.c_uint32),
        ("recv_wr", c.c_uint32),
        ("send_sge", c.c_uint32),
        ("recv_sge", c.c_uint32),
        ("inline", c.c_uint32),
        ("type", c.c_int),
        ("signal_all", c.c_int),
    ]


class _Mr(c.Structure):
    _fields_ = [
        ("context", c.c_void_p),
        ("pd", c.c_void_p),
        ("addr", c.c_void_p),
        ("length", c.c_size_t),
        ("handle", c.c_uint32),
        ("lkey", c.c_uint32),
        ("rkey", c.c_uint32),
    ]


class _Param(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("length", c.c_uint8),
        ("responder", c.c_uint8),
        ("initiator", c.c_uint8),
        ("flow_control", c.c_uint8),
        ("retry", c.c_uint8),
        ("rnr_retry", c.c_uint8),
        ("srq", c.c_uint8),
        ("qp_num", c.c_uint32),
    ]


class _Event(c.Structure):
    _fields_ = [
        ("id", c.c_void_p),
        ("listen_id", c.c_void_p),
        ("event", c.c_int),
        ("status", c.c_int),
        ("param", _Param),
    ]


class _Id(c.Structure):
    _fields_ = [("verbs", c.c_void_p), ("channel", c.c_void_p), ("context", c.c_void_p), ("qp", c.c_void_p)]


def _declare():
    pointer, number = c.c_void_p, c.c_int
    for library, name, result, *arguments in (
        (_cm, "rdma_create_event_channel", pointer),
        (_cm, "rdma_destroy_event_channel", None, pointer),
        (_cm, "rdma_create_id", number, pointer, pointer, pointer, number),
        (_cm, "rdma_destroy_id", number, pointer),
        (_cm, "rdma_bind_addr", number, pointer, pointer),
        (_cm, "rdma_resolve_addr", number, pointer, pointer, pointer, number),
        (_cm, "rdma_resolve_route", number, pointer, number),
        (_cm, "rdma_create_qp", number, pointer, pointer, pointer),
        (_cm, "rdma_destroy_qp", None, pointer),
        (_cm, "rdma_connect", number, pointer, pointer),
        (_cm, "rdma_listen", number, pointer, number),
        (_cm, "rdma_accept", number, pointer, pointer),
        (_cm, "rdma_reject", number, pointer, pointer, c.c_uint8),
        (_cm, "rdma_disconnect", number, pointer),
        (_cm, "rdma_get_cm_event", number, pointer, pointer),
        (_cm, "rdma_ack_cm_event", number, pointer),
        (_ib, "ibv_alloc_pd", pointer, pointer),
        (_ib, "ibv_create_cq", pointer, pointer, number, pointer, pointer, number),
        (_ib, "ibv_destroy_cq", number, pointer),
        (_ib, "ibv_reg_mr", c.POINTER(_Mr), pointer, pointer, c.c_size_t, number),
        (_ib, "ibv_dereg_mr", number, pointer),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments


_declare()
# The tables of functions in `struct ibv_context`, behind the pointer to the device.
_POLL, _POST_SEND, _POST_RECV = 11, 25, 26
_domains = {}


def _good(code):
    """Raises the error that a function of the libraries has left."""
    if code:
        number = c.get_errno() or code
        raise OSError(number, os.strerror(number))


def _made(pointer):
    """Likewise of a function that makes something."""
    if not pointer:
        raise OSError(c.get_errno(), os.strerror(c.get_errno()))
    return pointer


def _operation(context, index, *arguments):
    address = c.c_void_p.from_address(context + 8 + 8 * index).value
    return c.CFUNCTYPE(c.c_int, *arguments)(address)


def _domain(context):
    """The protection domain of this program on a device."""
    if context not in _domains:
        _domains[context] = _made(_ib.ibv_alloc_pd(context))
    return _domains[context]


def _address(host, port):
    return struct.pack("=HH4s8x", socket.AF_INET, socket.htons(port), socket.inet_aton(host))


class Memory:
    """Memory that the device knows, and that the other side may write to who knows the key."""

    def __init__(self, context, size):
        self.map = mmap.mmap(-1, size)
        self.size = size
        self.addr = c.addressof(c.c_char.from_buffer(self.map))
        self.mr = _ib.ibv_reg_mr(_domain(context), self.addr, size, _ACCESS)
        _made(self.mr)
        self.lkey, self.rkey = self.mr.contents.lkey, self.mr.contents.rkey

    def close(self):
        """Takes it from the device."""
        _good(_ib.ibv_dereg_mr(self.mr))


@dataclass
class Event:
    """What the connection manager says."""

    kind: int
    id: int
    status: int
    data: bytes


class Channel:
    """Where events come from."""

    def __init__(self):
        self.pointer = _made(_cm.rdma_create_event_channel())
        self.fd = c.c_int.from_address(self.pointer).value
        fcntl.fcntl(self.fd, fcntl.F_SETFL, fcntl.fcntl(self.fd, fcntl.F_GETFL) | os.O_NONBLOCK)

    def event(self, seconds=0.0):
        """The next event within some time, or None."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return None
        pointer = c.POINTER(_Event)()
        if _cm.rdma_get_cm_event(self.pointer, c.byref(pointer)):
            if c.get_errno() == errno.EAGAIN:
                return None
            _good(-1)
        event = pointer.contents
        data = c.string_at(event.param.data, event.param.length) if event.param.data else b""
        copy = Event(event.event, event.id, event.status, data)
        _good(_cm.rdma_ack_cm_event(pointer))
        return copy

    def new_id(self):
        """An identifier whose events come from here."""
        pointer = c.c_void_p()
        _good(_cm.rdma_create_id(self.pointer, c.byref(pointer), None, _TCP))
        return pointer.value

    def close(self):
        """Ends it; identifiers first."""
        _cm.rdma_destroy_event_channel(self.pointer)


@dataclass
class Arrival:
    """What was received."""

    imm: int | None
    key: int | None
    data: bytes


class End:
    """One end of a connection."""

    def __init__(self, pointer):
        self.id = pointer
        self.memories = []
        self.cq = self.qp = None
        self.slab = self.stage = None
        self.entry = self.used = 0
        self.broken = 0
        self.unsent = 0

    @property
    def context(self):
        """The device."""
        return _Id.from_address(self.id).verbs

    def memory(self, size):
        """Memory for the other side, which lives as long as the connection."""
        self.memories.append(Memory(self.context, size))
        return self.memories[-1]

    def equip(self, receives=16, entry=64, depth=32):
        """Makes the queue pair and posts receives of `entry` bytes each."""
        self.cq = _made(_ib.ibv_create_cq(self.context, receives + depth, None, None, 0))
        init = _QpInit(None, self.cq, self.cq, None, depth, receives, 1, 1, 0, _RC, 0)
        _good(_cm.rdma_create_qp(self.id, _domain(self.context), c.byref(init)))
        self.qp = _Id.from_address(self.id).qp
        wc, void = c.POINTER(_Wc), c.c_void_p
        self._poll = _operation(self.context, _POLL, void, c.c_int, wc)
        self._post_send = _operation(self.context, _POST_SEND, void, void, void)
        self._post_recv = _operation(self.context, _POST_RECV, void, void, void)
        self.entry = entry
        self.slab = self.memory(receives * entry)
        for number in range(receives):
            self._receive(number)

    def _receive(self, number):
        sge = _Sge(self.slab.addr + number * self.entry, self.entry, self.slab.lkey)
        wr = _RecvWr(number, None, c.pointer(sge), 1)
        bad = c.c_void_p()
        # Fails if the queue pair is broken, which its completions tell, too.
        self._post_recv(self.qp, c.byref(wr), c.byref(bad))

    def poll(self):
        """What has arrived meanwhile."""
        arrived = []
        wc = _Wc()
        while self.cq and self._poll(self.cq, 1, c.byref(wc)) > 0:
            if wc.wr_id == _SENT:
                self.unsent -= 1
            if wc.status:
                self.broken = self.broken or wc.status
                continue
            if wc.opcode in (_RECEIVED, _RECEIVED_IMM):
                start = wc.wr_id * self.entry
                length = wc.length if wc.opcode == _RECEIVED else 0
                imm = socket.ntohl(wc.imm) if wc.flags & _WITH_IMM else None
                key = wc.imm if wc.flags & _WITH_INV else None
                arrived.append(Arrival(imm, key, self.slab.map[start : start + length]))
                self._receive(wc.wr_id)
        return arrived

    def post(self, opcode, data=b"", remote=0, rkey=0, imm=0):
        """Posts a work request that sends `data`; False if the queue pair does not take it."""
        if self.stage is None:
            self.stage = self.memory(_STAGE)
        # What was posted before may not be sent yet.
        start = self.used if self.used + len(data) <= _STAGE else 0
        self.used = start + len(data)
        self.stage.map[start : self.used] = data
        return self.post_from(self.stage, start, len(data), opcode, remote, rkey, imm)

    def post_from(self, memory, start, length, opcode, remote=0, rkey=0, imm=0):
        """Likewise, of memory that the device knows."""
        sge = _Sge(memory.addr + start, length, memory.lkey)
        value = imm if opcode == SEND_INV else socket.htonl(imm)
        wr = _SendWr(_SENT, None, c.pointer(sge), 1 if length else 0, opcode, _SIGNALED, value, remote, rkey)
        if opcode in (ATOMIC, FETCH_ADD):
            wr.rkey, wr.swap, wr.atomic_rkey = 1, 1, rkey
        bad = c.c_void_p()
        if self.qp is None or self._post_send(self.qp, c.byref(wr), c.byref(bad)):
            self.broken = self.broken or -1
            return False
        self.unsent += 1
        return True

    def disconnect(self):
        """Hangs up."""
        # Fails if the other side has.
        _cm.rdma_disconnect(self.id)

    def close(self):
        """Gives everything back."""
        if self.qp:
            _cm.rdma_disconnect(self.id)
            _cm.rdma_destroy_qp(self.id)
            self.qp = None
        for memory in self.memories:
            memory.close()
        self.memories.clear()
        if self.cq:
            _good(_ib.ibv_destroy_cq(self.cq))
            self.cq = None
        _good(_cm.rdma_destroy_id(self.id))


def _param(data):
    buffer = c.create_string_buffer(data, len(data)) if data else None
    param = _Param(c.cast(buffer, c.c_void_p) if buffer else None, len(data), 0, 0, 0, 7, 7, 0, 0)
    return param, buffer


def find(channel, host, port, seconds=10.0):
    """An end whose way to `host` is known."""
    end = End(channel.new_id())
    address = _address(host, port)
    _good(_cm.rdma_resolve_addr(end.id, None, address, 5000))
    for kind, following in ((ADDR_RESOLVED, _cm.rdma_resolve_route), (ROUTE_RESOLVED, None)):
        event = channel.event(seconds)
        assert event is not None and event.kind == kind, f"no way to {host}: {event}"
        if following:
            _good(following(end.id, 5000))
    return end


def connect(end, data):
    """Asks for a connection."""
    param, _buffer = _param(data)
    _good(_cm.rdma_connect(end.id, c.byref(param)))


def listen(channel, host, port):
    """Listens; the identifier."""
    pointer = channel.new_id()
    _good(_cm.rdma_bind_addr(pointer, _address(host, port)))
    _good(_cm.rdma_listen(pointer, 64))
    return pointer


def accept(end, data):
    """Accepts a connection."""
    param, _buffer = _param(data)
    _good(_cm.rdma_accept(end.id, c.byref(param)))


def reject(end, data):
    """Refuses a connection."""
    _good(_cm.rdma_reject(end.id, data, len(data)))


def destroy(pointer):
    """Gives an identifier without queue pair back."""
    _good(_cm.rdma_destroy_id(pointer))


def until(condition, seconds, pause=0.002):
    """Looks at a condition until it holds; its value, or something false after that time."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(pause)
