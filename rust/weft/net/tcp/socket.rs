// SPDX-License-Identifier: GPL-2.0

//! The owner of a kernel TCP socket.

use super::{
    Family,
    SocketAddr6,
    TcpSk, //
};
use crate::{
    bindings,
    net::ns::{
        Net,
        NetUse,
        WeakNet, //
    },
};
use core::{
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    error::to_result,
    ffi::c_int,
    prelude::*,
    types::NotThreadSafe, //
};

/// Which directions of a connection to shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// No more sending: the peer gets a FIN after all that was sent.
    Send,
    /// Neither sending nor receiving.
    Both,
}

/// A C socket that nobody else owns. Dropping it sleeps.
///
/// # Invariants
///
/// The socket is a valid kernel TCP socket, and its `sk` is the same until it is released by the drop.
pub(super) struct RawSocket(NonNull<bindings::socket>);

// SAFETY: A `struct socket` may be used from any thread.
unsafe impl Send for RawSocket {}
// SAFETY: As above: all operations take the lock of the socket.
unsafe impl Sync for RawSocket {}

impl RawSocket {
    /// Creates a socket that does not keep its namespace alive.
    ///
    /// # Safety
    ///
    /// The socket must be dropped, or raised with [`Self::hold_net`], before the borrow of `net` ends, or before the
    /// namespace is left in the sense of [`ScopedNet`](crate::net::ns::ScopedNet).
    pub(super) unsafe fn create(net: &Net, family: Family) -> Result<Self> {
        let mut sock = ptr::null_mut();
        // SAFETY: The namespace is valid, and by the invariant of `Net` TCP is there in it.
        to_result(unsafe {
            bindings::sock_create_kern(
                net.as_raw(),
                family.as_raw(),
                bindings::sock_type_SOCK_STREAM as c_int,
                bindings::IPPROTO_TCP as c_int,
                &mut sock,
            )
        })?;
        // INVARIANT: This is the socket just created.
        NonNull::new(sock).map(Self).ok_or(ENOMEM)
    }

    /// Takes over a socket.
    ///
    /// # Safety
    ///
    /// The type invariants must hold for `sock`, and the caller gives it away.
    pub(super) unsafe fn from_raw(sock: NonNull<bindings::socket>) -> Self {
        // INVARIANT: The caller promises it.
        Self(sock)
    }

    /// The C structure.
    #[inline]
    pub(super) fn as_raw(&self) -> *mut bindings::socket {
        self.0.as_ptr()
    }

    /// The `struct sock`, valid as long as `self`.
    #[inline]
    pub(super) fn sk(&self) -> *mut bindings::sock {
        // SAFETY: By the type invariants the socket is valid.
        unsafe { (*self.as_raw()).sk }
    }

    /// Binds to a local address and port.
    pub(super) fn bind(&self, addr: &SocketAddr6, family: Family) -> Result {
        let mut raw = addr.encode(family)?;
        let (addr, len) = raw.as_raw();
        // SAFETY: The socket is valid, and the address is complete.
        to_result(unsafe { bindings::kernel_bind(self.as_raw(), addr, len) })
    }

    /// Lets the socket keep its namespace alive; false if that has come to its end.
    ///
    /// TCP's timers use the namespace, also after the owner has released the socket.
    ///
    /// # Safety
    ///
    /// Must be called at most once for a socket, by the only one who uses it.
    pub(super) unsafe fn hold_net(&self) -> bool {
        // SAFETY: The socket is valid, so the memory of its namespace is, too.
        let net = unsafe { bindings::weft_helper_sock_net(self.sk()) };
        // SAFETY: As above.
        if !unsafe { bindings::weft_helper_maybe_get_net(net) } {
            return false;
        }
        // This may allocate with GFP_KERNEL, so it must not be done under the lock of the socket.
        // SAFETY: The socket is valid, has no active reference yet and nobody else uses it; the namespace has one.
        unsafe { bindings::sk_net_refcnt_upgrade(self.sk()) };
        // SAFETY: The reference was taken above.
        unsafe { bindings::weft_helper_put_net(net) };
        true
    }

