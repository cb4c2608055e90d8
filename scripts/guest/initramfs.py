# SPDX-License-Identifier: GPL-2.0
"""The initramfs of the guests: an archive whose only file is the statically linked init."""

import hashlib
import os
from pathlib import Path

import sdk

FLAGS = ("-O2", "-static", "-s", "-Wall", "-Wextra", "-D_GNU_SOURCE")
SOURCES = Path(__file__).resolve().parent / "init"


def path(root):
    """Where the initramfs is; compiles the init in the toolchain root if it has changed."""
    sources = sorted(SOURCES.glob("*.[ch]"))
    digest = hashlib.sha256(os.fsencode(root))
    for source in sources:
        digest.update(source.read_bytes())
    result = sdk.TOP / "build/guest" / f"init-{digest.hexdigest()[:12]}.cpio"
    if not result.exists():
        result.parent.mkdir(parents=True, exist_ok=True)
        _build([source for source in sources if source.suffix == ".c"], result)
    return result


def _build(sources, result):
    program = result.with_suffix(f".{os.getpid()}")
    try:
        sdk.in_root("gcc", *FLAGS, "-o", str(program), *map(str, sources))
        archive = _entry("init", 0o100755, program.read_bytes()) + _entry("TRAILER!!!", 0, b"")
        program.write_bytes(archive)
        program.rename(result)
    finally:
        program.unlink(missing_ok=True)


def _entry(name, mode, data):
    """One file in the `newc` format of cpio: thirteen numbers, the name and the data, each padded to four bytes."""
    encoded = name.encode() + b"\0"
    numbers = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
    header = b"070701" + b"".join(b"%08x" % number for number in numbers)
    return _padded(header + encoded) + _padded(data)


def _padded(data):
    return data + b"\0" * (-len(data) % 4)
