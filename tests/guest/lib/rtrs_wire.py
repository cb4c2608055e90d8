# SPDX-License-Identifier: GPL-2.0
"""What RTRS and RNBD send: each message as bytes, with every field free to be wrong."""

import struct
from collections import namedtuple

PORT = 1234
MAGIC, VERSION = 0x1BBD, 0x0200
INFO_REQ, INFO_RSP, MSG_WRITE, MSG_READ, RKEY_RSP = range(5)
SESS_INFO, SESS_INFO_RSP, OPEN, OPEN_RSP, IO, CLOSE = range(6)
OP_READ, OP_WRITE, OP_FLUSH, OP_DISCARD, OP_ERASE, OP_ZEROES = range(6)
F_SYNC, F_FUA, F_PREFLUSH, F_NOUNMAP = 1, 2, 4, 8
CACHE_FUA, CACHE_WRITEBACK = 1, 2
RO, RW, MIGRATION = range(3)
NEED_INVAL, NEW_RKEY = 1, 2
REQUEST, RESPONSE, RESPONSE_INV, HEARTBEAT, HEARTBEAT_ACK = 0, 1, 2, 8, 9
_CONNECT = struct.Struct("<BBHHHHH16s16sB11s")
_ACCEPT = struct.Struct("<HHhHIII36s")
_OPEN_RSP = struct.Struct("<HHIQIIIIIHHHHBB10s")
_DESC = struct.Struct("<QII")

Connect = namedtuple("Connect", "cma ip magic version cid cid_num recon path session first rest")
Accept = namedtuple("Accept", "magic version code depth io_size hdr_size flags rest")
OpenRsp = namedtuple(
    "OpenRsp",
    "kind pad id sectors hw_sectors zeroes discard granularity alignment physical logical segments erase rotational "
    "cache rest",
)

Io = namedtuple("Io", "device op flags sector size prio")


def connect(path, session, cid=0, cid_num=1, **fields):
    """Private data of a connection request."""
    usual = Connect(0, 0, MAGIC, VERSION, cid, cid_num, 1, path, session, 1, b"")
    return _CONNECT.pack(*usual._replace(**fields))


def read_connect(data):
    """The fields of such a request."""
    return Connect(*_CONNECT.unpack(data[: _CONNECT.size]))


def accept(depth=16, io_size=61440, hdr_size=4096, flags=0, **fields):
    """Private data of the answer; `code` is set in one that rejects."""
    usual = Accept(MAGIC, VERSION, 0, depth, io_size, hdr_size, flags, b"")
    return _ACCEPT.pack(*usual._replace(**fields))


def read_accept(data):
    """The fields of such an answer; None if it is too short."""
    return Accept(*_ACCEPT.unpack(data[: _ACCEPT.size])) if len(data) >= _ACCEPT.size else None


def info_request(name, kind=INFO_REQ):
    """The message that names the session."""
    return struct.pack("<H255s15s", kind, name, b"")


def info_response(descriptors, kind=INFO_RSP, count=None):
    """The message that tells where chunks are; `descriptors` has (address, key, length)."""
    head = struct.pack("<HHI", kind, len(descriptors) if count is None else count, 0)
    return head + b"".join(_DESC.pack(*descriptor) for descriptor in descriptors)


def read_info_response(data):
    """(kind, descriptors)"""
    kind, count = struct.unpack_from("<HH", data)
    return kind, [_DESC.unpack_from(data, 8 + 16 * number) for number in range(count)]


def write_header(usr_len, kind=MSG_WRITE):
    """What is behind the message of a request that sends data."""
    return struct.pack("<HH", kind, usr_len)


def read_header(usr_len, target=None, kind=MSG_READ, flags=0, count=None):
    """What is behind the message of a request for data; `target` is (address, key, length)."""
    targets = [target] if target else []
    head = struct.pack("<HHHH", kind, usr_len, flags, len(targets) if count is None else count)
    return head + b"".join(_DESC.pack(*each) for each in targets)


def read_request(data):
    """(whether it asks for data, length of the message, flags, target or None) of a header."""
    kind, usr_len = struct.unpack_from("<HH", data)
    if kind != MSG_READ:
        return False, usr_len, 0, None
    flags, count = struct.unpack_from("<HH", data, 4)
    return True, usr_len, flags, _DESC.unpack_from(data, 8) if count else None


def immediate(kind, payload=0):
    """An immediate."""
    return (kind << 28 | payload & 0xFFFFFFF) & 0xFFFFFFFF


def request(chunk, offset, depth):
    """The immediate of a request."""
    return immediate(REQUEST, chunk << (28 - (depth - 1).bit_length()) | offset)


def response(chunk, code=0, kind=RESPONSE):
    """The immediate of an answer."""
    return immediate(kind, code << 19 | chunk)


def key_message(chunk, key, kind=RKEY_RSP):
    """The message that comes with the answer of a server that invalidates."""
    return struct.pack("<HHI", kind, chunk, key)


def read_key_message(data):
    """(kind, chunk, key)"""
    return struct.unpack("<HHI", data)


def session_info(version=2, kind=SESS_INFO):
    """Which version of RNBD is spoken."""
    return struct.pack("<HHB31s", kind, 0, version, b"")


def open_device(name, mode=RW, kind=OPEN):
    """Asks for a device."""
    return struct.pack("<HHBB255s3s", kind, 0, mode, 0, name, b"")


def open_response(**fields):
    """What a device is like."""
    usual = OpenRsp(OPEN_RSP, 0, 0, 131072, 248, 0, 0, 0, 0, 4096, 512, 128, 0, 0, 0, b"")
    return _OPEN_RSP.pack(*usual._replace(**fields))


def read_open_response(data):
    """The fields of that."""
    return OpenRsp(*_OPEN_RSP.unpack(data[: _OPEN_RSP.size]))


def close_device(number):
    """Is done with a device."""
    return struct.pack("<HHI", CLOSE, 0, number)


def read_io(data):
    """What a device is asked to do."""
    _, _, device, sector, op, size, prio, _ = struct.unpack("<HHIQIIH6s", data)
    return Io(device, op & 0xFF, op >> 8, sector, size, prio)


def io(device, op, sector=0, size=0, flags=0, prio=0):
    """Something for a device to do."""
    return struct.pack("<HHIQIIH6s", IO, 0, device, sector, op | flags << 8, size, prio, b"")
