# SPDX-License-Identifier: GPL-2.0
"""Where the things are that scripts/sdk prepared, and what this machine itself must have."""

import os
import shutil
import subprocess
from pathlib import Path

from refusal import Refusal

TOP = Path(__file__).resolve().parents[2]
QEMU = "qemu-system-x86_64"


def cache():
    """The cache directory, by the same rule as scripts/lib/common.sh."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("WEFT_CACHE") or Path(base) / "weft").resolve()


def prepared(which):
    """Directory of the root or of a kernel; refuses if scripts/sdk has not completed it."""
    done = subprocess.run([TOP / "scripts/sdk", "--path", which], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    path = Path(os.fsdecode(done.stdout).strip()).resolve()
    if done.returncode or not (path / ".complete").exists():
        what = "toolchain root" if which == "root" else f"{which} kernel"
        run = "scripts/sdk" if which == "root" else f"scripts/sdk {which}"
        raise Refusal(f"the {what} is not there yet; run {run} first")
    return path


def in_root(*command):
    """Runs a command inside the toolchain root; refuses with its output if it fails."""
    # The paths here have no symbolic links in them, those that in-root shows by itself may have.
    folders = ("--bind", str(TOP), "--bind", str(cache()))
    done = subprocess.run(
        [TOP / "scripts/in-root", *folders, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        raise Refusal(f"{command[0]} failed in the toolchain root: {os.fsdecode(done.stdout).strip()}")


def need_qemu():
    """Installs QEMU where that is possible, and refuses where it is not."""
    if shutil.which(QEMU):
        return
    script = '. "$1"; locked host-packages host_needs "$2" qemu-system-x86'
    command = ["bash", "-c", script, "vm", TOP / "scripts/lib/common.sh", QEMU]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=2)
    if done.returncode or not shutil.which(QEMU):
        raise Refusal(f"{QEMU} is missing on this machine; install the package qemu-system-x86")
