# SPDX-License-Identifier: GPL-2.0
"""Exit statuses of scripts/vm that do not come from the command in the guest."""

# A kernel reported a fault, or a guest ended before its command did.
KERNEL = 99
# --timeout ran out; the number that timeout(1) uses.
TIMEOUT = 124
# The runner could not start: bad usage, something not built yet, no QEMU.
RUNNER = 125