    /// Lets the release of the socket reset the connection instead of closing it.
    pub(super) fn no_linger(&self) {
        // SAFETY: The socket is valid.
        unsafe { bindings::sock_no_linger(self.sk()) }
    }
}

impl Drop for RawSocket {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the socket is valid and ours; it is not used after this.
        unsafe { bindings::sock_release(self.as_raw()) }
    }
}

/// The unique owner of a TCP connection's socket.
///
/// It does not keep its namespace alive, but must be dropped before that is left: see [`NetUse`].
///
/// Methods may sleep unless they say otherwise. Dropping it sleeps: it closes the connection and lets TCP finish what
/// is to be sent, for which TCP keeps the namespace alive; or it resets the connection, after
/// [`KernelSocket::no_linger`] and in a namespace that has come to its end.
///
/// # Invariants
///
/// The `sk` of the socket belongs to the namespace that `_net` uses, is of `family`, holds no active reference of the
/// namespace, and never listens.
pub struct KernelSocket {
    socket: RawSocket,
    family: Family,
    /// Dropped after the socket was released.
    _net: NetUse,
}

impl KernelSocket {
    /// Creates a socket in a namespace; `ENETUNREACH` if that has been left.
    pub fn create(net: &WeakNet, family: Family) -> Result<Self> {
        let net = net.enter().ok_or(ENETUNREACH)?;
        // SAFETY: The socket is dropped before `net`, which keeps the namespace from being left.
        let socket = unsafe { RawSocket::create(&net, family)? };
        // INVARIANT: The socket was just created in this namespace.
        Ok(Self {
            socket,
            family,
            _net: net,
        })
    }

    /// Takes over a socket.
    ///
    /// # Safety
    ///
    /// `socket` must be of `family` and in the namespace of `net`, not listen, hold no active reference, and be used
    /// by nobody else.
    pub(super) unsafe fn from_socket(socket: RawSocket, family: Family, net: NetUse) -> Self {
        // INVARIANT: The caller promises it.
        Self {
            socket,
            family,
            _net: net,
        }
    }

    /// The address family.
    #[inline]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Binds to a local address and port.
    pub fn bind(&self, addr: &SocketAddr6) -> Result {
        self.socket.bind(addr, self.family)
    }

    /// Starts to connect, without waiting for the result: [`TcpCallbacks::state_change`] tells.
    ///
    /// [`TcpCallbacks::state_change`]: super::TcpCallbacks::state_change
    pub fn connect(&self, addr: &SocketAddr6) -> Result {
        let mut raw = addr.encode(self.family)?;
        let (addr, len) = raw.as_raw();
        // SAFETY: The socket is valid, and the address is complete.
        let result = to_result(unsafe {
            // CAST: A small constant.
            bindings::kernel_connect(
                self.socket.as_raw(),
                addr,
                len,
                bindings::O_NONBLOCK as c_int,
            )
        });
        match result {
            Err(error) if error == EINPROGRESS => Ok(()),
            result => result,
        }
    }

    /// Shuts down one or both directions.
    pub fn shutdown(&self, how: Shutdown) -> Result {
        let how = match how {
            Shutdown::Send => bindings::sock_shutdown_cmd_SHUT_WR,
            Shutdown::Both => bindings::sock_shutdown_cmd_SHUT_RDWR,
        };
        // SAFETY: The socket is valid.
        to_result(unsafe { bindings::kernel_sock_shutdown(self.socket.as_raw(), how) })
    }

    /// Lets the drop reset the connection instead of closing it; what is not sent is lost.
    pub fn no_linger(&self) {
        self.socket.no_linger();
    }

    /// Sends small segments at once.
    pub fn set_nodelay(&self) {
        // SAFETY: This is a valid TCP socket.
        unsafe { bindings::tcp_sock_set_nodelay(self.as_raw()) }
    }

    /// Holds partial segments back while set; clearing it sends them.
    pub fn set_cork(&self, on: bool) {
        // SAFETY: This is a valid TCP socket.
        unsafe { bindings::tcp_sock_set_cork(self.as_raw(), on) }
    }

