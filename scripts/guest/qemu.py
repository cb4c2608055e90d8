# SPDX-License-Identifier: GPL-2.0
"""The QEMU command line of a guest, and the process."""

import ctypes
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import sdk
import tsc
from shares import Share

# The ports of a guest, in the order of their numbers; init opens them by these numbers.
PORTS = ("control", "stdout", "stderr")
CONSOLE = "console"

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


@dataclass(frozen=True)
class Machine:
    """The hardware of a guest and the kernel that runs on it."""

    kernel: str
    kernel_dir: Path
    root: Path
    initramfs: Path
    accel: str
    cpus: int
    mem: int
    shares: tuple[Share, ...]
    mac: str | None = None
    parameters: tuple[str, ...] = ()

    def command(self, fds):
        """The command line; `fds` has a file number for each port, the console and, in a pair, the link."""
        devices = [
            *_character(CONSOLE, fds[CONSOLE], "isa-serial"),
            *("-device", f"virtio-serial-pci,id=ports,max_ports={len(PORTS) + 1}"),
        ]
        for number, port in enumerate(PORTS, 1):
            devices += _character(port, fds[port], f"virtserialport,bus=ports.0,nr={number},name=weft.{port}")
        devices += _folder(Share("root", str(self.root), False))
        for share in self.shares:
            devices += _folder(share)
        if self.mac:
            devices += ["-netdev", f"stream,id=link,server=off,addr.type=fd,addr.str={fds['link']}"]
            devices += ["-device", f"virtio-net-pci,netdev=link,mac={self.mac},romfile="]
        append = " ".join([*kernel_words(self.kernel, self.accel, self.cpus), *self.parameters])
        base = base_command(self.accel, self.cpus, self.mem, self.kernel_dir, append)
        return [*base, "-initrd", str(self.initramfs), *devices]


# Without five-level page tables: while the kernel identifies the processor it forgets for a moment that it uses them,
# and an interrupt just then makes KASAN see wild memory accesses. The emulator takes a string instruction one byte at a
# time, and a wide vector by calling out for each instruction: without them copies and hashes are two to three times faster.
ACCELERATORS = {
    "kvm": ("-accel", "kvm", "-cpu", "host,la57=off"),
    "tcg": ("-accel", "tcg,thread=multi", "-cpu", "max,la57=off,erms=off,avx=off,avx2=off"),
    "icount": ("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", "max,la57=off"),
}


def kernel_words(kernel, accel, cpus):
    """Kernel parameters. A fault ends a guest, which would else wait for the time limit, once its output has left it."""
    words = ["console=ttyS0", "loglevel=5", "printk.devkmsg=on", "printk.time=1", "panic=1", "oops=panic"]
    # A busy machine delays the ticks that these checks of the timers count.
    words += ["no_timer_check", "tsc=reliable"]
    # Nor does it always give a guest's processor time within 21 seconds.
    words.append("rcupdate.rcu_cpu_stall_timeout=60")
    if accel == "tcg" and (khz := tsc.khz()):
        words.append(f"tsc_early_khz={khz}")
    if accel == "icount" and cpus == 1:
        # To calibrate the local timer by counting instructions takes half a minute, and one processor needs only one.
        words.append("noapictimer")
    if kernel == "debug":
        # With any slab check on, the allocator keeps no lists of recent objects, in which kmemleak would find leaked ones.
        words += ["panic_on_warn=1", "slab_debug=Z"]
    return words


def base_command(accel, cpus, mem, kernel_dir, append):
    """A bare machine: only q35 works, on `pc` the debug kernel gets no virtio interrupt."""
    return [
        *(sdk.QEMU, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "q35,smbus=off,sata=off,vmport=off"),
        *ACCELERATORS[accel],
        *("-smp", str(cpus), "-m", str(mem)),
        *("-kernel", str(kernel_dir / "arch/x86/boot/bzImage"), "-append", append),
    ]


def _character(name, fd, device):
    return ["-chardev", f"socket,id={name},fd={fd}", "-device", f"{device},chardev={name}"]


def _folder(share):
    path = share.path.replace(",", ",,")
    readonly = "off" if share.writable else "on"
    return [
        *("-fsdev", f"local,id={share.tag},path={path},security_model=none,multidevs=remap,readonly={readonly}"),
        *("-device", f"virtio-9p-pci,fsdev={share.tag},mount_tag={share.tag}"),
    ]


def start(command, fds, stdout, stderr):
    """Starts QEMU so that neither a terminal signal reaches it nor the end of this process leaves it behind."""
    parent = os.getpid()

    def die_with_parent():
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        pass_fds=fds,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )


def kill(process):
    """Ends QEMU and what it may have started; harmless if it has ended."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
