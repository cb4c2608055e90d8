# SPDX-License-Identifier: GPL-2.0
"""The ways in which the paths of a session are lost and found again; there are two, each on an interface of its own."""

import guestlib as g
import rnbd
from paths import bring_back, disconnect, is_up, paths


class Disconnect:
    """An administrator takes paths down."""

    @staticmethod
    def lose(numbers):
        for number in numbers:
            disconnect(paths()[number])

    @staticmethod
    def find(numbers):
        bring_back()


def come_back():
    """With a new RDMA device paths come back by themselves."""
    g.wait_for(lambda: all(map(is_up, paths())), "the paths do not come back by themselves")


class InterfaceDown:
    """Nothing gets through any more, and nobody says goodbye.

    A soft-RoCE device that was used without its interface does not connect any more when it is back, nor with the C
    modules; so there is a new one then.
    """

    @staticmethod
    def lose(numbers):
        for number in numbers:
            g.ip(f"link set fabric{number} down")

    @staticmethod
    def find(numbers):
        for number in numbers:
            rnbd.remove_adapter(number)
            g.ip(f"link set fabric{number} up")
            rnbd.add_adapter(number)
        come_back()


class AdapterDeleted:
    """The RDMA device goes, for the client and for the server; when it comes back, so do the paths, by themselves."""

    @staticmethod
    def lose(numbers):
        for number in numbers:
            rnbd.remove_adapter(number)

    @staticmethod
    def find(numbers):
        for number in numbers:
            rnbd.add_adapter(number)
        come_back()


class ServerUnloaded:
    """The server's modules go: all paths at a time."""

    @staticmethod
    def lose(numbers):
        rnbd.stop_server()

    @staticmethod
    def find(numbers):
        rnbd.start_server()
        bring_back()


BOTH = (0, 1)
WAYS = {
    "disconnect": Disconnect,
    "interface-down": InterfaceDown,
    "adapter-deleted": AdapterDeleted,
    "server-unloaded": ServerUnloaded,
}
