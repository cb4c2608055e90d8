# SPDX-License-Identifier: GPL-2.0
"""Draws the ratios of a document: plot.py DOCUMENT SVG. Runs inside the toolchain root, which has matplotlib."""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "weft"

from matplotlib import pyplot

# Label, colour, place above or below the middle of the row.
FIGURES = {
    "busy": ("busy instructions", "#1b6ca8", -0.22),
    "elapsed": ("elapsed guest time", "#6aa84f", 0.0),
    "own": ("the modules' own instructions", "#c1631a", 0.22),
}
INCHES = (9, 5.2)


def draw(document, path):
    """The plot: a row for each workload."""
    figure, axes = pyplot.subplots(figsize=INCHES, layout="constrained")
    axes.axvline(1.0, color="black", linewidth=1.2)
    for name, (label, colour, shift) in FIGURES.items():
        points = _points(document, name, shift)
        for at, ratio in points:
            axes.plot((ratio["min"], ratio["max"]), (at, at), color=colour, linewidth=1)
            axes.plot((ratio["low"], ratio["high"]), (at, at), color=colour, linewidth=5, alpha=0.45)
            axes.annotate(f"{ratio['value']:.2f}", (ratio["max"], at), (6, 0), textcoords="offset points",
                          va="center", fontsize=8, color=colour)
        axes.plot([ratio["value"] for _, ratio in points], [at for at, _ in points], "o", color=colour, label=label)
    _dress(axes, document)
    figure.savefig(path, metadata={"Date": None, "Creator": "make bench"})


def _points(document, name, shift):
    rows = enumerate(workload["figures"].get(name, {}).get("ratio") for workload in document["workloads"])
    return [(row + shift, ratio) for row, ratio in rows if ratio]


def _dress(axes, document):
    tools = document["toolchain"]
    axes.set_yticks(range(len(document["workloads"])), [workload["title"] for workload in document["workloads"]])
    axes.invert_yaxis()
    axes.set_xlim(left=0, right=max(1.1, axes.get_xlim()[1] * 1.05))
    axes.set_xlabel("Rust / C per message (less than 1: Rust needs less)\n"
                    "thick: 95 % interval of the ratio, thin: range of the pairs of samples", fontsize=9)
    axes.set_title("RDS over TCP, instructions per message: Rust modules against C modules", fontsize=11, loc="left",
                   pad=24)
    axes.text(0, 1.02, f"kernel {document['kernel']}, QEMU {document['qemu']} TCG icount, 1 processor, "
              f"{tools['c']}, {tools['rust']}, {document['samples']} samples", transform=axes.transAxes, fontsize=8)
    axes.grid(axis="x", linewidth=0.4)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(0, 1), fontsize=8, framealpha=0.9)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), sys.argv[2])
