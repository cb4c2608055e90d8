# SPDX-License-Identifier: GPL-2.0
"""The command line of scripts/bench, and the order of its steps."""

import argparse
import json
import os
import re
import subprocess
import sys

import document
import extras
import measure
import plan
import rds
import rnbd
import rounds
import sdk
import table
from refusal import Refusal
from symbols import Symbols

FOLDER = sdk.TOP / "build/bench"
PLOT = sdk.TOP / "scripts/benchlib/plot.py"
PARTS = {part.name: part for part in (rds.PART, rnbd.PART)}
SAMPLES, FEW = 10, 3
DESCRIPTION = """\
Measures the C and the Rust modules side by side on the base kernel: RDS, and RNBD with nvme-rdma beside it. Prints
instructions per message or request, with the ratio Rust/C. The same goes to build/bench/PART.json, with all samples,
and build/bench/PART.svg.

The status is that of the measurement; a slow ratio is a result like any other."""


def main(argv):
    """Measures; the exit status."""
    args = _parser().parse_args(argv)
    try:
        if not args.no_build:
            _make("modules", "tools")
        for name in [args.part] if args.part else PARTS:
            _bench(PARTS[name], args)
    except Refusal as reason:
        print(f"bench: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser():
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("part", nargs="?", choices=tuple(PARTS), help="what to measure (default: all parts)")
    add("--samples", type=_samples, metavar="N", help=f"samples of each figure (default: {SAMPLES})")
    add("--quick", action="store_true", help=f"a first impression: {FEW} samples")
    add("--seed", type=int, default=1, metavar="N", help="seed of the random order (default: 1)")
    add("--no-profile", action="store_true", help="leave out the modules' own share")
    add("--no-build", action="store_true", help="measure the modules and programs in build/ as they are")
    return parser


def _samples(text):
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _bench(part, args):
    kernel_dir = sdk.prepared("base")
    release = _installed_release(kernel_dir)
    unprofiled = "--no-profile was given" if args.no_profile else _why_not_profiled()
    samples = args.samples or (FEW if args.quick else SAMPLES)
    folder = FOLDER / "work" / part.name
    boots = measure.run(part, plan.guests(part, samples, args.seed, not unprofiled), folder, release)
    found = _read(part, boots, kernel_dir, release)
    about = {"samples": samples, "seed": args.seed, "unprofiled": unprofiled, **_versions(kernel_dir, boots)}
    _deliver(part, {**document.build(part, found, about), **extras.of(part, boots, folder)})


def _make(*targets):
    """Builds what is measured; its output must not get into the table."""
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    command = ["make", "--no-print-directory", "-C", sdk.TOP, *targets]
    if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=env).returncode:
        raise Refusal(f"make {' '.join(targets)} failed")


def _installed_release(kernel_dir):
    found = [path.name for path in (kernel_dir / "mods/lib/modules").iterdir()]
    if len(found) != 1:
        raise Refusal("the base kernel has no installed modules; run scripts/sdk base again")
    return found[0]


def _why_not_profiled():
    command = [sdk.TOP / "scripts/in-root", "sh", "-c", "command -v perf"]
    missing = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
    return "perf is not in the toolchain root" if missing else None


def _read(part, boots, kernel_dir, release):
    print("  reading the profiles", file=sys.stderr)
    found = []
    for boot in boots:
        symbols = Symbols.of_kernel(kernel_dir, boot.machine["text"])
        found += rounds.read(part, boot, symbols, lambda module: module.on_host(kernel_dir, release))
    return found


def _versions(kernel_dir, boots):
    """What the figures depend on."""
    config = (kernel_dir / ".config").read_text()
    texts = (re.search(rf'^CONFIG_{name}_VERSION_TEXT="(.*)"$', config, re.M)[1] for name in ("CC", "RUSTC"))
    compiler, rustc = (re.search(r"(\w+)(?: version)? ([\d.]+)", text) for text in texts)
    qemu = subprocess.run([sdk.QEMU, "--version"], stdout=subprocess.PIPE, text=True).stdout
    return {
        "kernel": boots[0].machine["release"],
        "qemu": re.search(r"version ([\d.]+)", qemu)[1],
        "toolchain": {"c": " ".join(compiler.groups()), "rust": " ".join(rustc.groups())},
    }


def _deliver(part, result):
    """Writes the document, draws the plot, prints the table."""
    written, drawn = (FOLDER / f"{part.name}.{kind}" for kind in ("json", "svg"))
    written.write_text(json.dumps(result, indent=1) + "\n")
    command = [sdk.TOP / "scripts/in-root", "env", f"MPLCONFIGDIR={FOLDER}/work", "python3", PLOT]
    if subprocess.run([*command, written, drawn], stdout=sys.stderr).returncode:
        raise Refusal("the plot could not be drawn")
    print(table.text(part, result), end="")
    names = [path.relative_to(sdk.TOP) for path in (written, drawn)]
    print(f"\n{names[0]} has all samples and the costliest functions, {names[1]} the ratios.\n")
