// SPDX-License-Identifier: GPL-2.0

//! Sizes of queues, from what one request takes.
//!
//! [`Needs`] is the one table of work requests and messages per request; everything else follows from it, from the
//! number of requests that can be under way, and from what the device can do. A device that cannot do enough is no
//! error: who finds the send queue full waits, and who sends to a peer without a receive tries again.
//!
//! C counterpart: `create_con_cq_qp()` in `rtrs-clt.c`, `create_con()` in `rtrs-srv.c`.

use super::cid::Use;

/// Requests that can be under way on connection 0 (`SERVICE_CON_QUEUE_DEPTH`).
pub const ADMIN_DEPTH: u16 = 512;

/// Work requests that are there for other things than requests: a heartbeat, its answer, and the end of a queue.
const SPARE: u32 = 3;

/// Receives that are posted again together, at most.
const MOST_BATCH: u32 = 16;

/// What one request takes on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Work requests in the send queue.
    pub send: u32,
    /// Messages from the peer.
    pub recv: u32,
    /// Receives more than the requests take, for those that wait for others to be posted again.
    pub slack: u32,
    /// Pieces of memory in one send.
    pub sge: u32,
}

impl Needs {
    /// A request of the client.
    ///
    /// It registers its memory, writes the request and invalidates the memory; the answer is an invalidation and an
    /// immediate. Data, message and header are up to two pieces.
    pub const CLIENT: Self = Self {
        send: 3,
        recv: 2,
        // Few requests are invalidated by the server.
        slack: 0,
        sge: 2,
    };

    /// An answer of a server that invalidates.
    ///
    /// The server invalidates the chunk before it looks at it; then it writes the data, invalidates the client's memory,
    /// registers the chunk again and sends its new key.
    pub const SERVER_INVALIDATING: Self = Self {
        send: 5,
        recv: 1,
        slack: MOST_BATCH,
        sge: 1,
    };

    /// An answer of a server that does not: data, invalidation, immediate.
    pub const SERVER: Self = Self {
        send: 3,
        recv: 1,
        slack: MOST_BATCH,
        sge: 1,
    };
}

/// Sizes of the queues of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSizes {
    /// Work requests in the send queue.
    pub max_send_wr: u32,
    /// Receives in the receive queue.
    pub max_recv_wr: u32,
    /// Receives to be kept posted, fewer than `max_recv_wr`.
    pub receives: u32,
    /// Pieces of memory in one send.
    pub max_send_sge: u32,
}

impl QueueSizes {
    /// Sizes for a connection on a device whose queues have at most `max_qp_wr` entries.
    ///
    /// `queue_depth` is the number of chunks. The info exchange takes one send and one receive of connection 0, before
    /// there can be any request.
    pub fn new(needs: Needs, connection: Use, queue_depth: u16, max_qp_wr: u32) -> Self {
        let depth = u32::from(match connection {
            Use::Admin => queue_depth.min(ADMIN_DEPTH),
            Use::Io | Use::Polled => queue_depth,
        });
        let limit = max_qp_wr.max(SPARE.saturating_add(1));
        let max_send_wr = depth
            .saturating_mul(needs.send)
            .saturating_add(SPARE)
            .min(limit);
        let max_recv_wr = depth
            .saturating_mul(needs.recv)
            .saturating_add(needs.slack)
            .saturating_add(SPARE)
            .min(limit);
        Self {
            max_send_wr,
            max_recv_wr,
            // The drain takes one; heartbeats and their answers use the other two.
            receives: max_recv_wr.saturating_sub(1),
            max_send_sge: needs.sge,
        }
    }

    /// Receives that are posted again together: a few of those that there are.
    pub fn batch(&self) -> u32 {
        (self.receives / 4).clamp(1, MOST_BATCH)
    }

    /// Entries of the completion queue.
    pub fn completions(&self) -> u32 {
        self.max_send_wr.saturating_add(self.max_recv_wr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_all_requests() {
        for needs in [Needs::CLIENT, Needs::SERVER, Needs::SERVER_INVALIDATING] {
            for depth in [1, 2, 512, 65535] {
                let sizes = QueueSizes::new(needs, Use::Io, depth, u32::MAX);
                assert!(sizes.max_send_wr > u32::from(depth) * needs.send);
                assert!(sizes.receives > u32::from(depth) * needs.recv);
                assert!(sizes.max_recv_wr > sizes.receives);
                let missing = sizes.batch() - 1;
                assert!(sizes.receives - missing >= u32::from(depth) * needs.recv.min(1));
            }
        }
    }

    #[test]
    fn defaults() {
        let client = QueueSizes::new(Needs::CLIENT, Use::Io, 512, 32768);
        assert_eq!(
            (client.max_send_wr, client.max_recv_wr, client.receives),
            (1539, 1027, 1026)
        );
        assert_eq!(client.completions(), 2566);
        let server = QueueSizes::new(Needs::SERVER_INVALIDATING, Use::Io, 512, 32768);
        assert_eq!((server.max_send_wr, server.max_recv_wr), (2563, 531));
        assert_eq!(server.batch(), 16);
        let admin = QueueSizes::new(Needs::SERVER, Use::Admin, 4096, 32768);
        assert_eq!((admin.max_send_wr, admin.max_recv_wr), (1539, 531));
    }

    #[test]
    fn small_devices() {
        for limit in [0, 1, 4, 100] {
            let sizes = QueueSizes::new(Needs::CLIENT, Use::Polled, 512, limit);
            assert_eq!(sizes.max_send_wr, limit.max(4));
            assert_eq!(sizes.receives, limit.max(4) - 1);
            assert!((1..=sizes.receives).contains(&sizes.batch()));
        }
    }
}
