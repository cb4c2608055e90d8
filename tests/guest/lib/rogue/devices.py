# SPDX-License-Identifier: GPL-2.0
"""Messages of RNBD that no client sends. Each is answered with an error, and the path goes on."""

import errno

import rtrs_wire as wire
from cases import Cases, equal, eventually
from rogue.ground import DISK_KIB, KEPT, disk, few, tells
from rtrs_peer import Peer

CASES = Cases("devices")
SECTORS = DISK_KIB * 2
KNOWN = {}


def _peer():
    """The client of this table, which has `ram1` open for writing and `ram2` for reading."""
    if "peer" in KNOWN and not KNOWN["peer"].look():
        # Something took so long meanwhile that the server took it for dead.
        KNOWN.pop("peer").close()
    if "peer" not in KNOWN:
        peer = Peer(cid_num=2).up()
        KEPT.add(peer.name)
        equal(peer.greet(), 2)
        KNOWN.update(peer=peer, rw=peer.must_open("ram1"), ro=peer.must_open("ram2", wire.RO))
    return KNOWN["peer"]


def _asks(what, want, message, data=None, room=0, says=None):
    """A message, how many bytes it brings or has room for, the error of the answer, and what the server logs."""

    def check():
        peer = _peer()
        bytes_ = message() if callable(message) else message

        def act():
            code = peer.write(bytes_, data) if data is not None else peer.read(bytes_, room)[0]
            equal(code, getattr(errno, want) if want else 0)

        tells(says, act) if says else act()
        equal(peer.greet(), 2)

    CASES.case(what, limit=30)(check)


INFO, OPEN, CLOSE = wire.session_info(), wire.open_device(b"ram1"), wire.close_device(0)
for _kind in few(wire.SESS_INFO_RSP, wire.OPEN_RSP, 6, 0xFF, 0xFFFF):
    _asks(f"type {_kind}", "EINVAL", _kind.to_bytes(2, "little") + bytes(30), room=64,
          says=f"message has type {_kind}, which no client sends")
for _size in few(0, 1, 3):
    _asks(f"{_size} bytes", "EINVAL", bytes(_size), room=64, says=f"message has {_size} bytes")
for _name, _message, _room in (("SESS_INFO", INFO, 36), ("OPEN", OPEN, 56), ("CLOSE", CLOSE, 0)):
    _asks(f"{_name}, one byte less", "EINVAL", _message[:-1], room=_room,
          says=f"message has {len(_message) - 1} bytes, it must have {len(_message)}")
    _asks(f"{_name}, only its type", "EINVAL", _message[:4], room=_room)
_asks("IO, one byte less than old clients send", "EINVAL", lambda: wire.io(KNOWN["rw"], wire.OP_FLUSH)[:23],
      says="message has 23 bytes")
for _name, _message, _size in (("SESS_INFO", INFO, 36), ("OPEN", OPEN, 56)):
    _asks(f"{_name} with too little room", "EINVAL", _message, room=_size - 1, says=f"the answer has {_size}")
    _asks(f"{_name} without room", "EINVAL", _message, says="client has room for 0 bytes")
    _asks(f"{_name} that sends data", "EINVAL", _message, data=bytes(64), says="client has room for 0 bytes")

# OPEN.
for _mode in few(3, 4, 0x80, 0xFF):
    _asks(f"OPEN with access mode {_mode}", "EINVAL", wire.open_device(b"ram1", _mode), room=56,
          says=f"access mode is {_mode}, it must be from 0 to 2")
for _what, _path, _want in (
    ("nothing", b"", "EINVAL"),
    ("a name without end", b"a" * 255, "EINVAL"),
    ("the folder above", b"../dev/ram1", "EINVAL"),
    ("the folder above, hidden", b"shm/../../dev/ram1", "EINVAL"),
    ("the folder above, at the end", b"shm/..", "EINVAL"),
    ("a line end", b"ram1\n", "EINVAL"),
    ("what is not UTF-8", b"ram1\xff", "EINVAL"),
    ("what is not there", b"nothing", "ENOENT"),
    ("a folder", b"shm", "ENOTBLK"),
    ("a character device", b"null", "ENOTBLK"),
    ("a device as a folder", b"ram1/x", "ENOTDIR"),
    ("a device that another writes to", b"ram0", "EPERM"),
    ("a device that is open, by another name", b"./ram1", "EEXIST"),
):
    _asks(f"OPEN of {_what}", _want, wire.open_device(_path), room=56)
