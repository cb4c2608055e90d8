# SPDX-License-Identifier: GPL-2.0
"""What /lib/modules/VERSION is in a guest: the kernel's own modules, or those with ours in updates/.

The combined trees live in build/guest/KERNEL-rust/DIGEST and are named after the modules in them, so a guest that
still runs keeps its tree while a newer one is made.
"""

import fcntl
import hashlib
import os
import shutil
from contextlib import contextmanager

import sdk
from refusal import Refusal

# The C modules that the Rust modules replace. With the Rust modules a guest must not take one of these silently.
REPLACED = ("rds", "rds_tcp", "rds_rdma", "rtrs_client", "rtrs_server", "rnbd_client", "rnbd_server")
# Old trees that are left alone because a guest may still use them.
KEPT = 4


def tree(kernel, kernel_dir, impl):
    """The directory that becomes /lib/modules/VERSION, and the names that modprobe must refuse in it."""
    own = own_modules(kernel, kernel_dir)
    if impl == "c":
        return own, ()
    ours = sorted((sdk.TOP / "build/modules" / kernel).glob("*.ko"))
    if not ours:
        target = "make" if kernel == "base" else f"make KERNEL={kernel}"
        raise Refusal(
            f"there are no Rust modules for the {kernel} kernel in build/modules/{kernel}; run {target} first"
        )
    names = {module.stem.replace("-", "_") for module in ours}
    refused = tuple(name for name in REPLACED if name not in names)
    top = sdk.TOP / "build/guest" / f"{kernel}-rust"
    return combined(top, own, ours), refused


def own_modules(kernel, kernel_dir):
    found = list((kernel_dir / "mods/lib/modules").glob("*/modules.dep"))
    if len(found) != 1:
        raise Refusal(f"the {kernel} kernel has no installed modules; run scripts/sdk {kernel} again")
    return found[0].parent


def combined(top, own, ours):
    digest = _digest(own, ours)
    result = top / digest / "lib/modules" / own.name
    top.mkdir(parents=True, exist_ok=True)
    with _locked(top / ".lock"):
        if not result.is_dir():
            _build(top / f".{digest}", own, ours)
            os.rename(top / f".{digest}", top / digest)
            _prune(top)
        os.utime(top / digest)
    return result


def _digest(own, ours):
    text = hashlib.sha256(os.fsencode(own))
    for path in [own / "modules.dep", *ours]:
        facts = path.stat()
        text.update(f"{path.name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return text.hexdigest()[:12]


def _build(base, own, ours):
    shutil.rmtree(base, ignore_errors=True)
    version = base / "lib/modules" / own.name
    (version / "updates").mkdir(parents=True)
    for module in ours:
        shutil.copy2(module, version / "updates")
    for entry in own.iterdir():
        if entry.name == "kernel" or entry.name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
            (version / entry.name).symlink_to(entry)
    sdk.in_root("depmod", "-b", str(base), own.name)


def _prune(top):
    trees = sorted((path for path in top.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
    for old in trees[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _locked(path):
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
