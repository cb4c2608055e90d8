# SPDX-License-Identifier: GPL-2.0
"""RDS_INFO snapshots."""

import errno
import struct
from collections import namedtuple

from address import ip4, ip6
from rdssock import Sock

COUNTERS, CONNECTIONS, SEND, RETRANS, RECV, SOCKETS, TCP_SOCKETS = 10000, 10001, 10003, 10004, 10005, 10006, 10007
CONNECTIONS6, SEND6, RETRANS6, RECV6, SOCKETS6, TCP_SOCKETS6 = 10011, 10012, 10013, 10014, 10015, 10016

# Bytes of one record.
SIZES = {
    COUNTERS: 40,
    CONNECTIONS: 42,
    SEND: 26,
    RETRANS: 26,
    RECV: 26,
    SOCKETS: 28,
    TCP_SOCKETS: 41,
    CONNECTIONS6: 65,
    SEND6: 50,
    RETRANS6: 50,
    RECV6: 50,
    SOCKETS6: 52,
    TCP_SOCKETS6: 64,
}

SENDING, CONNECTING, CONNECTED, ERROR = 1, 2, 4, 8

CORE_COUNTERS = """conn_reset recv_drop_bad_checksum recv_drop_old_seq recv_drop_no_sock recv_drop_dead_sock
recv_deliver_raced recv_delivered recv_queued recv_immediate_retry recv_delayed_retry recv_ack_required
recv_rdma_bytes recv_ping send_queue_empty send_queue_full send_lock_contention send_lock_queue_raced
send_immediate_retry send_delayed_retry send_drop_acked send_ack_required send_queued send_rdma send_rdma_bytes
send_pong page_remainder_hit page_remainder_miss copy_to_user copy_from_user cong_update_queued cong_update_received
cong_send_error cong_send_blocked recv_bytes_added_to_sock recv_bytes_freed_fromsock send_stuck_rm
mprds_catchup_tx0_retries""".split()
TCP_COUNTERS = """tcp_data_ready_calls tcp_write_space_calls tcp_sndbuf_full tcp_connect_raced
tcp_listen_closed_stale""".split()
# What C does not have comes last.
DROP_COUNTERS = """drop_unread drop_bad_control_buffer drop_truncated drop_ping_unanswerable drop_cut_off
drop_undelivered drop_closed drop_cancelled drop_conn_destroyed drop_surplus_path drop_control_refused
drop_conn_bad_header drop_conn_not_drained drop_conn_wrong_way drop_conn_not_accepted drop_conn_crowded
drop_conn_parked""".split()

Connection = namedtuple("Connection", "next_tx next_rx local peer transport flags tos")
Message = namedtuple("Message", "seq len local peer lport fport flags tos")
Socket = namedtuple("Socket", "sndbuf bound peer bport pport rcvbuf inode")
TcpSocket = namedtuple("TcpSocket", "local lport peer pport hdr_rem data_rem sent una seen")


def raw(option, sock=None):
    """(size of a record, bytes of the snapshot)."""
    own = sock or Sock()
    size = 0
    while True:
        try:
            each, data, length = own.get(option, size)
            return each, data[:length]
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            size = size * 2 + 4096


def records(option, sock=None):
    """The records of a snapshot as bytes."""
    each, data = raw(option, sock)
    return [data[at : at + each] for at in range(0, len(data), each)]


def counters(sock=None):
    """Counters by name."""
    return {r[:32].rstrip(b"\0").decode(): struct.unpack_from("=Q", r, 32)[0] for r in records(COUNTERS, sock)}


def counter(name, sock=None):
    """One counter."""
    return counters(sock)[name]


def _text(raw_name):
    return raw_name.rstrip(b"\0").decode()


def connections(sock=None, v6=True):
    """Connections; the IPv6 form has no type of service."""
    if v6:
        layout, option = "=QQ16s16s16sB", CONNECTIONS6
        rows = [struct.unpack(layout, r) for r in records(option, sock)]
        return [Connection(a, b, ip6(c), ip6(d), _text(e), f, None) for a, b, c, d, e, f in rows]
    rows = [struct.unpack("=QQ4s4s16sBB", r) for r in records(CONNECTIONS, sock)]
    return [Connection(a, b, ip4(c), ip4(d), _text(e), f, g) for a, b, c, d, e, f, g in rows]


def connection(local, peer, sock=None):
    """The connection between two addresses, or None."""
    return next((c for c in connections(sock) if (c.local, c.peer) == (local, peer)), None)


def messages(option, sock=None):
    """Messages of one of the six lists."""
    v6 = option in (SEND6, RETRANS6, RECV6)
    text = ip6 if v6 else ip4
    found = []
    for record in records(option, sock):
        width = 16 if v6 else 4
        seq, length = struct.unpack_from("=QI", record)
        lport, fport, flags, tos = struct.unpack_from("!HHBB", record, 12 + 2 * width)
        local, peer = record[12 : 12 + width], record[12 + width : 12 + 2 * width]
        found.append(Message(seq, length, text(local), text(peer), lport, fport, flags, tos))
    return found


def sockets(sock=None, v6=True):
    """Sockets."""
    found = []
    for record in records(SOCKETS6 if v6 else SOCKETS, sock):
        width = 16 if v6 else 4
        text = ip6 if v6 else ip4
        (sndbuf,) = struct.unpack_from("=I", record)
        bound, peer = record[4 : 4 + width], record[4 + width : 4 + 2 * width]
        bport, pport = struct.unpack_from("!HH", record, 4 + 2 * width)
        rcvbuf, inode = struct.unpack_from("=IQ", record, 8 + 2 * width)
        found.append(Socket(sndbuf, text(bound), text(peer), bport, pport, rcvbuf, inode))
    return found


def tcp_sockets(sock=None, v6=True):
    """TCP sockets of the transport."""
    found = []
    for record in records(TCP_SOCKETS6 if v6 else TCP_SOCKETS, sock):
        width = 16 if v6 else 4
        text = ip6 if v6 else ip4
        local, peer = record[:width], record[width + 2 : 2 * width + 2]
        (lport,) = struct.unpack_from("!H", record, width)
        (pport,) = struct.unpack_from("!H", record, 2 * width + 2)
        rest = struct.unpack_from("=QQIII", record, 2 * width + 4)
        found.append(TcpSocket(text(local), lport, text(peer), pport, *rest))
    return found