_asks("OPEN for writing of what is open for reading, by another name", "EEXIST", wire.open_device(b"//./ram2"), room=56)


@CASES.case("OPEN twice is the same device, CLOSE of it twice is no error")
def _():
    with Peer() as peer:
        peer.up()
        _peer().write(wire.close_device(KNOWN["rw"]))
        first = peer.must_open("ram1")
        equal(peer.must_open("ram1", wire.RO), first)
        for _ in range(3):
            equal(peer.write(wire.close_device(first)), 0)
        equal(peer.read(wire.io(first, wire.OP_READ, 0, 512), 512)[0], errno.ENOTCONN)
        # Whose number nobody has.
        for number in (first + 1, 0x7FFFFFFF, 0xFFFFFFFF):
            equal(peer.write(wire.close_device(number)), 0)
        again = peer.must_open("ram1")
        equal(peer.write(wire.io(again, wire.OP_WRITE, 0, 512), bytes(512)), 0)
        equal(peer.write(wire.close_device(again)), 0)
    KNOWN["rw"] = eventually(lambda: _peer().open("ram1")[1], "the device is free again").id


@CASES.case("D12 CLOSE on two connections at once", limit=30)
def _():
    peer = _peer()
    for _ in range(20):
        number = peer.must_open("ram2", wire.RO)
        message = wire.close_device(number)
        chunks = [peer.chunk() for _ in range(4)]
        for turn, chunk in enumerate(chunks):
            peer.put(chunk, message + wire.write_header(8), 8, cid=turn % 2)
        equal([peer.answer(chunk) for chunk in chunks], [0] * 4)
    KNOWN["ro"] = peer.must_open("ram2", wire.RO)


@CASES.case("a device is opened and closed again and again")
def _():
    peer = _peer()
    for _ in range(30):
        number = peer.must_open("ram2", wire.RO)
        equal(peer.write(wire.close_device(number)), 0)
    KNOWN["ro"] = peer.must_open("ram2", wire.RO)


@CASES.case("versions of SESS_INFO")
def _():
    for version, answer in ((2, 2), (3, 2), (255, 2), (1, 1)):
        equal(_peer().greet(version), answer)
    equal(_peer().greet(), 2)


# IO.
def _io(op, sector=0, size=4096, number=None, flags=0):
    return lambda: wire.io(KNOWN["rw"] if number is None else number, op, sector, size, flags)


PAGE = bytes(4096)
for _number in few(7, 0x7FFFFFFF, 0xFFFFFFFF):
    _asks(f"IO to device {_number}", "ENOTCONN", _io(wire.OP_READ, number=_number), room=4096,
          says=f"request for device {_number}, which is not open")
for _op in few(6, 7, 0x80, 0xFF):
    _asks(f"N-33 operation {_op}", "EOPNOTSUPP", _io(_op), room=4096, says=f"operation is {_op}, it must be from 0 to 5")
for _what, _sector in (("at the end", SECTORS), ("across the end", SECTORS - 1), ("far beyond", 1 << 40)):
    _asks(f"READ {_what}", "EIO", _io(wire.OP_READ, _sector), room=4096, says=f"ends beyond the {SECTORS} sectors")
    _asks(f"WRITE {_what}", "EIO", _io(wire.OP_WRITE, _sector), data=PAGE, says=f"ends beyond the {SECTORS} sectors")
for _sector in few(1 << 55, 2**63, 2**64 - 8, 2**64 - 1):
    _asks(f"READ at sector {_sector}", "EINVAL", _io(wire.OP_READ, _sector), room=4096, says="end beyond what a device")
