// SPDX-License-Identifier: GPL-2.0

//! Sockets of a protocol family written in Rust.
//!
//! C header: [`include/net/sock.h`](srctree/include/net/sock.h)
//!
//! The kernel has two objects for a socket, and so do we:
//!
//! * [`Sock<T>`], C's `struct sock`, is the protocol's half. It carries the state `T` of the
//!   [`Protocol`], is reference counted ([`ARef`]) and may outlive the file descriptor: received
//!   messages, timers and works may hold it. The last reference may go in any context.
//! * [`Socket<T>`], C's `struct socket`, is the user's half, with the wait queue. It is only lent to
//!   the methods of [`Protocol`], because it goes away with the file descriptor; so only these
//!   methods can sleep on it or register a poller with it.
//!
//! [`Socket<T>`]: super::socket::Socket
//!
//! Data in `T` is protected by locks in `T`. [`Sock::lock`], C's `lock_sock`, serialises system
//! calls on one socket and protects the socket flags.

use crate::{
    bindings,
    net::{
        msg::MsgDest,
        ns::ActiveNet,
        proto::Protocol, //
    },
    sync::wait::wake,
};
use core::{
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    ffi,
    prelude::*,
    sync::{
        aref::{
            ARef,
            AlwaysRefCounted, //
        },
        rcu, //
    },
    task::Kuid,
    types::{
        NotThreadSafe,
        Opaque, //
    },
};

/// Room for a `struct sock`.
#[repr(C)]
struct RawSock {
    _bytes: [u8; bindings::WEFT_SOCK_SIZE],
    _align: [u64; 0],
}

const _: () = assert!(align_of::<RawSock>() >= bindings::WEFT_SOCK_ALIGN);

/// A socket with the state `T` of its protocol, which it dereferences to.
///
/// # Invariants
///
/// Lives in an object that `sk_alloc` made of a `struct proto` with `obj_size ==
/// size_of::<Self>()`; `sk` is its `struct sock`, and the reference count is not zero.
#[repr(C)]
pub struct Sock<T: Protocol> {
    sk: Opaque<RawSock>,
    state: T,
}

// SAFETY: A `struct sock` may be released on any thread, and `T: Send`.
unsafe impl<T: Protocol> Send for Sock<T> {}
// SAFETY: The methods only call what C allows to call in parallel, and `T: Sync`.
unsafe impl<T: Protocol> Sync for Sock<T> {}

// SAFETY: By the type invariants all instances are counted by `sk_refcnt`.
unsafe impl<T: Protocol> AlwaysRefCounted for Sock<T> {
    #[inline]
    fn inc_ref(&self) {
        // SAFETY: By the type invariants the count is not zero.
        unsafe { bindings::weft_helper_sock_hold(self.as_raw()) };
    }

    #[inline]
    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller gives up one reference.
        unsafe { put(obj.as_ptr().cast()) };
    }
}

impl<T: Protocol> Deref for Sock<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.state
    }
}

impl<T: Protocol> Sock<T> {
    /// The socket around a `struct sock`.
    ///
    /// # Safety
    ///
    /// `sk` must be a `struct sock` made by the trampolines of `T` whose state is initialised and
    /// whose reference count is not zero for `'a`.
    #[inline]
    pub(super) unsafe fn from_raw<'a>(sk: *mut bindings::sock) -> &'a Self {
        // SAFETY: By the safety requirements; `struct sock` is at offset 0 of the object.
        unsafe { &*sk.cast::<Self>() }
    }

    /// The C object.
    #[inline]
    pub(super) fn as_raw(&self) -> *mut bindings::sock {
        ptr::from_ref(self).cast_mut().cast()
    }

    /// Where the state of `sk` is.
    ///
    /// # Safety
    ///
    /// `sk` must point to an allocation of at least the size of `Self`.
    #[inline]
    pub(super) unsafe fn state_of(sk: *mut bindings::sock) -> *mut T {
        // SAFETY: In bounds by the safety requirements.
        unsafe { &raw mut (*sk.cast::<Self>()).state }
    }

