# SPDX-License-Identifier: GPL-2.0
"""RNBD as its users see it: modules, soft-RoCE, files in sysfs, devices."""

import contextlib
import errno
import os
import re

import guestlib as g

CLIENT = "/sys/class/rnbd-client/ctl"
SERVER = "/sys/class/rnbd-server/ctl"
MODULES = ("rnbd_client", "rtrs_client", "rnbd_server", "rtrs_server")
ADDRESS = "192.168.77.1"
# A RAM disk for each device that a scenario exports.
RAM_MIB = 64


def set_up_fabric(address=ADDRESS, number=0):
    """A soft-RoCE device on an interface that leads nowhere: both ends are this machine."""
    g.run("modprobe", "rdma_rxe")
    name = f"fabric{number}"
    g.ip(f"link add {name} type dummy", f"address add {address}/24 dev {name}", f"link set {name} up")
    add_adapter(number)


def add_adapter(number=0):
    """The soft-RoCE device on such an interface."""
    g.run("rdma", "link", "add", f"rxe{number}", "type", "rxe", "netdev", f"fabric{number}")


def remove_adapter(number=0):
    g.run("rdma", "link", "delete", f"rxe{number}", timeout=2 * g.SOON)


def set_up_fabric_on(address):
    """A soft-RoCE device on the interface that has this address."""
    interface = g.run("ip", "-o", "-4", "address", "show", "to", address).split()[1]
    g.run("modprobe", "rdma_rxe")
    g.run("rdma", "link", "add", "rxe0", "type", "rxe", "netdev", interface)


def set_up(*server_options, disks=1):
    """The fabric, RAM disks, server and client."""
    set_up_fabric()
    g.run("modprobe", "brd", f"rd_nr={disks}", f"rd_size={RAM_MIB * 1024}")
    g.run("modprobe", "rnbd_server", *server_options)
    g.run("modprobe", "rnbd_client")


def start_server(folder="/dev", **rtrs):
    """Loads the server, which looks for devices in a folder, with parameters of RTRS."""
    g.run("modprobe", "rtrs_server", *(f"{key}={value}" for key, value in rtrs.items()))
    g.run("modprobe", "rnbd_server", f"dev_search_path={folder}")
    for key, value in rtrs.items():
        shown = read(f"/sys/module/rtrs_server/parameters/{key}").strip()
        g.check(shown == str(value), f"{key} is {shown}")


def stop_server():
    g.run("modprobe", "-r", "rnbd_server", "rtrs_server", timeout=2 * g.SOON)


def tear_down():
    """Takes away what the scenario has set up: devices, modules, the fabric, RAM disks."""
    libraries = ("weft_rdma",) if g.RUST else ("rtrs_core",)
    for name in (*MODULES, *libraries):
        if os.path.exists(f"/sys/module/{name}"):
            g.run("modprobe", "-r", name, timeout=2 * g.SOON)
    left = [name for name in (*MODULES, *libraries) if os.path.exists(f"/sys/module/{name}")]
    g.check(not left, f"still loaded: {left}")
    for name in os.listdir("/sys/class/infiniband"):
        g.run("rdma", "link", "delete", name)
    for name in os.listdir("/sys/class/net"):
        if name.startswith("fabric"):
            g.ip(f"link delete {name}")
    # Releases of kobjects that the debug kernel puts off would come too late for the queue of a RAM disk.
    if not g.DEBUG:
        g.run("modprobe", "-r", "brd")


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def write(path, data):
    """Writes in one go, as sysfs wants it; 0 or the error's number."""
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, data if isinstance(data, bytes) else data.encode())
        return 0
    except OSError as error:
        return error.errno
    finally:
        os.close(file)


def try_write(path, data):
    """Like write; also if the file is not there (any more)."""
    try:
        return write(path, data)
    except OSError as error:
        return error.errno


def must_write(path, data):
    code = write(path, data)
    g.check(code == 0, f"writing {data!r} to {path}: {os.strerror(code)}")


def name_of(code):
    return errno.errorcode.get(code, code) if code else "success"


def try_map(line):
    """Writes a line to map_device; 0 or the error's number."""
    return write(f"{CLIENT}/map_device", line)


