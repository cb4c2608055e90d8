# SPDX-License-Identifier: GPL-2.0
"""The network of the socket scenario: this namespace and `peer`, joined by one link; `twin` has the same
addresses as this one.

This namespace owns two addresses of each family, so that messages between own addresses can be tried, too. `NOBODY` is
an address on the link that no machine has.
"""

import lab
from rdssock import Sock

A, A2, B, NOBODY = "10.7.0.1", "10.7.0.3", "10.7.0.2", "10.7.0.99"
# Own addresses that only receive.
SINK, SINK_LOOP = "10.7.0.5", "127.0.0.12"
A6, A62, B6, NOBODY6 = "fd07::1", "fd07::3", "fd07::2", "fd07::99"
LINK_A, LINK_B = "fe80::7:1", "fe80::7:2"
PEER, TWIN = "peer", "twin"


def up():
    """Makes it."""
    lab.ip(f"""
        link set lo up
        netns add {PEER}
        netns add {TWIN}
        link add r0 type veth peer name r1 netns {PEER}
        link set r0 addrgenmode none
        addr add {A}/24 dev r0
        addr add {A2}/24 dev r0
        addr add {SINK}/24 dev r0
        addr add {A6}/64 dev r0 nodad
        addr add {A62}/64 dev r0 nodad
        addr add {LINK_A}/64 dev r0 nodad
        link set r0 up
    """)
    with lab.inside(PEER):
        lab.ip(f"""
            link set lo up
            link set r1 addrgenmode none
            addr add {B}/24 dev r1
            addr add {B6}/64 dev r1 nodad
            addr add {LINK_B}/64 dev r1 nodad
            link set r1 up
        """)
    with lab.inside(TWIN):
        lab.ip(f"""
            link set lo up
            link add d0 type dummy
            addr add {A}/24 dev d0
            addr add {A6}/64 dev d0 nodad
            link set d0 up
        """)


def down():
    """Takes it away."""
    lab.ip(f"""
        netns del {PEER}
        netns del {TWIN}
    """)


def scope():
    """The interface index that link-local addresses of this side need."""
    return lab.interface("r0")


def here(address=A, port=0, scope_id=0):
    """A socket of this side."""
    return Sock.at(address, port, scope_id)


def there(address=B, port=0):
    """A socket of the other side."""
    with lab.inside(PEER):
        scope_id = lab.interface("r1") if address == LINK_B else 0
        return Sock.at(address, port, scope_id)


def pair(v6=False):
    """A socket here and one over there."""
    return (here(A6), there(B6)) if v6 else (here(A), there(B))
