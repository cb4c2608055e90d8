# SPDX-License-Identifier: GPL-2.0
"""What a guest is told after boot: what to mount, how to set itself up and which command to run."""

import os
import re
import shlex
from dataclasses import dataclass

from refusal import Refusal
from shares import Share

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# More than this does not fit into the socket that carries it before the guest listens.
LIMIT = 128 * 1024
# The variables by which the cache is chosen on the host; guests must not take it from there.
NOT_PASSED = {"WEFT_CACHE"}


@dataclass(frozen=True)
class Link:
    """Addresses of one end of the link between two guests."""

    own: str
    peer: str
    own6: str
    peer6: str

    def commands(self):
        """What ip(8) has to do."""
        return f"address add {self.own}/24 dev eth0\naddress add {self.own6}/64 dev eth0 nodad\nlink set eth0 up\n"

    def environment(self):
        return {
            "WEFT_ADDR": self.own,
            "WEFT_PEER": self.peer,
            "WEFT_ADDR6": self.own6,
            "WEFT_PEER6": self.peer6,
        }


LINKS = {
    "A": Link("10.9.0.1", "10.9.0.2", "fd09::1", "fd09::2"),
    "B": Link("10.9.0.2", "10.9.0.1", "fd09::2", "fd09::1"),
}


@dataclass(frozen=True)
class Job:
    """The settings, the shares and the command of one guest."""

    name: str
    kernel: str
    impl: str
    token: str
    command: tuple[str, ...]
    directory: str
    project: str
    modules: str
    refused: tuple[str, ...]
    shares: tuple[Share, ...]

    def encoded(self):
        """The job as init reads it: its size in a line, then NAME=VALUE items that end with a zero byte."""
        items = [
            f"token={self.token}",
            f"project={self.project}",
            f"modules={self.modules}",
            f"settings={self._settings()}",
        ]
        items += [f"share={'rw' if share.writable else 'ro'} {share.tag} {share.path}" for share in self.shares]
        if self.kernel == "debug" and os.environ.get("WEFT_NO_LEAKCHECK") != "1":
            items.append("leakcheck=")
        blob = b"".join(os.fsencode(item) + b"\0" for item in items)
        if len(blob) > LIMIT:
            raise Refusal(f"the command and the WEFT_* variables together are longer than {LIMIT} bytes")
        return b"%d\n%s" % (len(blob), blob)

    def _settings(self):
        """Shell text for the guest's `session` script."""
        link = LINKS.get(self.name)
        values = {
            "hostname": f"weft-{self.name.lower()}" if self.name else "weft",
            "modprobe": "".join(_refuse(name) for name in self.refused),
            "link": link.commands() if link else "",
        }
        return "".join(f"job_{name}={shlex.quote(value)}\n" for name, value in values.items()) + self._command()

    def _command(self):
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in self._environment().items())
        words = " ".join(shlex.quote(word) for word in self.command)
        return f"job_command() {{\n{exports}cd {shlex.quote(self.directory)} || exit 125\nexec {words}\n}}\n"

    def _environment(self):
        passed = {
            name: value
            for name, value in os.environ.items()
            if re.fullmatch(r"WEFT_\w+", name, re.ASCII) and name not in NOT_PASSED
        }
        fixed = {
            "PATH": f"{PATH}:{self.project}/scripts/guest/bin",
            "HOME": "/root",
            "USER": "root",
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "WEFT_IMPL": self.impl,
            "WEFT_KERNEL": self.kernel,
        }
        link = LINKS.get(self.name)
        return passed | fixed | (link.environment() if link else {})


def _refuse(name):
    """A modprobe rule that keeps the C module from being loaded in place of a Rust module that is not built."""
    return f'install {name} echo "{name}: this tree has built no Rust module of that name; run make" >&2; exit 1\n'
