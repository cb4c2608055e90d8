# SPDX-License-Identifier: GPL-2.0
"""The document build/bench/rds.json: everything that the table and the plot show, and the samples behind it."""

from collections import Counter
from statistics import median

import spread
from plan import IMPLS, WORKLOADS
from symbols import PARTS, readable

FORMAT = 1
# Functions of a workload and an implementation that are named.
HOT = 60
MEANING = {
    "unit": "instructions of the whole guest per message; one is one nanosecond of guest time",
    "busy": "elapsed without the time the processor slept",
    "elapsed": "from the first send to the last answer",
    "own": "of busy, what ran in the modules (for Rust also in the kernel's Rust crates and helpers), by perf",
    "ratio": "Rust/C of the medians; low and high: 95 % interval; min and max: range of the pairs of samples",
}


def build(rounds, about):
    """The document; `about` says what was measured with what."""
    by_impl = {
        impl: sorted((turn for turn in rounds if turn.impl == impl), key=lambda turn: turn.block) for impl in IMPLS
    }
    return {
        "bench": "rds",
        "format": FORMAT,
        **about,
        "meaning": MEANING,
        "workloads": [_workload(workload, by_impl, about["seed"]) for workload in WORKLOADS],
    }


def _workload(workload, by_impl, seed):
    name = workload.name
    figures = {}
    for figure in by_impl["c"][0].figures:
        taken = {impl: [turn.figure(figure, name) for turn in turns] for impl, turns in by_impl.items()}
        figures[figure] = {impl: spread.values(samples) for impl, samples in taken.items()}
        figures[figure]["ratio"] = spread.ratio(taken["rust"], taken["c"], seed)
    return {
        "name": name,
        "title": workload.title,
        "kind": workload.kind,
        "size": workload.size,
        "messages": workload.count,
        "figures": figures,
        "asleep": {impl: max(turn.sleep(name) for turn in turns) for impl, turns in by_impl.items()},
        "parts": {impl: _parts(turns, name) for impl, turns in by_impl.items()},
        "functions": {impl: _hot(turns, name) for impl, turns in by_impl.items()},
    }


def _pooled(turns, name):
    """Instructions of each function per message, from all profiles together."""
    counts = sum((turn.functions(name) for turn in turns), Counter())
    busy = median(turn.figure("busy", name) for turn in turns)
    return {function: busy * count / counts.total() for function, count in counts.items()}


def _parts(turns, name):
    found = Counter()
    for (_, part), cost in _pooled(turns, name).items():
        found[part] += cost
    return {part: found[part] for part in PARTS if part in found}


def _hot(turns, name):
    costs = sorted(_pooled(turns, name).items(), key=lambda item: -item[1])[:HOT]
    names = readable([function for (function, _), _ in costs])
    return [{"function": names[function], "part": part, "cost": cost} for (function, part), cost in costs]
