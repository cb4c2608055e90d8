# SPDX-License-Identifier: GPL-2.0
"""What `make bench` prints."""

FIGURES = {"busy": "busy instructions", "own": "of it the modules'", "elapsed": "elapsed guest ns"}
# A ratio is explained if all of its interval is above this.
SLOWER = 1.10
# Functions that an explanation names.
NAMED = 8


def text(part, document):
    """The whole report."""
    parts = [_heading(part, document), _figures(part, document), _legend(part, document)]
    if any(shares for workload in document["workloads"] for shares in workload["parts"].values()):
        parts.append(_parts(part, document))
    if document["savings"]:
        parts.append(_savings(part, document))
    if "work" in document:
        parts.append(_work(part, document["work"]))
    if "memory" in document:
        parts.append(_memory(part, document["memory"]))
    parts += [_explanation(part, workload, figure) for workload in document["workloads"] for figure in _slow(workload)]
    return "\n\n".join(parts) + "\n"


def _width(part):
    """Of the column of titles."""
    return max(len(row.title) for row in part.rows) + 2


def _heading(part, document):
    tools = document["toolchain"]
    return (
        f"{part.heading}\n"
        f"kernel {document['kernel']}, QEMU {document['qemu']} (TCG, -icount shift=0, 1 processor), "
        f"{tools['c']}, {tools['rust']}\n"
        f"{document['samples']} samples of each, in random order (seed {document['seed']})"
    )


def _figures(part, document):
    labels = "".join(f"{label:>10}" for label in part.labels.values())
    ratios = "".join(f"{'Rust/' + part.labels[other]:>11}   {'95 %':14}  {'min .. max':14}" for other in part.against)
    lines = [f"{'':{_width(part)}}{'per ' + part.unit:20}{labels}{ratios}"]
    for workload in document["workloads"]:
        title = workload["title"]
        for name in (name for name in FIGURES if name in workload["figures"]):
            figure = workload["figures"][name]
            shown = "".join(f"{figure[impl]['median']:10,.0f}" for impl in part.labels)
            shown += "".join(_ratio(figure["ratios"][other]) for other in part.against)
            lines.append(f"{title:{_width(part)}}{FIGURES[name]:20}{shown}".rstrip())
            title = ""
    return "\n".join(lines)


def _ratio(ratio):
    if not ratio:
        return f"{'-':>11}   {'':30}"
    ranges = (f"{ratio[low]:.3f} .. {ratio[high]:.3f}" for low, high in (("low", "high"), ("min", "max")))
    return f"{ratio['value']:11.3f}   {'  '.join(f'{limits:14}' for limits in ranges)}"


def _legend(part, document):
    asleep = max(share for workload in document["workloads"] for share in workload["asleep"].values())
    lines = [
        "One instruction of the guest is one nanosecond of its time. With one processor, elapsed is what everything",
        "took: both ends, their programs, the kernel, interrupts; busy is that without sleep, which was at most "
        f"{asleep:.2%} of a sample.",
        "The emulator counts a copied byte as an instruction (rep movsb), so copying weighs more than on hardware.",
    ]
    if "own" in document["workloads"][0]["figures"]:
        lines += part.legend
        lines.append("perf samples them with timers (cpu-clock), since the emulated processor counts no events.")
    else:
        lines += [f"What of it the modules take was not measured: {document['unprofiled']}."]
    return "\n".join(lines)


def _parts(part, document):
    lines = [f"Where the instructions go, per {part.unit}:"]
    found = {name for workload in document["workloads"] for shares in workload["parts"].values() for name in shares}
    names = [name for name in part.parts if name in found]
    lines.append(f"{'':{_width(part)}}{'':6}" + "".join(f"{name:>15}" for name in names))
    for workload in document["workloads"]:
        title = workload["title"]
        for impl, label in part.labels.items():
            cells = (workload["parts"][impl].get(name) for name in names)
            shown = "".join(f"{'-':>15}" if cost is None else f"{cost:15,.0f}" for cost in cells)
            lines.append(f"{title:{_width(part)}}{label:6}{shown}")
            title = ""
    return "\n".join(lines)


def _savings(part, document):
    titles = {workload["name"]: workload["title"] for workload in document["workloads"]}
    lines = [
        f"What is left of the busy instructions per {part.unit} without a copy:",
        f"{'':{_width(part)}}{'':6}{'ratio':>11}   {'95 %':14}  {'min .. max':14}",
    ]
    for saving in document["savings"]:
        title = titles[saving["name"]]
        for impl, label in part.labels.items():
            lines.append(f"{title:{_width(part)}}{label:6}{_ratio(saving['ratios'][impl])}".rstrip())
            title = ""
    return "\n".join(lines)


def _work(part, work):
    columns = ("client sends", "client receives", "server sends", "server receives", "packets")
    lines = [
        f"Work requests that each end posts, and packets on the wire in both directions, per {part.unit}:",
        f"{'':{_width(part)}}{'':10}" + "".join(f"{name:>17}" for name in columns),
    ]
    for name, by_setup in work.items():
        title = next(load.title for load in part.workloads if load.name == name)
        for setup, counts in by_setup.items():
            shown = "".join(f"{counts[name]:17.2f}" if name in counts else f"{'-':>17}" for name in columns)
            lines.append(f"{title:{_width(part)}}{setup:10}{shown}")
            title = ""
    return "\n".join(lines)


def _memory(part, memory):
    lines = ["Memory of the server for an idle session of one path, in a guest of its own with 2 processors:"]
    lines += [f"{'':{_width(part)}}{setup:10}{kib:17,} KiB" for setup, kib in memory.items()]
    return "\n".join(lines)


def _slow(workload):
    ratios = {name: figure["ratios"]["c"] for name, figure in workload["figures"].items()}
    return [name for name in ("busy", "own") if ratios.get(name) and ratios[name]["low"] > SLOWER]


def _explanation(part, workload, figure):
    parts = part.own if figure == "own" else part.parts
    lines = [f"{workload['title']}, {FIGURES[figure]}: more than {SLOWER:.2f} of C. The costliest functions:"]
    for impl in ("c", "rust"):
        for entry in [entry for entry in workload["functions"][impl] if entry["part"] in parts][:NAMED]:
            lines.append(f"  {part.labels[impl]:6}{entry['cost']:10,.0f}  {entry['part']:14}  {entry['function']}")
    return "\n".join(lines)
