# SPDX-License-Identifier: GPL-2.0
"""The documents in Documentation/ABI against the files that there really are."""

import os
import re

DOCUMENTS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../../Documentation/ABI/testing")
# What each device of any class and each disk has from the kernel, below a directory that is ours.
FOREIGN = ("uevent", "subsystem", "power", "dev")
_WHAT = re.compile(r"What:\s*(\S+)\s*$")


def documented():
    """What the documents name, each as it stands there and as a pattern for whole paths."""
    found = {}
    for name in sorted(os.listdir(DOCUMENTS)):
        with open(f"{DOCUMENTS}/{name}", encoding="utf-8") as lines:
            for line in lines:
                if what := _WHAT.match(line):
                    parts = re.split(r"<\w+>", what[1])
                    found[what[1]] = re.compile("[^/]+".join(map(re.escape, parts)) + "$")
    return found


def existing(*roots):
    """Files and links below directories, other than what the kernel puts beside ours; directories are on the way only."""
    found = set()
    for root in roots:
        for folder, folders, files in os.walk(root):
            links = [name for name in folders if os.path.islink(f"{folder}/{name}")]
            found.update(f"{folder}/{name}" for name in files + links if name not in FOREIGN)
            folders[:] = [name for name in folders if name not in FOREIGN]
    return found


def differences(paths):
    """Files that no document names, and names of which there is no file."""
    names = documented()
    nameless = sorted(path for path in paths if not any(pattern.match(path) for pattern in names.values()))
    absent = sorted(name for name, pattern in names.items() if not any(map(pattern.match, paths)))
    return nameless, absent
