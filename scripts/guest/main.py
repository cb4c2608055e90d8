# SPDX-License-Identifier: GPL-2.0
"""Puts a run together: from the options to the guests to the exit status."""

import contextlib
import os
import secrets
import signal
import sys

import initramfs
import kvm
import modules
import options
import sdk
import shares
import status
import verdict
from guest import Guest
from job import Job
from qemu import Machine
from refusal import Refusal
from report import Console
from run import Interrupted, Pair, Single, catch_signals, drive


def main(argv):
    """Returns the exit status; a signal ends the process the way the signal would have."""
    catch_signals()
    try:
        return _run(options.parse(argv))
    except Refusal as refusal:
        sys.stderr.write(f"scripts/vm: {refusal}\n")
        return status.RUNNER
    except Interrupted as interrupted:
        return _end_by(interrupted.number)
    except BrokenPipeError:
        return _end_by(signal.SIGPIPE)


def _end_by(number):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number


def _run(opts):
    sdk.need_qemu()
    root, kernel_dir = sdk.prepared("root"), sdk.prepared(opts.kernel)
    accel = "icount" if opts.icount else kvm.accelerator()
    with contextlib.ExitStack() as files:
        guests = [_guest(opts, index, root, kernel_dir, accel, files) for index in range(len(opts.commands))]
        course = Pair(*guests) if len(guests) == 2 else Single(*guests)
        in_time = drive(course, opts.timeout)
    return verdict.judge(course, in_time, opts.timeout)


def _guest(opts, index, root, kernel_dir, accel, files):
    name, impl = opts.names[index], opts.impls[index]
    tree, refused = modules.tree(opts.kernel, kernel_dir, impl)
    folders = shares.plan(str(sdk.TOP), str(sdk.cache()), opts.shares)
    here = os.getcwd()
    job = Job(
        name=name,
        kernel=opts.kernel,
        impl=impl,
        token=secrets.token_hex(16),
        command=opts.commands[index],
        directory=here if shares.visible(here, folders) else "/",
        project=str(sdk.TOP),
        modules=str(tree),
        refused=refused,
        shares=folders,
    )
    machine = Machine(
        kernel=opts.kernel,
        kernel_dir=kernel_dir,
        root=root,
        initramfs=initramfs.path(root),
        accel=accel,
        cpus=opts.cpus,
        mem=opts.mem,
        shares=folders,
        mac=f"52:54:00:09:00:{index + 1:02x}" if name else None,
        parameters=opts.append,
    )
    return Guest(name, machine, job, Console(_log(opts.log, name, files)))


def _log(path, name, files):
    if not path:
        return None
    path = f"{path}.{name}" if name else path
    try:
        return files.enter_context(open(path, "wb"))
    except OSError as error:
        raise Refusal(f"cannot write the log: {error}") from error
