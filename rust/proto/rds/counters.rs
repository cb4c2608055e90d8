// SPDX-License-Identifier: GPL-2.0

//! Names of the event counters, in the order `RDS_INFO_COUNTERS` lists them.
//!
//! The numbers themselves live with the caller, one array per processor, indexed by the enums.
//!
//! C counterpart: `struct rds_statistics` and `rds_stat_names` in `net/rds/stats.c`,
//! `net/rds/tcp_stats.c`.

/// Defines an enum of counters together with the table of their names, so that neither can be
/// changed without the other.
///
/// ```text
/// counters! {
///     /// Counters of a kettle.
///     pub enum Kettle {
///         /// Times it boiled.
///         Boiled = "boiled",
///     }
/// }
/// ```
macro_rules! counters {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// Number of counters.
            pub const COUNT: usize = Self::NAMES.len();

            /// Names of the counters, in order; none is longer than 31 bytes.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// The counters, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Name of the counter.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    };
}

counters! {
    /// Counters of the core.
    pub enum Core {
        /// Paths dropped.
        ConnReset = "conn_reset",
        /// Messages dropped for a wrong header checksum.
        RecvDropBadChecksum = "recv_drop_bad_checksum",
        /// Duplicates dropped.
        RecvDropOldSeq = "recv_drop_old_seq",
        /// Messages dropped because nobody is bound to the port.
        RecvDropNoSock = "recv_drop_no_sock",
        /// Messages dropped because the socket is closing.
        RecvDropDeadSock = "recv_drop_dead_sock",
        /// Times another reader took the message first.
        RecvDeliverRaced = "recv_deliver_raced",
        /// Messages handed to user programs.
        RecvDelivered = "recv_delivered",
        /// Messages queued on sockets.
        RecvQueued = "recv_queued",
        /// Receive worker restarted at once.
        RecvImmediateRetry = "recv_immediate_retry",
        /// Receive worker restarted after a delay.
        RecvDelayedRetry = "recv_delayed_retry",
        /// Received messages that asked for an acknowledgement.
        RecvAckRequired = "recv_ack_required",
        /// Bytes peers moved by RDMA.
        RecvRdmaBytes = "recv_rdma_bytes",
        /// Pings received.
        RecvPing = "recv_ping",
        /// Times the send queue ran empty.
        SendQueueEmpty = "send_queue_empty",
        /// Times a sender found its queue full.
        SendQueueFull = "send_queue_full",
        /// Times the transmit lock was taken already.
        SendLockContention = "send_lock_contention",
        /// Times new messages appeared while the transmit lock was let go.
        SendLockQueueRaced = "send_lock_queue_raced",
        /// Send worker restarted at once.
        SendImmediateRetry = "send_immediate_retry",
        /// Send worker restarted after a delay.
        SendDelayedRetry = "send_delayed_retry",
        /// Messages dropped as acknowledged; never counted in C.
        SendDropAcked = "send_drop_acked",
        /// Messages that ask for an acknowledgement.
        SendAckRequired = "send_ack_required",
        /// Messages queued for sending, those of the kernel included.
        SendQueued = "send_queued",
        /// RDMA operations requested.
        SendRdma = "send_rdma",
        /// Bytes moved by RDMA.
        SendRdmaBytes = "send_rdma_bytes",
        /// Pongs and probes sent.
        SendPong = "send_pong",
        /// Page remainders reused.
        PageRemainderHit = "page_remainder_hit",
        /// Page remainders too small.
        PageRemainderMiss = "page_remainder_miss",
        /// Bytes copied to user memory.
        CopyToUser = "copy_to_user",
        /// Bytes copied from user memory.
        CopyFromUser = "copy_from_user",
        /// Congestion map updates queued.
        CongUpdateQueued = "cong_update_queued",
        /// Congestion map updates received.
        CongUpdateReceived = "cong_update_received",
        /// Sends refused because the port was congested.
        CongSendError = "cong_send_error",
        /// Sends that waited because the port was congested.
        CongSendBlocked = "cong_send_blocked",
        /// Payload bytes queued on sockets.
        RecvBytesAddedToSock = "recv_bytes_added_to_sock",
        /// Payload bytes taken off sockets.
        RecvBytesFreedFromSock = "recv_bytes_freed_fromsock",
        /// Messages that made no progress for too long.
        SendStuckRm = "send_stuck_rm",
        /// Times a path waited for path 0 after fan-out.
        MprdsCatchupTx0Retries = "mprds_catchup_tx0_retries",
    }
}

