# SPDX-License-Identifier: GPL-2.0
"""The document build/bench/PART.json: everything that the table and the plot show, and the samples behind it."""

from collections import Counter
from dataclasses import asdict
from statistics import median

import spread
from symbols import readable

FORMAT = 2
# Functions of a workload and an implementation that are named.
HOT = 60
MEANING = {
    "busy": "elapsed without the time the processor slept",
    "elapsed": "from the first one to the end of the last one",
    "own": "of busy, what ran in the modules (for Rust also in the kernel's Rust crates and helpers), by perf",
    "savings": "busy without a copy / busy with one, of the same implementation",
    "ratios": "Rust/other of the medians; low and high: 95 % interval; min and max: range of the pairs of samples",
}


def build(part, rounds, about):
    """The document; `about` says what was measured with what."""
    by_setup = {
        setup.name: sorted((turn for turn in rounds if turn.setup == setup.name), key=lambda turn: turn.block)
        for setup in part.setups
    }
    unit = f"instructions of the whole guest per {part.unit}; one is one nanosecond of guest time"
    return {
        "bench": part.name,
        "format": FORMAT,
        "title": part.plot_title,
        **about,
        "meaning": {"unit": unit, **MEANING},
        "workloads": [_row(part, row, by_setup, about["seed"]) for row in part.rows],
        "savings": [_saving(by_setup, copied, lent, about["seed"]) for copied, lent in part.savings],
    }


def _saving(by_setup, copied, lent, seed):
    """What a workload without a copy needs, by setup, compared with the one that copies; of the same rounds."""
    found = {"name": lent, "compared with": copied, "ratios": {}}
    for setup, turns in by_setup.items():
        above, below = ([turn.figure("busy", name) for turn in turns] for name in (lent, copied))
        found["ratios"][setup] = spread.ratio(above, below, seed)
    return found


def _row(part, row, by_setup, seed):
    name = row.workload
    by_impl = {impl: by_setup[setup] for impl, setup in row.setups.items()}
    figures = {}
    for figure in by_impl["rust"][0].figures:
        taken = {impl: [turn.figure(figure, name) for turn in turns] for impl, turns in by_impl.items()}
        figures[figure] = {impl: spread.values(samples) for impl, samples in taken.items()}
        figures[figure]["ratios"] = {other: spread.ratio(taken["rust"], taken[other], seed) for other in part.against}
    return {
        "name": row.name,
        "title": row.title,
        "workload": next(asdict(load) for load in part.workloads if load.name == name),
        "figures": figures,
        "asleep": {impl: max(turn.sleep(name) for turn in turns) for impl, turns in by_impl.items()},
        "parts": {impl: _parts(part, turns, name) for impl, turns in by_impl.items()},
        "functions": {impl: _hot(turns, name) for impl, turns in by_impl.items()},
    }


def _pooled(turns, name):
    """Instructions of each function per message or request, from all profiles together."""
    counts = sum((turn.functions(name) for turn in turns), Counter())
    busy = median(turn.figure("busy", name) for turn in turns)
    return {function: busy * count / counts.total() for function, count in counts.items()}


def _parts(part, turns, name):
    found = Counter()
    for (_, where), cost in _pooled(turns, name).items():
        found[where] += cost
    return {where: found[where] for where in part.parts if where in found}


def _hot(turns, name):
    costs = sorted(_pooled(turns, name).items(), key=lambda item: -item[1])[:HOT]
    names = readable([function for (function, _), _ in costs])
    return [{"function": names[function], "part": where, "cost": cost} for (function, where), cost in costs]
