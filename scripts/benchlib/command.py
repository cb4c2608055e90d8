# SPDX-License-Identifier: GPL-2.0
"""The command line of scripts/bench, and the order of its steps."""

import argparse
import json
import os
import re
import subprocess
import sys

import document
import measure
import plan
import rounds
import sdk
import table
from refusal import Refusal
from symbols import Symbols

FOLDER = sdk.TOP / "build/bench"
PLOT = sdk.TOP / "scripts/benchlib/plot.py"
SAMPLES, FEW = 10, 3
DESCRIPTION = """\
Measures the C and the Rust modules side by side on the base kernel and prints instructions per message, with the
ratio Rust/C. The same goes to build/bench/rds.json, with all samples, and build/bench/rds.svg.

The status is that of the measurement; a slow ratio is a result like any other."""


def main(argv):
    """Measures; the exit status."""
    args = _parser().parse_args(argv)
    try:
        _bench(args)
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


def _bench(args):
    if not args.no_build:
        _make("modules", "tools")
    kernel_dir = sdk.prepared("base")
    release = _installed_release(kernel_dir)
    unprofiled = "--no-profile was given" if args.no_profile else _why_not_profiled()
    samples = args.samples or (FEW if args.quick else SAMPLES)
    boots = measure.run(plan.guests(samples, args.seed, not unprofiled), FOLDER / "work", release)
    found = _read(boots, kernel_dir, release)
    about = {"samples": samples, "seed": args.seed, "unprofiled": unprofiled, **_versions(kernel_dir, boots)}
    _deliver(document.build(found, about))


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


def _read(boots, kernel_dir, release):
    folders = {
        "c": kernel_dir / "mods/lib/modules" / release / plan.MODULE_FOLDER["c"],
        "rust": sdk.TOP / "build/modules/base",
    }
    print("  reading the profiles", file=sys.stderr)
    found = []
    for boot in boots:
        symbols = Symbols.of_kernel(kernel_dir, boot.machine["text"])
        found += rounds.read(boot, symbols, folders)
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


def _deliver(result):
    """Writes the document, draws the plot, prints the table."""
    (FOLDER / "rds.json").write_text(json.dumps(result, indent=1) + "\n")
    command = [sdk.TOP / "scripts/in-root", "env", f"MPLCONFIGDIR={FOLDER}/work", "python3", PLOT]
    if subprocess.run([*command, FOLDER / "rds.json", FOLDER / "rds.svg"], stdout=sys.stderr).returncode:
        raise Refusal("the plot could not be drawn")
    print(table.text(result), end="")
    print("\nbuild/bench/rds.json has all samples and the costliest functions, build/bench/rds.svg the ratios.")
