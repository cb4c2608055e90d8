# SPDX-License-Identifier: GPL-2.0
"""Direct I/O on disks: single transfers, traffic, and blocks whose last version is known."""

import contextlib
import mmap
import os
import struct
import threading
import time

import guestlib as g
import rnbd

BLOCK = 4096


def transfer(device, write, offset=0, size=BLOCK):
    """Direct I/O, which the page cache does not answer; 0 or the error's number."""
    memory = mmap.mmap(-1, size)
    memory[:] = bytes([offset // size % 251]) * size
    try:
        file = os.open(device.node, os.O_RDWR | os.O_DIRECT)
    except OSError as error:
        return error.errno
    try:
        (os.pwritev if write else os.preadv)(file, [memory], offset)
        return 0
    except OSError as error:
        return error.errno
    finally:
        os.close(file)


def works(device):
    for write in (True, False):
        code = transfer(device, write)
        g.check(code == 0, f"{'write' if write else 'read'}: {rnbd.name_of(code)}")


@contextlib.contextmanager
def traffic(device, fair=()):
    """Somebody writes all the time; errors but the fair ones are remembered and count in the end."""
    over, errors, done = threading.Event(), [], [0]

    def run():
        while not over.is_set():
            code = transfer(device, True, offset=done[0] % 4096 * BLOCK)
            done[0] += 1
            if code and code not in fair:
                errors.append(rnbd.name_of(code))
                return
            if code:
                time.sleep(0.01)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield done
    finally:
        over.set()
        for thread in threads:
            thread.join(3 * g.SOON)
    g.check(not any(thread.is_alive() for thread in threads), "a request hangs")
    g.check(not errors, f"errors: {errors}")


class Attempt(threading.Thread):
    """One transfer in the background."""

    def __init__(self, device, write=True, offset=0):
        super().__init__(daemon=True)
        self.begin = time.monotonic()
        self.code = self.seconds = None
        self._words = (device, write, offset)
        self.start()

    def run(self):
        self.code = transfer(*self._words)
        self.seconds = time.monotonic() - self.begin

    def waits(self):
        return self.code is None

    def end(self, seconds=2 * g.SOON):
        """Waits for it; 0 or the error's number."""
        self.join(seconds)
        g.check(not self.waits(), f"a request hangs for {time.monotonic() - self.begin:.0f} s")
        return self.code


class Versions:
    """Blocks that are written again and again, each with the next number, by several writers; and what must be there.

    A block has one writer. It must have the last version that was acknowledged, or one of those that failed since.
    """

    WRITERS = 4
    BLOCKS = 16

    def __init__(self, device):
        self.device = device
        self.acked = [0] * (self.WRITERS * self.BLOCKS)
        self.tried = [0] * (self.WRITERS * self.BLOCKS)
        self.writes = 0
        for block in range(len(self.tried)):
            self._write_once(block)
        self._begin = list(self.acked)

    def _content(self, block, version):
        return struct.pack("<QQ", block, version) * (BLOCK // 16)

    def _write_once(self, block, file=None):
        own = file is None
        file = os.open(self.device.node, os.O_RDWR | os.O_DIRECT) if own else file
        memory = mmap.mmap(-1, BLOCK)
        self.tried[block] += 1
        memory[:] = self._content(block, self.tried[block])
        try:
            os.pwritev(file, [memory], block * BLOCK)
            self.acked[block] = self.tried[block]
            self.writes += 1
        finally:
            if own:
                os.close(file)

    @contextlib.contextmanager
    def being_written(self, errors=False):
        """Writes go on meanwhile; may there be `errors`?"""
        over, faults = threading.Event(), []

        def run(first):
            file = os.open(self.device.node, os.O_RDWR | os.O_DIRECT)
            try:
                while not over.is_set():
                    for block in range(first, first + self.BLOCKS):
                        try:
                            self._write_once(block, file)
                        except OSError as error:
                            faults.append(error)
                            time.sleep(0.01)
            finally:
                os.close(file)

        writers = [threading.Thread(target=run, args=(n * self.BLOCKS,)) for n in range(self.WRITERS)]
        for writer in writers:
            writer.start()
        try:
            yield
        finally:
            over.set()
            for writer in writers:
                writer.join(3 * g.SOON)
        g.check(not any(writer.is_alive() for writer in writers), "a writer hangs")
        g.check(errors or not faults, f"{len(faults)} errors, the first: {faults[:1]}")

    def verify(self, node):
        """Reads the blocks from the server's own disk."""
        file = os.open(node, os.O_RDONLY | os.O_DIRECT)
        memory = mmap.mmap(-1, len(self.acked) * BLOCK)
        try:
            os.preadv(file, [memory], 0)
        finally:
            os.close(file)
        for block, (acked, tried) in enumerate(zip(self.acked, self.tried)):
            data = memory[block * BLOCK : (block + 1) * BLOCK]
            number, version = struct.unpack("<QQ", data[:16])
            g.check(number == block and data == self._content(block, version), f"block {block} is of no version")
            g.check(acked <= version <= tried, f"block {block} has version {version}, not {acked} to {tried}")
