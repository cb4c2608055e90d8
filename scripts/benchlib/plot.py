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
# Width; height of a row and of what is around the rows.
INCHES = (9, 0.74, 1.5)
# Behind a number, so that no line crosses it.
LABEL = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
# What the Rust modules are compared with.
OTHERS = {"c": "C", "nvme": "nvme-rdma"}


def draw(document, path):
    """The plot: beside each other what Rust is compared with, with a row for each workload."""
    others = list(document["workloads"][0]["figures"]["busy"]["ratios"])
    width, row, around = INCHES
    size = (width * (0.3 + 0.7 * len(others)), row * len(document["workloads"]) + around)
    figure, all_axes = pyplot.subplots(1, len(others), figsize=size, layout="constrained", sharey=True, squeeze=False)
    for axes, other in zip(all_axes[0], others):
        _compare(axes, document, other)
        _dress(axes, document, other)
    _name(all_axes[0][0], document)
    figure.savefig(path, metadata={"Date": None, "Creator": "make bench"})


def _compare(axes, document, other):
    axes.axvline(1.0, color="black", linewidth=1.2)
    for name, (label, colour, shift) in FIGURES.items():
        points = _points(document, name, other, shift)
        for at, ratio in points:
            axes.plot((ratio["min"], ratio["max"]), (at, at), color=colour, linewidth=1)
            axes.plot((ratio["low"], ratio["high"]), (at, at), color=colour, linewidth=5, alpha=0.45)
            axes.annotate(f"{ratio['value']:.2f}", (ratio["max"], at), (6, 0), textcoords="offset points",
                          va="center", fontsize=8, color=colour, bbox=LABEL)
        axes.plot([ratio["value"] for _, ratio in points], [at for at, _ in points], "o", color=colour, label=label)


def _points(document, name, other, shift):
    found = (workload["figures"].get(name, {}).get("ratios", {}).get(other) for workload in document["workloads"])
    return [(row + shift, ratio) for row, ratio in enumerate(found) if ratio]


def _name(axes, document):
    """The title of the whole, and the names of the rows, which all axes share."""
    tools = document["toolchain"]
    axes.set_yticks(range(len(document["workloads"])), [workload["title"] for workload in document["workloads"]])
    # From top to bottom, below room for the legend.
    axes.set_ylim(len(document["workloads"]) - 0.5, -1.2)
    axes.set_title(document["title"], fontsize=11, loc="left", pad=24)
    # Its distance is in points, as the title's, since the height of the axes depends on the number of rows.
    axes.annotate(f"kernel {document['kernel']}, QEMU {document['qemu']} TCG icount, 1 processor, "
                  f"{tools['c']}, {tools['rust']}, {document['samples']} samples",
                  (0, 1), (0, 8), xycoords="axes fraction", textcoords="offset points", fontsize=8)


def _dress(axes, document, other):
    axes.set_xlim(left=0, right=max(1.1, axes.get_xlim()[1] * 1.05))
    axes.set_xlabel(f"Rust / {OTHERS[other]} (less than 1: Rust needs less)\n"
                    "thick: 95 % interval of the ratio, thin: range of the pairs of samples", fontsize=9)
    axes.grid(axis="x", linewidth=0.4)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(0, 1), fontsize=8, framealpha=0.9)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), sys.argv[2])
