# SPDX-License-Identifier: GPL-2.0
"""What there is to do, and in what groups."""

import fnmatch
import json

import scenario
from cases import Cargo, Fuzz, Unittest, Verdicts
from guests import Guest
from programs import Program

# Seconds of fuzzing for each parser.
FUZZ_SECONDS = {"check": 3, "soak": 300}
# A guest is not worth its boot for less than this; a scenario that has never run counts a quarter of its limit.
GUEST_SECONDS = {"base": 60, "debug": 120}


def in_root(directory, command):
    """A shell command in a directory of the tree, inside the toolchain root."""
    return ["scripts/in-root", "bash", "-ec", f'cd "$1" && {command}', "-", directory]


def host_tasks(mode):
    """Builds, lint and the tests that need no guest of ours, in order of importance."""
    base, tools = ["build/base"], "../build/tools"
    cargo_test = "cargo test --release --locked --no-fail-fast --target-dir"
    tasks = [
        Program("build/base", ["make", "modules", "KERNEL=base"]),
        Program("build/debug", ["make", "modules", "KERNEL=debug"]),
        Program("build/tools", in_root("tools", f"cargo build --release --locked --target-dir {tools}")),
        Program("host/proto", in_root("rust/proto", f"{cargo_test} ../../build/proto"), Cargo()),
        Program("host/tools", in_root("tools", f"{cargo_test} {tools}"), Cargo(), ["build/tools"]),
        Program("host/fuzz", ["scripts/in-root", "tests/fuzz/run", str(FUZZ_SECONDS[mode])], Fuzz()),
    ]
    if mode == "check":
        tasks += [
            Program("host/runner", ["python3", "-m", "unittest", "-v", "tests/runner/test_vm.py"], Unittest(), base),
            Program("host/harness", ["python3", "-m", "unittest", "-v", "tests/runner/test_check.py"], Unittest()),
            Program("lint", ["scripts/lint"], Verdicts(), base),
            Program("build/kinds", ["tests/runner/build"], Verdicts(), base),
        ]
    return tasks


def selected(name, pattern):
    """Whether `pattern` asks for what has this name: by a part of it, or as a shell pattern."""
    return not pattern or pattern in name or fnmatch.fnmatchcase(name, pattern)


def guest_tasks(scenarios, slots, known):
    """Groups of scenarios that share guests; those that take longest first."""
    kinds = {}
    for one in scenarios:
        kind = (one.kernel, one.impl, one.program if one.alone else "", "light" if one.light else "")
        kinds.setdefault(kind, []).append(one)
    tasks = []
    for (kernel, impl, *which), members in kinds.items():
        cost = {one: known.get(one.name, one.timeout / 4) for one in members}
        most = 1 if members[0].light else slots
        groups = _split(members, cost, min(most, max(1, int(sum(cost.values()) // GUEST_SECONDS[kernel]))))
        for number, group in enumerate(groups, 1):
            parts = ["guest", kernel, impl.replace(",", "-"), *which, str(number) if len(groups) > 1 else ""]
            tasks.append((sum(cost[one] for one in group), Guest("-".join(filter(None, parts)), group)))
    return [task for _, task in sorted(tasks, key=lambda entry: -entry[0])]


def _split(members, cost, count):
    """Groups of about the same cost, each in the original order."""
    groups = [[] for _ in range(count)]
    for one in sorted(members, key=lambda one: -cost[one]):
        min(groups, key=lambda group: sum(cost[other] for other in group)).append(one)
    return [sorted(group, key=members.index) for group in groups if group]


def make(mode, pattern, slots, known):
    """All tasks that `pattern` asks for and what these need, in order of importance."""
    hosts = host_tasks(mode)
    scenarios = [one for one in scenario.discover(mode) if selected(one.name, pattern)]
    guests = guest_tasks(scenarios, slots, known)
    wanted = [task for task in hosts if selected(task.name, pattern)]
    needed = set().union(*(task.needs for task in [*wanted, *guests]))
    builds = [task for task in hosts if task in wanted or task.name in needed]
    first = [task for task in builds if task.name in needed]
    return [*first, *guests, *(task for task in builds if task not in first)]


def known_seconds(path):
    """How long the scenarios took last time."""
    try:
        return json.loads(path.read_text())["group_seconds"]
    except (OSError, ValueError, KeyError):
        return {}
