# SPDX-License-Identifier: GPL-2.0
"""The way of a guest's output to the caller."""

import os


class UntilToken:
    """Passes a stream on up to a token that ends it. Only what may be the beginning of the token waits for more."""

    def __init__(self, token):
        self.ended = False
        self._token = token
        self._held = b""

    def feed(self, data):
        """The part of the stream that can be passed on now."""
        if self.ended:
            return b""
        data = self._held + data
        self._held = b""
        at = data.find(self._token)
        if at >= 0:
            self.ended = True
            return data[:at]
        for length in range(min(len(self._token) - 1, len(data)), 0, -1):
            if data.endswith(self._token[:length]):
                self._held = data[-length:]
                return data[:-length]
        return data

    def finish(self):
        """What still waited when the stream broke off."""
        held, self._held = self._held, b""
        return held


class Plain:
    """Writes a stream as it comes."""

    def __init__(self, fd):
        self._fd = fd

    def write(self, data):
        while data:
            data = data[os.write(self._fd, data) :]

    def finish(self):
        pass


class Prefixed(Plain):
    """Writes whole lines, each behind a prefix."""

    def __init__(self, fd, prefix):
        super().__init__(fd)
        self._prefix = prefix
        self._partial = b""

    def write(self, data):
        *lines, self._partial = (self._partial + data).split(b"\n")
        super().write(b"".join(self._prefix + line + b"\n" for line in lines))

    def finish(self):
        if self._partial:
            self.write(b"\n")


def sink(fd, name):
    """Where the output of the guest `name` goes."""
    return Prefixed(fd, f"{name}: ".encode()) if name else Plain(fd)