    /// Probes an idle peer: first after `idle` seconds, then every `interval` seconds, and gives up after `count`.
    pub fn set_keepalive(&self, idle: i32, interval: i32, count: i32) -> Result {
        // SAFETY: This is a valid TCP socket.
        unsafe {
            bindings::sock_set_keepalive(self.as_raw());
            to_result(bindings::tcp_sock_set_keepcnt(self.as_raw(), count))?;
            to_result(bindings::tcp_sock_set_keepidle(self.as_raw(), idle))?;
            to_result(bindings::tcp_sock_set_keepintvl(self.as_raw(), interval))
        }
    }

    /// Ends the connection if the peer confirms nothing for so many milliseconds; 0 leaves that to TCP. Also holds after
    /// the drop, while TCP goes on alone. C: `TCP_USER_TIMEOUT`.
    pub fn set_user_timeout(&self, milliseconds: u16) {
        // SAFETY: This is a valid TCP socket. It can fail for negative values only.
        unsafe { bindings::tcp_sock_set_user_timeout(self.as_raw(), i32::from(milliseconds)) };
    }

    /// Fixes the sizes of the send and receive buffers, in bytes. `None` leaves a size to TCP's own tuning.
    ///
    /// Sizes below [`MIN_SNDBUF`](super::MIN_SNDBUF) and [`MIN_RCVBUF`](super::MIN_RCVBUF) are raised to them.
    pub fn set_buffers(&self, send: Option<i32>, receive: Option<i32>) {
        let locked = self.lock();
        if let Some(bytes) = send {
            // SAFETY: The socket is valid and locked.
            unsafe {
                bindings::weft_helper_sk_lock_sndbuf(locked.as_raw(), bytes.max(super::MIN_SNDBUF))
            }
        }
        if let Some(bytes) = receive {
            // SAFETY: As above.
            unsafe {
                bindings::weft_helper_sk_lock_rcvbuf(locked.as_raw(), bytes.max(super::MIN_RCVBUF))
            }
        }
    }

    /// Asks for [`TcpCallbacks::write_space`] with the next acknowledgement. Any context.
    ///
    /// [`TcpCallbacks::write_space`]: super::TcpCallbacks::write_space
    #[inline]
    pub fn set_nospace(&self) {
        // SAFETY: The socket is valid.
        unsafe { bindings::weft_helper_socket_set_nospace(self.socket.as_raw()) }
    }

    /// Locks the socket: TCP queues what it receives meanwhile, and calls no callbacks.
    #[inline]
    pub fn lock(&self) -> LockedSk<'_> {
        // SAFETY: The socket is valid.
        unsafe { bindings::lock_sock_nested(self.as_raw(), 0) };
        // INVARIANT: The lock was just taken.
        LockedSk {
            sk: self,
            _not_send: NotThreadSafe,
        }
    }
}

impl Drop for KernelSocket {
    fn drop(&mut self) {
        // After the release TCP's timers still use the namespace, for as long as the peer has not confirmed.
        // SAFETY: By the type invariants the socket holds no reference yet, and it is ours alone.
        if !unsafe { self.socket.hold_net() } {
            // In a namespace that has come to its end nobody would confirm.
            self.socket.no_linger();
        }
    }
}

impl Deref for KernelSocket {
    type Target = TcpSk;

    #[inline]
    fn deref(&self) -> &TcpSk {
        // SAFETY: By the type invariants; the `sk` is valid as long as the socket, which `self` owns.
        unsafe { TcpSk::from_raw(self.socket.sk()) }
    }
}

/// A socket that is locked by the current task.
///
/// Dropping it lets TCP work on what came in meanwhile, which may call the socket's callbacks.
///
/// # Invariants
///
/// The current task holds the lock of `sk`.
pub struct LockedSk<'a> {
    sk: &'a TcpSk,
    _not_send: NotThreadSafe,
}

impl Deref for LockedSk<'_> {
    type Target = TcpSk;

    #[inline]
    fn deref(&self) -> &TcpSk {
        self.sk
    }
}

impl Drop for LockedSk<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants we hold the lock.
        unsafe { bindings::release_sock(self.sk.as_raw()) }
    }
}