    /// A counted reference to this socket.
    #[inline]
    pub fn to_aref(&self) -> ARef<Self> {
        ARef::from(self)
    }

    /// A number that no other socket has while this one exists.
    #[inline]
    pub fn id(&self) -> usize {
        self.as_raw().addr()
    }

    /// The network namespace.
    #[inline]
    pub fn net(&self) -> &ActiveNet {
        // SAFETY: The trampolines make sure that every socket holds an active reference of its
        // namespace for as long as it exists.
        unsafe { ActiveNet::from_raw(bindings::weft_helper_sock_net(self.as_raw())) }
    }

    /// `sk_sndbuf`: twice what was set with `SO_SNDBUF`.
    #[inline]
    pub fn sndbuf(&self) -> i32 {
        // SAFETY: The socket is valid by the type invariants.
        unsafe { bindings::weft_helper_sk_sndbuf(self.as_raw()) }
    }

    /// `sk_rcvbuf`: twice what was set with `SO_RCVBUF`.
    #[inline]
    pub fn rcvbuf(&self) -> i32 {
        // SAFETY: The socket is valid by the type invariants.
        unsafe { bindings::weft_helper_sk_rcvbuf(self.as_raw()) }
    }

    /// How long sending may block, in jiffies.
    #[inline]
    pub fn sndtimeo(&self, nonblock: bool) -> i64 {
        // SAFETY: The socket is valid by the type invariants.
        unsafe { bindings::weft_helper_sock_sndtimeo(self.as_raw(), nonblock) as i64 }
    }

    /// How long receiving may block, in jiffies.
    #[inline]
    pub fn rcvtimeo(&self, nonblock: bool) -> i64 {
        // SAFETY: The socket is valid by the type invariants.
        unsafe { bindings::weft_helper_sock_rcvtimeo(self.as_raw(), nonblock) as i64 }
    }

    /// The inode number of the socket file; 0 once it is closed.
    #[inline]
    pub fn inode(&self) -> u64 {
        // SAFETY: The socket is valid by the type invariants.
        unsafe { bindings::weft_helper_sock_i_ino(self.as_raw()) }
    }

    /// The owner of the socket file.
    pub fn uid(&self) -> Kuid {
        // SAFETY: The socket is valid by the type invariants.
        Kuid::from_raw(unsafe { bindings::weft_helper_sk_uid(self.as_raw()) })
    }

    #[inline]
    fn flag(&self, flag: ffi::c_uint) -> bool {
        // SAFETY: The socket is valid by the type invariants.
        unsafe { bindings::weft_helper_sock_flag(self.as_raw(), flag) }
    }

    /// Whether the file is closed ([`Protocol::release`] returned).
    #[inline]
    pub fn is_dead(&self) -> bool {
        self.flag(bindings::WEFT_SOCK_DEAD)
    }

    /// Whether `SO_ZEROCOPY` is set.
    #[inline]
    pub fn zerocopy_flag(&self) -> bool {
        self.flag(bindings::WEFT_SOCK_ZEROCOPY)
    }

    /// Whether `SO_TIMESTAMP` is set, in either format.
    #[inline]
    pub fn rcvtstamp_flag(&self) -> bool {
        self.flag(bindings::WEFT_SOCK_RCVTSTAMP)
    }

    /// Whether timestamps are in the format of `SO_TIMESTAMP_NEW`.
    #[inline]
    pub fn tstamp_new_flag(&self) -> bool {
        self.flag(bindings::WEFT_SOCK_TSTAMP_NEW)
    }

    /// Whether an asynchronous error or something in the error queue waits to be read.
    #[inline]
    pub fn has_error(&self) -> bool {
        // SAFETY: The socket is valid by the type invariants.
        unsafe {
            bindings::weft_helper_sk_err(self.as_raw()) != 0
                || !bindings::weft_helper_sk_error_queue_empty(self.as_raw())
        }
    }

