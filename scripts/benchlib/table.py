# SPDX-License-Identifier: GPL-2.0
"""What `make bench` prints."""

from plan import IMPLS
from symbols import OWN, PARTS

FIGURES = {"busy": "busy instructions", "own": "of it the modules'", "elapsed": "elapsed guest ns"}
# A ratio above this is explained.
SLOWER = 1.10
# Functions that an explanation names.
NAMED = 8


def text(document):
    """The whole report."""
    parts = [_heading(document), _figures(document), _legend(document)]
    if any(workload["parts"]["c"] for workload in document["workloads"]):
        parts.append(_parts(document))
    parts += [_explanation(workload, figure) for workload in document["workloads"] for figure in _slow(workload)]
    return "\n\n".join(parts) + "\n"


def _heading(document):
    tools = document["toolchain"]
    return (
        "RDS over TCP: C modules and Rust modules, two network namespaces in one guest\n"
        f"kernel {document['kernel']}, QEMU {document['qemu']} (TCG, -icount shift=0, 1 processor), "
        f"{tools['c']}, {tools['rust']}\n"
        f"{document['samples']} samples of each, in random order (seed {document['seed']})"
    )


def _figures(document):
    lines = [f"{'':24}{'per message':20}{'C':>10}{'Rust':>10}{'Rust/C':>9}   {'95 %':14}{'min .. max'}"]
    for workload in document["workloads"]:
        title = workload["title"]
        for name in (name for name in FIGURES if name in workload["figures"]):
            figure = workload["figures"][name]
            shown = "".join(f"{figure[impl]['median']:10,.0f}" for impl in IMPLS)
            lines.append(f"{title:24}{FIGURES[name]:20}{shown}{_ratio(figure['ratio'])}")
            title = ""
    return "\n".join(lines)


def _ratio(ratio):
    if not ratio:
        return f"{'-':>9}"
    ranges = (f"{ratio[low]:.3f} .. {ratio[high]:.3f}" for low, high in (("low", "high"), ("min", "max")))
    return f"{ratio['value']:9.3f}   {'  '.join(ranges)}"


def _legend(document):
    asleep = max(share for workload in document["workloads"] for share in workload["asleep"].values())
    lines = [
        "One instruction of the guest is one nanosecond of its time. With one processor, elapsed is what everything",
        "took: both programs, the kernel, interrupts; busy is that without sleep, which was at most "
        f"{asleep:.2%} of a sample.",
        "The emulator counts a copied byte as an instruction (rep movsb), so copying weighs more than on hardware.",
    ]
    if "own" in document["workloads"][0]["figures"]:
        lines += [
            "The modules' own instructions are what runs in rds, rds_tcp and weft, for Rust also in the kernel's Rust",
            "code and helpers, where C has inline functions; not what they call: copying, memory, TCP, scheduling.",
            "perf samples them with timers (cpu-clock), since the emulated processor counts no events.",
        ]
    else:
        lines += [f"What of it the modules take was not measured: {document['unprofiled']}."]
    return "\n".join(lines)


def _parts(document):
    lines = ["Where the instructions go, per message:"]
    found = {part for workload in document["workloads"] for impl in IMPLS for part in workload["parts"][impl]}
    names = [part for part in PARTS if part in found]
    lines.append(f"{'':24}{'':6}" + "".join(f"{name:>15}" for name in names))
    for workload in document["workloads"]:
        title = workload["title"]
        for impl, label in zip(IMPLS, ("C", "Rust")):
            cells = (workload["parts"][impl].get(name) for name in names)
            shown = "".join(f"{'-':>15}" if cost is None else f"{cost:15,.0f}" for cost in cells)
            lines.append(f"{title:24}{label:6}{shown}")
            title = ""
    return "\n".join(lines)


def _slow(workload):
    ratios = {name: figure["ratio"] for name, figure in workload["figures"].items()}
    return [name for name in ("busy", "own") if ratios.get(name) and ratios[name]["value"] > SLOWER]


def _explanation(workload, figure):
    parts = OWN if figure == "own" else PARTS
    lines = [f"{workload['title']}, {FIGURES[figure]}: more than {SLOWER:.2f} of C. The costliest functions:"]
    for impl, label in zip(IMPLS, ("C", "Rust")):
        for entry in [entry for entry in workload["functions"][impl] if entry["part"] in parts][:NAMED]:
            lines.append(f"  {label:6}{entry['cost']:10,.0f}  {entry['part']:14}  {entry['function']}")
    return "\n".join(lines)
