# SPDX-License-Identifier: GPL-2.0
"""The one way the runner says that it cannot do what it was asked."""


class Refusal(Exception):
    """One sentence for a person: what is wrong and what to do about it."""
