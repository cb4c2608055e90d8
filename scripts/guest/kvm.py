# SPDX-License-Identifier: GPL-2.0
"""Whether guests can use the processor's virtualisation.

A /dev/kvm that exists, and even one that creates a VM, may still never run a guest, so the only answer is to boot
one. The answer is remembered in the cache until the machine is rebooted or QEMU changes.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import qemu
import sdk

DEVICE = "/dev/kvm"
# A kernel without a root file system is here within a second or two.
PROBE_SECONDS = 8
MARKER = b"Unable to mount root fs"


def accelerator():
    """`kvm` if a guest really boots with it, else `tcg`."""
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return "tcg"
    memo = _memo()
    memo.parent.mkdir(parents=True, exist_ok=True)
    with open(memo, "a+") as answer:
        fcntl.flock(answer, fcntl.LOCK_EX)
        answer.seek(0)
        known = answer.read()
        if known not in ("kvm", "tcg"):
            known = "kvm" if _boots() else "tcg"
            answer.truncate(0)
            answer.write(known)
    return known


def _memo():
    """The file for the answer, named after what the answer depends on."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    program = os.stat(shutil.which(sdk.QEMU))
    facts = f"{boot} {os.getuid()} {program.st_size} {program.st_mtime_ns}"
    return sdk.cache() / f"kvm-{hashlib.sha256(facts.encode()).hexdigest()[:12]}"


def _boots():
    append = " ".join(qemu.kernel_words("base", "kvm", 1))
    command = qemu.base_command("kvm", 1, 256, sdk.prepared("base"), append)
    console, far = os.pipe()
    process = qemu.start([*command, "-serial", "stdio"], (), far, subprocess.DEVNULL)
    os.close(far)
    try:
        with open(console, "rb") as log:
            return _appears(log, process)
    finally:
        qemu.kill(process)


def _appears(log, process):
    try:
        process.wait(PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return MARKER in log.read()
