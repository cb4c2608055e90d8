# SPDX-License-Identifier: GPL-2.0
"""How far samples, and ratios of samples, can be trusted."""

import random
from statistics import median

# How often the samples are drawn anew to see how much the ratio depends on them.
REDRAWS = 4000
INTERVAL = (0.025, 0.975)


def values(samples):
    """Median and range of the samples."""
    return {"median": median(samples), "min": min(samples), "max": max(samples), "samples": list(samples)}


def ratio(above, below, seed):
    """The ratio of two medians; pairs of samples with the same index were taken one after the other.

    `low` and `high` are the 95 % interval of a bootstrap over the pairs, `min` and `max` the range of the ratios of
    the pairs.
    """
    if not all(below):
        return None
    pairs = list(zip(above, below, strict=True))
    each = [one / other for one, other in pairs]
    drawn = sorted(_ratio(_redraw(pairs, source)) for source in [random.Random(seed)] for _ in range(REDRAWS))
    low, high = (drawn[int(edge * (REDRAWS - 1))] for edge in INTERVAL)
    return {"value": _ratio(pairs), "low": low, "high": high, "min": min(each), "max": max(each)}


def _redraw(pairs, source):
    return source.choices(pairs, k=len(pairs))


def _ratio(pairs):
    return median(one for one, _ in pairs) / median(other for _, other in pairs)
