# SPDX-License-Identifier: GPL-2.0
"""The command line of scripts/check."""

import argparse
import os
import signal
import subprocess
import sys
import time

import plan
from results import Results
from scenario import TOP
from schedule import Context, Schedule, slots

FOLDER = TOP / "build/check"
SOAK_MINUTES = 60

DESCRIPTION = """\
Prepares what is missing, builds everything, runs every check and test, and ends with a line
`N passed, N failed, N skipped`. The exit status is 0 if nothing failed."""

EPILOG = """\
Logs of all tasks and summary.json are in build/check/. Names of results look like
  lint/rustfmt   host/proto/window/in_order   base/poll/level   debug/namespaces/rounds   base/interop/rust,c/b/ipv4"""


def main(argv):
    args = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        return _run(args)
    except KeyboardInterrupt:
        print("scripts/check: interrupted", file=sys.stderr)
        return 130


def _parser():
    parser = argparse.ArgumentParser(
        prog="scripts/check",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("mode", nargs="?", choices=("check", "soak"), default="check", help="the usual tests, or their long versions")
    add("--only", metavar="PATTERN", help="run only what has PATTERN in its name (or matches it as a shell pattern)")
    add("--minutes", type=int, default=SOAK_MINUTES, metavar="N", help=f"repeat a soak so long (default {SOAK_MINUTES})")
    add("--jobs", type=int, metavar="N", help="tasks at once, and a light one (default: by processors and memory)")
    add("--list", action="store_true", help="only show what would be run")
    return parser


def _run(args):
    FOLDER.mkdir(parents=True, exist_ok=True)
    summary = FOLDER / ("summary.json" if args.mode == "check" else "soak.json")
    jobs = args.jobs or slots()
    tasks = plan.make(args.mode, args.only, jobs, plan.known_seconds(summary))
    if args.list:
        _show(tasks)
        return 0
    if tasks and subprocess.run([TOP / "scripts/sdk", *_kernels(tasks)], stdout=sys.stderr).returncode:
        print("scripts/check: the SDK could not be prepared, see above", file=sys.stderr)
        return 1
    os.environ |= {"WEFT_MODE": args.mode, "WEFT_SEED": "1", "WEFT_SOURCE": _source()}
    results = Results(args.mode)
    context = Context(results, FOLDER)
    Schedule(tasks, jobs, results, context).run()
    if args.mode == "soak":
        _repeat(args, jobs, results, context)
    return results.finish(summary, _facts(jobs, args.only))


def _source():
    """The kernel source, whose tests a scenario runs."""
    done = subprocess.run([TOP / "scripts/sdk", "--path", "source"], stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def _kernels(tasks):
    """The debug kernel takes long to build and is left out if nothing asks for it."""
    needed = {need for task in tasks for need in task.needs} | {task.name for task in tasks}
    return ["base", "debug"] if "build/debug" in needed else ["base"]


def _repeat(args, jobs, results, context):
    """Runs the scenarios again and again, each time with other random numbers, until the time is over."""
    turn = 1
    while results.elapsed() < args.minutes * 60:
        turn += 1
        os.environ["WEFT_SEED"] = str(turn)
        results.say(f"turn {turn}")
        guests = [task for task in plan.make(args.mode, args.only, jobs, {}) if hasattr(task, "scenarios")]
        if not guests:
            return
        for task in guests:
            task.needs = set()
        Schedule(guests, jobs, results, context).run()


def _show(tasks):
    for task in tasks:
        print(task.name)
        for one in getattr(task, "scenarios", ()):
            print(f"    {one.name}  (at most {one.timeout} s)")


def _facts(jobs, pattern):
    head = subprocess.run(["git", "-C", TOP, "rev-parse", "HEAD"], capture_output=True, text=True)
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "revision": head.stdout.strip() or None,
        "processors": os.cpu_count(),
        "jobs": jobs,
        "only": pattern,
    }