def mapped():
    """The links of all mapped devices: their names and the disks they lead to."""
    folder = f"{CLIENT}/devices"
    return {name: os.path.basename(os.path.realpath(f"{folder}/{name}")) for name in os.listdir(folder)}


def sessions():
    """The sessions that the client has open."""
    folder = "/sys/class/rtrs-client"
    return os.listdir(folder) if os.path.isdir(folder) else []


class Device:
    """A mapped device."""

    def __init__(self, disk):
        self.disk = disk
        self.node = f"/dev/{disk}"
        self.folder = f"/sys/block/{disk}/rnbd"

    def show(self, name):
        return read(f"{self.folder}/{name}")

    def store(self, name, data):
        return write(f"{self.folder}/{name}", data)

    def queue(self, name):
        return read(f"/sys/block/{self.disk}/queue/{name}").strip()

    @property
    def sectors(self):
        return int(read(f"/sys/block/{self.disk}/size"))

    def unmap(self, how="normal"):
        """Unmaps the device; udev or blkid may have it open for a moment."""
        g.wait_for(lambda: self.store("unmap_device", how) in (0, errno.ENOENT), f"{self.disk} is not unmapped")
        g.check(not os.path.exists(f"/sys/block/{self.disk}"), f"{self.disk} is still there")


def map_device(path="ram0", session="t", address=ADDRESS, **options):
    """Maps a device, over a path to each address, and returns it."""
    before = set(mapped().values())
    addresses = [address] if isinstance(address, str) else address or []
    words = [f"sessname={session}", f"device_path={path}"]
    words += [f"path=ip:{address}" for address in addresses]
    words += [f"{key}={value}" for key, value in options.items()]
    code = try_map(" ".join(words))
    g.check(code == 0, f"map_device: {name_of(code)}")
    return the_device(before)


def the_device(others=()):
    """The one mapped device besides those disks."""
    fresh = set(mapped().values()) - set(others)
    g.check(len(fresh) == 1, f"{len(fresh)} new devices instead of one")
    device = Device(fresh.pop())
    make_node(device.disk)
    return device


def make_node(disk):
    """A device node, where nobody else makes one."""
    if not os.path.exists(f"/dev/{disk}"):
        major, minor = read(f"/sys/block/{disk}/dev").split(":")
        os.mknod(f"/dev/{disk}", 0o600 | 0o060000, os.makedev(int(major), int(minor)))


# Names of disks of null_blk that were made.
_null_disks = set()


@contextlib.contextmanager
def null_disk(name, **settings):
    """A disk of null_blk; its name below /dev.

    It is left where releases of kobjects are put off: that of its queue would come too late.
    """
    g.run("modprobe", "null_blk", "nr_devices=0")
    while name in _null_disks:
        name += "x"
    _null_disks.add(name)
    folder = f"/sys/kernel/config/nullb/{name}"
    os.makedirs(folder)
    try:
        for key, value in settings.items():
            must_write(f"{folder}/{key}", str(value))
        must_write(f"{folder}/power", "1")
        disk = name if os.path.exists(f"/sys/block/{name}") else f"nullb{read(f'{folder}/index').strip()}"
        make_node(disk)
        yield disk
    finally:
        if not g.DEBUG:
            os.rmdir(folder)
            _null_disks.remove(name)


@contextlib.contextmanager
def a_device(*words, **options):
    device = map_device(*words, **options)
    try:
        yield device
    finally:
        if os.path.exists(device.folder):
            device.unmap("force")


def unmap_all():
    for disk in mapped().values():
        Device(disk).unmap("force")


def nothing_is_left():
    """No device, no session, on either side."""
    g.check(not mapped(), f"still mapped: {mapped()}")
    g.wait_for(lambda: not sessions(), f"sessions are left: {sessions()}")
    g.wait_for(lambda: not os.listdir(f"{SERVER}/devices"), "the server still has devices")


def kernel_log():
    return g.run("dmesg")


@contextlib.contextmanager
def logged(pattern, atmost=None):
    """What is done inside leaves a line in the kernel log that matches."""
    before = len(kernel_log().splitlines())
    yield
    lines = kernel_log().splitlines()[before:]
    found = [line for line in lines if re.search(pattern, line)]
    g.check(found, f"nothing in the log like {pattern!r} but {lines[-5:]}")
    g.check(atmost is None or len(found) <= atmost, f"too many lines: {found}")
