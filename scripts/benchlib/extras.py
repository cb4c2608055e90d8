# SPDX-License-Identifier: GPL-2.0
"""What of the part about RNBD is no time: work requests, packets, memory of the server."""

import json
import re
import subprocess
import sys
from collections import Counter
from statistics import median

import sdk
from marks import BEGIN, END, JobMarks
from measure import LINE
from refusal import Refusal

PROGRAM = sdk.TOP / "tests/bench/rnbd-memory"
MEMORY_SECONDS = 300
_RESULT = re.compile(r"^A: @kib (\d+)$", re.M)
# Which end a call is of, by the modules of its callers.
_ENDS = {
    "client": re.compile(r"\[(rtrs_client|rnbd_client|nvme_rdma|nvme_core)\]"),
    "server": re.compile(r"\[(rtrs_server|rnbd_server|nvmet_rdma|nvmet)\]"),
}
_KINDS = {"post_send": "sends", "post_recv": "receives"}
_NEXT = re.compile(r"n\d+=0x([0-9a-f]+)")


def of(part, boots, folder):
    """What is added to the document of a part."""
    if part.name != "rnbd":
        return {}
    plan = folder / "0/plan.json"
    return {"work": _work(part, boots), "memory": {setup.name: _memory(setup.name, plan) for setup in part.setups}}


def _work(part, boots):
    """By workload and setup, packets and posted work requests per request."""
    turns = [turn for boot in boots for turn in boot.rounds]
    posted = {}
    for boot in boots:
        for path in boot.folder.glob("posts-*"):
            setup = path.name.partition("-")[2]
            order = next(turn["order"] for turn in boot.rounds if (turn["setup"], turn["block"]) == (setup, 0))
            posted[setup] = dict(zip(order, _posts(path.read_text(), part.traced), strict=True))
    found = {}
    for load in part.workloads:
        found[load.name] = {setup.name: posted.get(setup.name, {}).get(load.name, {}) for setup in part.setups}
        for name, counts in found[load.name].items():
            made = [turn["made"][load.name] for turn in turns if turn["setup"] == name]
            counts["packets"] = median(taken["packets"] / taken["requests"] for taken in made)
    return found


def _posts(text, requests):
    """For each workload in a trace, the work requests that each end posted per request."""
    marks, found, counts, call = JobMarks(), [], None, None
    for line in text.splitlines():
        if event := LINE.match(line):
            call = (_KINDS[event["event"]], _length(event["text"])) if event["event"] in _KINDS else None
            mark = marks.see(event["event"], event["comm"], event["pid"])
            if mark == BEGIN:
                counts = Counter()
            elif mark == END:
                found.append({what: number / requests for what, number in counts.items()})
                counts = None
        elif call and counts is not None and line.lstrip().startswith("=>"):
            for end in (end for end, modules in _ENDS.items() if modules.search(line)):
                counts[f"{end} {call[0]}"] += call[1]
                call = None
                break
    return found


def _length(fields):
    """Of a chain, which ends with a null pointer."""
    length = 1
    for link in _NEXT.finditer(fields):
        if not int(link[1], 16):
            break
        length += 1
    return length


def _memory(setup, plan):
    """KiB that the server needs for an idle session."""
    print(f"  memory of a session: {setup}", file=sys.stderr)
    command = [sdk.TOP / "scripts/vm", "--kernel", "base", "--pair", "--impl", "rust,rust"]
    command += ["--timeout", str(MEMORY_SECONDS), "--share", plan.parent]
    for role in ("server", "client"):
        command += ["--", PROGRAM, role, plan, setup]
    done = subprocess.run(command, cwd=sdk.TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    found = _RESULT.search(done.stdout)
    if done.returncode or not found:
        raise Refusal(f"the memory of a session was not measured: {json.dumps(done.stdout[-500:])}")
    return int(found[1])
