// SPDX-License-Identifier: GPL-2.0

//! What can be read of a TCP connection without its lock.

use super::SocketAddr6;
use crate::{
    bindings,
    net::{
        ns::Net,
        route::{
            is_link_local,
            v4_mapped,
            Address, //
        },
    },
};
use kernel::types::Opaque;

/// The state of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum TcpState {
    /// Data can flow both ways.
    Established = 1,
    /// A connection was asked for.
    SynSent,
    /// A connection request was received.
    SynRecv,
    /// We have closed, the peer has not confirmed.
    FinWait1,
    /// We have closed, the peer has confirmed.
    FinWait2,
    /// Both have closed; stray segments are waited for.
    TimeWait,
    /// There is no connection.
    Close,
    /// The peer has closed, we have not.
    CloseWait,
    /// Both have closed, the peer first; it has not confirmed ours.
    LastAck,
    /// Waiting for connection requests.
    Listen,
    /// Both have closed at the same time; the peer has not confirmed ours.
    Closing,
    /// A state this enumeration does not know.
    Other,
}

impl TcpState {
    #[inline]
    fn from_raw(state: i32) -> Self {
        match state {
            1 => Self::Established,
            2 => Self::SynSent,
            3 => Self::SynRecv,
            4 => Self::FinWait1,
            5 => Self::FinWait2,
            6 => Self::TimeWait,
            7 => Self::Close,
            8 => Self::CloseWait,
            9 => Self::LastAck,
            10 => Self::Listen,
            11 => Self::Closing,
            _ => Self::Other,
        }
    }

    /// Whether the peer can send no more data: what has arrived is all there is.
    #[inline]
    pub fn peer_is_done(self) -> bool {
        matches!(
            self,
            Self::Closing | Self::TimeWait | Self::CloseWait | Self::LastAck | Self::Close
        )
    }
}

/// The `struct sock` of a TCP connection.
///
/// All methods are cheap and may be called in any context; what they return is a snapshot.
///
/// # Invariants
///
/// For the lifetime of every borrow this is a valid, full TCP socket, and its namespace has not been left.
#[repr(transparent)]
pub struct TcpSk(Opaque<bindings::sock>);

// SAFETY: A `struct sock` may be used from any thread.
unsafe impl Send for TcpSk {}
// SAFETY: As above.
unsafe impl Sync for TcpSk {}

impl TcpSk {
    /// Borrows a socket.
    ///
    /// # Safety
    ///
    /// The type invariants must hold for `sk` during `'a`.
    #[inline]
    pub(super) unsafe fn from_raw<'a>(sk: *mut bindings::sock) -> &'a Self {
        // SAFETY: The type is transparent; the caller promises the rest.
        unsafe { &*sk.cast() }
    }

    /// The C structure.
    #[inline]
    pub(super) fn as_raw(&self) -> *mut bindings::sock {
        self.0.get()
    }

    /// The namespace of the socket.
    #[inline]
    pub fn net(&self) -> &Net {
        // SAFETY: By the type invariants the socket is valid and its namespace has not been left.
        unsafe { Net::from_raw(bindings::weft_helper_sock_net(self.as_raw())) }
    }

    /// The state of the connection.
    #[inline]
    pub fn state(&self) -> TcpState {
        // SAFETY: By the type invariants the socket is valid.
        TcpState::from_raw(unsafe { bindings::weft_helper_sk_state(self.as_raw()) })
    }

    /// The sequence number that the next byte given to TCP will have.
    #[inline]
    pub fn write_seq(&self) -> u32 {
        // SAFETY: By the type invariants this is a valid TCP socket.
        unsafe { bindings::weft_helper_tcp_write_seq(self.as_raw()) }
    }

    /// The sequence number of the first byte that the peer has not acknowledged.
    #[inline]
    pub fn snd_una(&self) -> u32 {
        // SAFETY: By the type invariants this is a valid TCP socket.
        unsafe { bindings::weft_helper_tcp_snd_una(self.as_raw()) }
    }

    /// Whether no received data waits to be read.
    #[inline]
    pub fn receive_queue_empty(&self) -> bool {
        // SAFETY: By the type invariants the socket is valid.
        unsafe { bindings::weft_helper_sk_receive_queue_empty(self.as_raw()) }
    }

    /// Whether at least half of the send buffer is free.
    #[inline]
    pub fn has_send_space(&self) -> bool {
        // SAFETY: By the type invariants the socket is valid.
        let (used, size) = unsafe {
            (
                bindings::weft_helper_sk_wmem_alloc(self.as_raw()),
                bindings::weft_helper_sk_sndbuf(self.as_raw()),
            )
        };
        i64::from(used) * 2 <= i64::from(size)
    }

    #[inline]
    fn is_v4(&self) -> bool {
        // SAFETY: By the type invariants the socket is valid.
        unsafe { bindings::weft_helper_sk_family(self.as_raw()) == bindings::AF_INET }
    }

    /// Our own address.
    fn local_address(&self) -> Address {
        // SAFETY: By the type invariants the socket is valid, and every TCP socket is an inet socket.
        unsafe {
            if self.is_v4() {
                v4_mapped(bindings::weft_helper_inet_saddr(self.as_raw()))
            } else {
                bindings::weft_helper_sk_v6_rcv_saddr(self.as_raw())
                    .in6_u
                    .u6_addr8
            }
        }
    }

    /// The peer's address.
    fn peer_address(&self) -> Address {
        // SAFETY: As in `local_address`.
        unsafe {
            if self.is_v4() {
                v4_mapped(bindings::weft_helper_inet_daddr(self.as_raw()))
            } else {
                bindings::weft_helper_sk_v6_daddr(self.as_raw())
                    .in6_u
                    .u6_addr8
            }
        }
    }

    /// Our own address and port, with the scope from [`Self::interface`].
    pub fn local(&self) -> SocketAddr6 {
        SocketAddr6 {
            addr: self.local_address(),
            // SAFETY: By the type invariants the socket is valid, and every TCP socket is an inet socket.
            port: unsafe { bindings::weft_helper_inet_sport(self.as_raw()) },
            scope_id: self.interface(),
        }
    }

    /// The peer's address and port, with the scope from [`Self::interface`].
    pub fn peer(&self) -> SocketAddr6 {
        SocketAddr6 {
            addr: self.peer_address(),
            // SAFETY: By the type invariants the socket is valid, and every TCP socket is an inet socket.
            port: unsafe { bindings::weft_helper_inet_dport(self.as_raw()) },
            scope_id: self.interface(),
        }
    }

    /// The interface that the connection is bound to, or zero.
    ///
    /// TCP binds a connection to a device only if the peer's address is link-local. If just our own is, the device is
    /// known as the one for multicast.
    pub fn interface(&self) -> u32 {
        let multicast = !self.is_v4()
            && is_link_local(&self.local_address())
            && !is_link_local(&self.peer_address());
        // SAFETY: By the type invariants the socket is valid. Its IPv6 part is there if it is not of the IPv4 family.
        let index = unsafe {
            if multicast {
                bindings::weft_helper_sk_mcast_oif(self.as_raw())
            } else {
                bindings::weft_helper_sk_bound_dev_if(self.as_raw())
            }
        };
        u32::try_from(index).unwrap_or(0)
    }
}