counters! {
    /// Counters of the TCP transport.
    pub enum Tcp {
        /// Data-ready callbacks.
        DataReadyCalls = "tcp_data_ready_calls",
        /// Write-space callbacks.
        WriteSpaceCalls = "tcp_write_space_calls",
        /// Times the TCP send buffer was full.
        SndbufFull = "tcp_sndbuf_full",
        /// Connects that lost against an accept; never counted in C.
        ConnectRaced = "tcp_connect_raced",
        /// Stale connections closed by the listener; never counted in C.
        ListenClosedStale = "tcp_listen_closed_stale",
    }
}

counters! {
    /// Counters of what is dropped and C does not count. They come last in the list, behind all that C has.
    pub enum Drops {
        /// Datagrams received whose socket was closed before they were read.
        Unread = "drop_unread",
        /// Datagrams whose reader's control buffer could not be written.
        BadControlBuffer = "drop_bad_control_buffer",
        /// Datagrams of which a reader took only the beginning.
        Truncated = "drop_truncated",
        /// Pings from the port that answers pings.
        PingUnanswerable = "drop_ping_unanswerable",
        /// Datagrams of which the end of a transport connection cut off the rest.
        CutOff = "drop_cut_off",
        /// Datagrams for which a socket had no room until the connection was destroyed.
        Undelivered = "drop_undelivered",
        /// Datagrams taken back because their socket was closed before they were acknowledged.
        Closed = "drop_closed",
        /// Datagrams taken back by `RDS_CANCEL_SENT_TO`.
        Cancelled = "drop_cancelled",
        /// Messages that waited on a connection when it was destroyed.
        ConnDestroyed = "drop_conn_destroyed",
        /// Messages that waited on a path that the peer does not have any more.
        SurplusPath = "drop_surplus_path",
        /// Messages of the protocol, such as answers to pings, that could not be queued.
        ControlRefused = "drop_control_refused",
        /// Transport connections ended because the peer broke the protocol.
        BadHeader = "drop_conn_bad_header",
        /// Transport connections closed although the peer had not closed its side in time.
        NotDrained = "drop_conn_not_drained",
        /// Transport connections refused because the other end is to be connected to.
        WrongWay = "drop_conn_wrong_way",
        /// Transport connections refused because they belong to no connection that could be had.
        NotAccepted = "drop_conn_not_accepted",
        /// Transport connections refused because too many of the same peer wait.
        Crowded = "drop_conn_crowded",
        /// Transport connections that waited for their path when the connection was destroyed.
        Parked = "drop_conn_parked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_counters() {
        assert_eq!((Core::COUNT, Tcp::COUNT, Drops::COUNT), (37, 5, 17));
    }

    #[test]
    fn names_fit_the_record_and_stand_at_their_index() {
        for (at, counter) in Core::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, at);
            assert_eq!(counter.name(), Core::NAMES[at]);
        }
        for (at, counter) in Tcp::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, at);
            assert!(counter.name().starts_with("tcp_"));
        }
        for (at, counter) in Drops::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, at);
            assert!(counter.name().starts_with("drop_"));
        }
        for name in Core::NAMES.iter().chain(Tcp::NAMES).chain(Drops::NAMES) {
            assert!(name.len() < 32);
        }
    }

    #[test]
    fn places_in_the_list() {
        assert_eq!(Core::NAMES[Core::ConnReset as usize], "conn_reset");
        assert_eq!(Core::RecvQueued as usize, 7);
        assert_eq!(Core::SendPong as usize, 24);
        assert_eq!(Core::NAMES[36], "mprds_catchup_tx0_retries");
        assert_eq!(Tcp::NAMES[4], "tcp_listen_closed_stale");
        assert_eq!(Drops::NAMES[16], "drop_conn_parked");
    }
}
