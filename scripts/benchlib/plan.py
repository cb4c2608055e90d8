# SPDX-License-Identifier: GPL-2.0
"""What is measured, and in which order.

A block has a round for each setup, in random order; a round has a sample of each workload and a profile of each, both
in random order.
The rounds of a block follow each other in the same guest, which makes their samples comparable. The blocks are shared
among guests, at least two, so that nothing depends on how one of them happened to boot.
"""

import random
from dataclasses import asdict

# The timers of the profiler. The workloads repeat themselves exactly, so a single timer would again and again meet the
# same functions; many that are out of step meet all.
TIMERS = 16


def guests(part, samples, seed, profile):
    """What each guest does, for so many samples of each setup."""
    source = random.Random(seed)
    setups = [setup.name for setup in part.setups]
    rounds = []
    for block in range(samples):
        for setup in source.sample(setups, len(setups)):
            rounds.append(_round(part, source, len(rounds), block, setup))
    boots = min(samples, max(part.boots, -(-samples // part.blocks_per_boot)))
    return [
        {
            "rounds": [turn for turn in rounds if turn["block"] * boots // samples == boot],
            "periods": [source.randrange(*part.periods) for _ in range(TIMERS)] if profile else [],
        }
        for boot in range(boots)
    ]


def _round(part, source, number, block, setup):
    names = [workload.name for workload in part.workloads]
    return {
        "number": number,
        "block": block,
        "setup": setup,
        "order": source.sample(names, len(names)),
        "profile_order": source.sample(names, len(names)),
    }


def document(part, guest, release):
    """The plan of a guest, as its program reads it."""
    return {
        "program": part.program,
        "traced": part.traced,
        "setups": {
            setup.name: {
                "modules": [module.in_guest(release) for module in setup.modules],
                "tainted": setup.tainted,
                "kind": setup.kind,
            }
            for setup in part.setups
        },
        "shared": [module.in_guest(release) for module in part.shared],
        "workloads": {workload.name: {"name": workload.name, **asdict(workload)} for workload in part.workloads},
        **guest,
    }
