# SPDX-License-Identifier: GPL-2.0
"""Probes on the functions of soft-RoCE that work requests are posted with. A call posts a chain of them."""

import contextlib

import benchguest as g

_PROBES = g.TRACING / "kprobe_events"
_GROUP, _NAMES = "weft", ("post_send", "post_recv")
# As many links of a chain as are recorded; RTRS and nvme-rdma chain fewer.
_LINKS = 8


def possible():
    """Whether this kernel has probes that can be defined."""
    return _PROBES.exists()


@contextlib.contextmanager
def probes():
    """The events of the probes, each with the links of the chain and with the callers."""
    # The chain is the second argument, and its first field leads to the next work request.
    links = [f"n{number}={'+0(' * number}%si{')' * number}:x64" for number in range(1, _LINKS + 1)]
    g.write(_PROBES, "".join(f"p:{_GROUP}/{name} rxe_{name} {' '.join(links)}\n" for name in _NAMES))
    # Tells of which module a caller is.
    g.write(g.TRACING / "options/sym-offset", "1")
    g.write(g.TRACING / "buffer_size_kb", "16384")
    for name in _NAMES:
        g.write(g.TRACING / "events" / _GROUP / name / "trigger", "stacktrace")
    yield [f"{_GROUP}/{name}" for name in _NAMES]
    for name in _NAMES:
        g.write(g.TRACING / "events" / _GROUP / name / "trigger", "!stacktrace")
    g.write(_PROBES, "")