_asks("READ of no bytes", "EINVAL", _io(wire.OP_READ, size=0), says="0 bytes")
for _size in few(1, 511, 513, 4095):
    _asks(f"READ of {_size} bytes", "EINVAL", _io(wire.OP_READ, size=_size), room=_size)
    _asks(f"WRITE of {_size} bytes", "EINVAL", _io(wire.OP_WRITE, size=_size), data=bytes(_size))
for _size in few(0, 512, 8192, 0xFFFFFE00):
    _asks(f"READ of {_size} bytes into 4096", "EINVAL", _io(wire.OP_READ, size=_size), room=4096)
    _asks(f"WRITE of {_size} bytes out of 4096", "EINVAL", _io(wire.OP_WRITE, size=_size), data=PAGE)
for _name, _op in (("READ", wire.OP_READ), ("WRITE", wire.OP_WRITE), ("FLUSH", wire.OP_FLUSH)):
    _asks(f"N-27 {_name} of 4096 bytes without any", "EINVAL", _io(_op))
_asks("READ that sends data", "EINVAL", _io(wire.OP_READ), data=PAGE, says="goes the wrong way")
_asks("WRITE that asks for data", "EINVAL", _io(wire.OP_WRITE), room=4096, says="goes the wrong way")
for _name, _op in (("DISCARD", wire.OP_DISCARD), ("WRITE_ZEROES", wire.OP_ZEROES), ("SECURE_ERASE", wire.OP_ERASE)):
    _asks(f"{_name} with data", "EINVAL", _io(_op), data=PAGE)
    _asks(f"{_name} of no bytes", "EINVAL", _io(_op, size=0), data=b"")
    _asks(f"{_name} of half a sector", "EINVAL", _io(_op, size=256), data=b"")
    _asks(f"{_name} across the end", "EIO", _io(_op, SECTORS - 1), data=b"")
    _asks(f"{_name} of 4 GiB", "EIO", _io(_op, size=0xFFFFFE00), data=b"")
for _name, _op in (("READ", wire.OP_READ), ("FLUSH", wire.OP_FLUSH)):
    _asks(f"{_name} with all flags", None, _io(_op, size=0 if _op else 4096, flags=0xFFFFFF), room=0 if _op else 4096)
_asks("WRITE with all flags", None, _io(wire.OP_WRITE, flags=0xFFFFFF), data=PAGE)


@CASES.case("N-32 a device that is open for reading is not written to")
def _():
    peer, before = _peer(), disk(2, 0)
    for op in (wire.OP_WRITE, wire.OP_DISCARD, wire.OP_ZEROES, wire.OP_ERASE):
        data = b"\xbb" * 4096 if op == wire.OP_WRITE else b""
        equal(peer.write(wire.io(KNOWN["ro"], op, 0, 4096, 0xFF), data), errno.EROFS)
    equal(disk(2, 0), before)
    equal(peer.read(wire.io(KNOWN["ro"], wire.OP_READ, 0, 4096), 4096), (0, before))


@CASES.case("real-time priority and unknown classes are no harm")
def _():
    for prio in (0x2000, 0x2007, 0x4004, 0x6000, 0xE000, 0xFFFF):
        equal(_peer().write(wire.io(KNOWN["rw"], wire.OP_WRITE, 0, 512, 0, prio), bytes(512)), 0)


@CASES.case("what was refused did no harm: data is as an ordinary client leaves it")
def _():
    peer = _peer()
    for sector in range(0, 64, 8):
        data = bytes([sector + 1]) * 4096
        equal(peer.write(wire.io(KNOWN["rw"], wire.OP_WRITE, sector, 4096), data, cid=1), 0)
        equal(peer.read(wire.io(KNOWN["rw"], wire.OP_READ, sector, 4096), 4096, cid=1), (0, data))
        equal(disk(1, sector * 512), data)
    KEPT.discard(peer.name)
    KNOWN.pop("peer").close()