    /// Answers `recvmsg(MSG_ERRQUEUE)`: one entry of the error queue, as a control message `level`,
    /// `ty`. `EAGAIN` if there is none.
    pub fn recv_error_queue(
        &self,
        msg: &mut MsgDest<'_>,
        len: usize,
        level: i32,
        ty: i32,
    ) -> Result<usize> {
        let len = i32::try_from(len).unwrap_or(i32::MAX);
        // SAFETY: The socket is valid by the type invariants, `msg` is a message to be filled.
        let n =
            unsafe { bindings::sock_recv_errqueue(self.as_raw(), msg.as_raw(), len, level, ty) };
        usize::try_from(n).map_err(|_| Error::from_errno(n))
    }

    /// Wakes whoever sleeps in a system call on this socket or polls it, and sends `SIGIO` to who
    /// asked for it. Does nothing once the socket is closed. Any context.
    ///
    /// Call it after the state was changed that they wait for.
    #[inline]
    pub fn wake_sleepers(&self) {
        let _rcu = rcu::read_lock();
        // SAFETY: The socket is valid by the type invariants, and this is an RCU read-side section.
        let wq = unsafe { bindings::weft_helper_sk_wq(self.as_raw()) };
        if wq.is_null() {
            return;
        }
        let how = bindings::SOCK_WAKE_WAITD as ffi::c_int;
        let band = bindings::POLL_IN as ffi::c_int;
        // SAFETY: `struct socket_wq` is freed no earlier than after this RCU section; the same is
        // what `sk_wake_async_rcu` asks for.
        unsafe {
            wake(&raw mut (*wq).wait, 1);
            bindings::weft_helper_sk_wake_async_rcu(self.as_raw(), how, band);
        }
    }

    /// Locks out other system calls on this socket (`lock_sock`). May sleep.
    ///
    /// Not a lock for data of `T`: what softirq touches needs one of its own.
    #[inline]
    pub fn lock(&self) -> LockedSock<'_, T> {
        // SAFETY: The socket is valid by the type invariants.
        unsafe { bindings::lock_sock_nested(self.as_raw(), 0) };
        // INVARIANT: Just locked.
        LockedSock {
            sock: self,
            _not_send: NotThreadSafe,
        }
    }
}

/// Gives up one reference of a socket. Any context.
///
/// All of it, up to the return of the memory to the allocator, happens in one RCU read-side
/// section; unregistering a protocol relies on that.
///
/// # Safety
///
/// The caller must own a reference of `sk`, which must have been made by the trampolines.
pub(super) unsafe fn put(sk: *mut bindings::sock) {
    let _rcu = rcu::read_lock();
    // SAFETY: The caller owns a reference.
    unsafe { bindings::weft_helper_sock_put(sk) };
}

/// A socket while `lock_sock` is held.
///
/// # Invariants
///
/// The current task owns the socket lock of `sock`.
pub struct LockedSock<'a, T: Protocol> {
    sock: &'a Sock<T>,
    _not_send: NotThreadSafe,
}

impl<T: Protocol> LockedSock<'_, T> {
    /// Turns receive timestamps on or off. `new_format` selects the format of `SO_TIMESTAMP_NEW`,
    /// for good: it cannot be taken back.
    pub fn set_rcvtstamp(&mut self, on: bool, new_format: bool) {
        let sk = self.sock.as_raw();
        if new_format {
            // SAFETY: The socket is valid; its lock, which protects the flags, is held by the type
            // invariants.
            unsafe {
                bindings::weft_helper_sock_valbool_flag(sk, bindings::WEFT_SOCK_TSTAMP_NEW, true)
            };
        }
        // SAFETY: As above.
        unsafe { bindings::weft_helper_sock_valbool_flag(sk, bindings::WEFT_SOCK_RCVTSTAMP, on) };
    }
}

impl<T: Protocol> Deref for LockedSock<'_, T> {
    type Target = Sock<T>;

    #[inline]
    fn deref(&self) -> &Sock<T> {
        self.sock
    }
}

impl<T: Protocol> Drop for LockedSock<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants the lock is held.
        unsafe { bindings::release_sock(self.sock.as_raw()) };
    }
}
