# SPDX-License-Identifier: GPL-2.0
"""The command line of scripts/vm."""

import argparse
import os
from dataclasses import dataclass

import status
from refusal import Refusal

KERNELS = ("base", "debug")
IMPLS = ("rust", "c")
# Guest memory in MiB; the sanitizers of the debug kernel need about twice as much.
MEMORY = {"base": 1024, "debug": 2048}

DESCRIPTION = """\
Boots a fresh guest, runs CMD in it as root, streams its output and returns its exit status.
`modprobe` in the guest finds the Rust modules of this checkout (or the C modules of the kernel).
The project and every --share are visible at their own paths, and CMD starts in the current directory."""

EPILOG = f"""\
With --pair two guests share one private link: A runs CMD_A, B runs CMD_B, and the run ends when B ends.
$WEFT_ADDR and $WEFT_ADDR6 are a guest's own addresses, $WEFT_PEER and $WEFT_PEER6 those of the other.

Exit status: that of CMD (of CMD_B with --pair, or of CMD_A if it fails first), or
  {status.KERNEL}   a kernel reported a fault (the report is printed), or a guest ended before its command
  {status.TIMEOUT}  --timeout ran out
  {status.RUNNER}  the runner could not start a guest

In the guest: WEFT_IMPL, WEFT_KERNEL and the WEFT_* variables of the caller are set; `weft-leakcheck` looks for
leaked kernel memory (it also runs after CMD on the debug kernel, unless WEFT_NO_LEAKCHECK=1); with --pair,
`weft-ready` says that a side is ready and `weft-await` waits until the other side said so."""


@dataclass(frozen=True)
class Options:
    """What the caller asked for; one implementation and one command per guest."""

    kernel: str
    impls: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    cpus: int
    mem: int
    append: tuple[str, ...]
    icount: bool
    timeout: float
    shares: tuple[str, ...]
    log: str | None

    @property
    def names(self):
        """Names of the guests: A and B, or a single one without a name."""
        return ("A", "B") if len(self.commands) == 2 else ("",)


def parse(argv):
    """Turns the arguments into Options, or raises Refusal."""
    split = argv.index("--") if "--" in argv else len(argv)
    args = _parser().parse_args(argv[:split])
    commands = _commands(argv[split + 1 :], args.pair)
    shares = tuple(os.path.realpath(share) for share in args.share)
    for share in shares:
        if not os.path.isdir(share) or share == "/":
            raise Refusal(f"--share needs a folder other than /, and {share} is none")
    return Options(
        kernel=args.kernel,
        impls=_impls(args.impl, len(commands)),
        commands=commands,
        cpus=args.cpus,
        mem=args.mem or MEMORY[args.kernel],
        append=tuple(args.append.split()),
        icount=args.icount,
        timeout=args.timeout,
        shares=shares,
        log=args.log,
    )


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refusal(f"{message}; see scripts/vm --help")


def _positive(kind):
    def convert(text):
        number = kind(text)
        if number <= 0:
            raise ValueError(text)
        return number

    convert.__name__ = f"positive {kind.__name__}"
    return convert


def _parser():
    parser = _Parser(
        prog="scripts/vm",
        usage="scripts/vm [options] -- CMD...\n       scripts/vm --pair --impl A,B [options] -- CMD_A... -- CMD_B...",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--kernel", choices=KERNELS, default="base", help="kernel to boot (default: base)")
    add("--impl", default="rust", metavar="rust|c", help="modules that modprobe finds (default: rust); A,B with --pair")
    add("--pair", action="store_true", help="two guests on one private link")
    add("--cpus", type=_positive(int), default=2, metavar="N", help="processors of a guest (default: 2)")
    add("--mem", type=_positive(int), metavar="M", help="memory of a guest in MiB (default: 1024, debug: 2048)")
    add("--append", default="", metavar="WORDS", help="more parameters for the kernel")
    add("--icount", action="store_true", help="one instruction is one nanosecond: reproducible, slower")
    add("--timeout", type=_positive(float), default=600.0, metavar="S", help="seconds for the run (default: 600)")
    add("--share", action="append", default=[], metavar="DIR", help="show a host folder at the same path, writable")
    add("--log", metavar="FILE", help="save the kernel console (FILE.A and FILE.B with --pair)")
    return parser


def _commands(words, pair):
    if not pair:
        if not words:
            raise Refusal("no command: put it after a lone --; see scripts/vm --help")
        return (tuple(words),)
    split = words.index("--") if "--" in words else len(words)
    first, second = tuple(words[:split]), tuple(words[split + 1 :])
    if not first or not second:
        raise Refusal("--pair needs two commands: -- CMD_A... -- CMD_B...")
    return first, second


def _impls(text, guests):
    names = tuple(text.split(","))
    if len(names) == 1:
        names *= guests
    if len(names) != guests or not set(names) <= set(IMPLS):
        raise Refusal(f"--impl {text}: give rust or c, and with --pair two of them as A,B")
    return names
