# SPDX-License-Identifier: GPL-2.0
"""Host folders that a guest sees at their own paths, over 9p."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """One folder; `tag` is what the guest mounts it by."""

    tag: str
    path: str
    writable: bool


def plan(project, cache, extra):
    """The folders of a guest, parents first; one that another one shows writable is left out."""
    wanted = {cache: False} | {path: True for path in (project, *extra)}
    chosen = []
    for path, writable in sorted(wanted.items()):
        if not _inside(path, {share.path for share in chosen if share.writable}):
            chosen.append(Share(f"share{len(chosen)}", path, writable))
    return tuple(chosen)


def visible(path, shares):
    """Whether `path` is in one of the folders."""
    return any(path == share.path for share in shares) or _inside(path, {share.path for share in shares})


def _inside(path, folders):
    return any(path.startswith(folder.rstrip("/") + "/") for folder in folders)
