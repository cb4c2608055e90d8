# SPDX-License-Identifier: GPL-2.0
"""Soft-RoCE, and remote disks over it: by RNBD, and by nvme-rdma and nvmet."""

import contextlib
import os
from pathlib import Path

import benchguest as g

ADDRESS = "192.168.77.1"
RNBD = Path("/sys/class/rnbd-client/ctl")
NVMET = Path("/sys/kernel/config/nvmet")
PORT = 4420


def set_up():
    """A soft-RoCE device on an interface that leads nowhere: both ends are this machine."""
    g.run("modprobe", "rdma_rxe")
    lines = f"link add fabric0 type dummy\naddress add {ADDRESS}/24 dev fabric0\nlink set fabric0 up\n"
    g.run("ip", "-batch", "-", input=lines)
    g.run("rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "fabric0")


def map_rnbd(device, address=ADDRESS, session="bench", mode="rw"):
    """Maps a device of the server; the name of the disk."""
    line = f"sessname={session} path=ip:{address} device_path={os.path.basename(device)} access_mode={mode}"
    g.write(RNBD / "map_device", line)
    links = (RNBD / "devices").iterdir()
    return next(link.resolve().name for link in links if link.name.endswith(f"@{session}"))


@contextlib.contextmanager
def rnbd(device):
    """A disk that RNBD has mapped."""
    disk = map_rnbd(device)
    yield disk
    g.write(f"/sys/block/{disk}/rnbd/unmap_device", "force")
    g.wait_for(lambda: not Path("/sys/block", disk).exists(), f"{disk} stays")


def serve_nvme(device, address=ADDRESS):
    """Lets nvmet offer a device."""
    if not NVMET.is_dir():
        g.run("mount", "-t", "configfs", "configfs", "/sys/kernel/config")
    subsystem, port = NVMET / "subsystems/bench", NVMET / "ports/1"
    for folder in (subsystem, subsystem / "namespaces/1", port):
        folder.mkdir()
    g.write(subsystem / "attr_allow_any_host", "1")
    g.write(subsystem / "namespaces/1/device_path", device)
    g.write(subsystem / "namespaces/1/enable", "1")
    for name, value in (("trtype", "rdma"), ("adrfam", "ipv4"), ("traddr", address), ("trsvcid", str(PORT))):
        g.write(port / f"addr_{name}", value)
    (port / "subsystems/bench").symlink_to(subsystem)


def stop_nvme():
    """Undoes `serve_nvme`."""
    (NVMET / "ports/1/subsystems/bench").unlink()
    for name in ("ports/1", "subsystems/bench/namespaces/1", "subsystems/bench"):
        (NVMET / name).rmdir()


def connect_nvme(address=ADDRESS, number=1):
    """Connects to what nvmet offers; the controller. More than one is possible, by numbers."""
    before = controllers()
    host = f"nqn.2014-08.org.nvmexpress:uuid:00000000-0000-0000-0000-{number:012}"
    line = f"transport=rdma,traddr={address},trsvcid={PORT},nqn=bench,hostnqn={host},hostid={host[-36:]}"
    g.write("/dev/nvme-fabrics", line)
    (controller,) = controllers() - before
    return controller


def controllers():
    """All nvme controllers."""
    folder = Path("/sys/class/nvme")
    return set(folder.iterdir()) if folder.is_dir() else set()


@contextlib.contextmanager
def nvme(device):
    """A disk that nvme-rdma has connected."""
    serve_nvme(device)
    controller = connect_nvme()
    disk = f"{controller.name}n1"
    g.wait_for(lambda: Path("/sys/block", disk).exists(), f"{disk} does not come")
    yield disk
    g.write(controller / "delete_controller", "1")
    stop_nvme()
