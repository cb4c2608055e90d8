// SPDX-License-Identifier: GPL-2.0

//! Protocol families: what a socket of a family of its own does.
//!
//! C headers: [`include/linux/net.h`](srctree/include/linux/net.h) (`struct proto_ops`, `struct
//! net_proto_family`), [`include/net/sock.h`](srctree/include/net/sock.h) (`struct proto`)
//!
//! A type that implements [`Protocol`] is the state of one socket; a [`Registration`] makes
//! `socket(2)` create such sockets.
//!
//! * All methods run in process context and may sleep. All but [`Protocol::release`] may run at
//!   the same time on one socket.
//! * The state is dropped with the last reference of the [`Sock`], in any context and inside an RCU
//!   read-side section: its `drop` must not sleep. What has to sleep belongs in
//!   [`Protocol::release`].
//! * A socket pins the module of its protocol, and the namespace it was created in, until then.

use crate::{
    bindings,
    net::{
        family::{
            Family,
            FAMILIES, //
        },
        life::Life,
        msg::{
            MsgDest,
            MsgSource,
            SOCKADDR_MAX, //
        },
        ns::Net,
        poll::PollTable,
        sock::Sock,
        socket::Socket,
        sockopt::{
            OptIn,
            OptOut, //
        },
    },
};
use core::{
    marker::PhantomData,
    mem::{
        align_of,
        size_of, //
    },
    ops::{
        Deref,
        DerefMut, //
    },
};
use kernel::{
    error::{
        to_result,
        VTABLE_DEFAULT_ERROR, //
    },
    ffi,
    module::this_module,
    prelude::*,
    sync::rcu::synchronize_rcu,
    types::Opaque, //
};

/// The state of a socket, and what can be done with the socket.
///
/// Methods that are not implemented fail as in C: with `EOPNOTSUPP`, [`Protocol::ioctl`] with
/// `ENOTTY`. So do `listen`, `accept`, `socketpair` and `shutdown`; `mmap` fails with `ENODEV`.
#[vtable]
pub trait Protocol: Send + Sync + Sized + 'static {
    /// The address family.
    const FAMILY: i32;
    /// The name in `/proc/net/protocols` and of the slab cache; shorter than 32 bytes.
    const NAME: &'static CStr;
    /// The only type of socket there is; others fail with `ESOCKTNOSUPPORT`.
    const SOCK_TYPE: i32;

    /// Checks the arguments of `socket(2)` and makes the state of a new socket. `kern` tells that
    /// the kernel creates it for itself.
    fn new(net: &Net, type_: i32, protocol: i32, kern: bool) -> Result<impl PinInit<Self, Error>>;

    /// Called with the complete socket before anybody can use it. An error undoes the creation, in
    /// which case [`Protocol::release`] is not called.
    fn created(_sk: &Socket<Self>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The file is closed: no other method is running, nor will one be called.
    ///
    /// References to the [`Sock`] may still exist. Called once. Afterwards the socket is marked
    /// dead and its inode is gone.
    fn release(sk: &Socket<Self>);

    /// Binds to the address whose bytes are `addr`, a `struct sockaddr` of some kind.
    fn bind(_sk: &Socket<Self>, _addr: &[u8]) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Connects to the address whose bytes are `addr`; `flags` are those of the file.
    fn connect(_sk: &Socket<Self>, _addr: &[u8], _flags: i32) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Writes the own or the peer's address to `out`, which is all zero, and returns its length.
    fn getname(_sk: &Socket<Self>, _out: &mut SockAddrBuf, _peer: bool) -> Result<usize> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Sends a message of `len` bytes; returns how many were taken.
    fn sendmsg(_sk: &Socket<Self>, _msg: &mut MsgSource<'_>, _len: usize) -> Result<usize> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Receives a message into room for `len` bytes; returns its length. `flags` are `MSG_*`.
    fn recvmsg(
        _sk: &Socket<Self>,
        _msg: &mut MsgDest<'_>,
        _len: usize,
        _flags: i32,
    ) -> Result<usize> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Registers the poller, then returns what the socket is ready for, as `POLL*` bits.
    ///
    /// The lifetime ties what is registered to the socket; see [`PollTable`].
    fn poll<'a>(_sk: &'a Socket<Self>, _table: &PollTable<'a>) -> u32 {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Sets an option.
    fn setsockopt(_sk: &Socket<Self>, _level: i32, _name: i32, _val: OptIn<'_>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Reads an option. The value returned, which must not be negative, is that of the system call.
    fn getsockopt(
        _sk: &Socket<Self>,
        _level: i32,
        _name: i32,
        _val: &mut OptOut<'_>,
    ) -> Result<i32> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Handles an ioctl; `ENOIOCTLCMD` for an unknown one. `arg` is a user address, as a rule; that
    /// of a 32-bit caller has been widened.
    fn ioctl(_sk: &Socket<Self>, _cmd: u32, _arg: usize) -> Result<i32> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

/// Room for an address of any kind.
pub struct SockAddrBuf([u8; SOCKADDR_MAX]);

impl SockAddrBuf {
    /// An empty buffer: all zero.
    pub(super) const fn new() -> Self {
        Self([0; SOCKADDR_MAX])
    }

    /// Writes `addr` to the start of the buffer; returns its length, cut to what fits.
    #[inline]
    pub fn set(&mut self, addr: &[u8]) -> usize {
        let len = addr.len().min(SOCKADDR_MAX);
        for (to, from) in self.0.iter_mut().zip(addr) {
            *to = *from;
        }
        len
    }
}

impl Deref for SockAddrBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for SockAddrBuf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// A registered protocol family.
///
/// Dropping it makes `socket(2)` fail for this family and then waits, for as long as it takes, until
/// all sockets are gone. A module that is being unloaded has none, because they pin it.
///
/// # Invariants
///
/// `proto` is registered and claimed as the protocol of `T::FAMILY` in `family`, which is open; the
/// family is registered with the socket layer.
#[pin_data(PinnedDrop)]
pub struct Registration<T: Protocol> {
    #[pin]
    proto: Opaque<bindings::proto>,
    /// Given back last, when everything is unregistered.
    family: Family,
    _protocol: PhantomData<fn() -> T>,
}

// SAFETY: Registering and unregistering may happen on different threads.
unsafe impl<T: Protocol> Send for Registration<T> {}
// SAFETY: There are no methods that use `&self`.
unsafe impl<T: Protocol> Sync for Registration<T> {}

impl<T: Protocol> Registration<T> {
    /// `T::FAMILY` as an index.
    pub(super) const FAMILY: usize = {
        assert!(T::FAMILY >= 0 && (T::FAMILY as usize) < FAMILIES);
        T::FAMILY as usize
    };

    /// The C object before it is registered.
    const PROTO: bindings::proto = bindings::proto {
        owner: this_module::<T::OwnerModule>().as_ptr(),
        obj_size: {
            assert!(size_of::<Sock<T>>() <= u32::MAX as usize);
            // Slab objects are aligned to cache lines; `Life::fill` checks it for smaller ones.
            assert!(align_of::<Sock<T>>() <= bindings::L1_CACHE_BYTES as usize);
            size_of::<Sock<T>>() as u32
        },
        name: {
            let name = T::NAME.to_bytes();
            let mut field = [0; 32];
            assert!(!name.is_empty() && name.len() < field.len());
            let mut i = 0;
            while i < name.len() {
                field[i] = name[i] as ffi::c_char;
                i += 1;
            }
            field
        },
        ..pin_init::zeroed()
    };

    /// Registers the family. `EEXIST` if there is one of that number, maybe of a C module. May
    /// sleep.
    ///
    /// Sockets may be created before the initialiser returns: make it the last thing that a module
    /// does.
    pub fn new() -> impl PinInit<Self, Error> {
        // INVARIANT: `register` does all of it or fails.
        try_pin_init!(&this in Self {
            proto: Opaque::new(Self::PROTO),
            // SAFETY: `this` is the pinned memory of the registration being made; `proto` was just
            // initialised.
            family: unsafe { Self::register(&raw mut (*this.as_ptr()).proto)? },
            _protocol: PhantomData,
        })
    }

    /// Whether `proto` is what sockets of `T` are to be allocated with.
    ///
    /// # Safety
    ///
    /// `proto` must be a registered protocol.
    pub(super) unsafe fn fits(proto: *mut bindings::proto) -> bool {
        // SAFETY: Valid by the safety requirements; neither changes while it is registered.
        let (owner, size) = unsafe { ((*proto).owner, (*proto).obj_size) };
        owner == Self::PROTO.owner && size == Self::PROTO.obj_size
    }

    /// Registers with everybody who has to know.
    ///
    /// # Safety
    ///
    /// `proto` must be initialised with [`Self::PROTO`]. On success it must stay where it is until
    /// it is unregistered in `drop`.
    unsafe fn register(proto: *mut Opaque<bindings::proto>) -> Result<Family> {
        let proto = Opaque::cast_into(proto.cast_const());
        let family = Family::claim(Self::FAMILY, proto)?;
        // SAFETY: `proto` is initialised and pinned.
        to_result(unsafe { bindings::proto_register(proto, 1) })?;
        // SAFETY: It is registered; every path to unregistering it closes the family first.
        unsafe { family.open() };
        // SAFETY: The table is static, `create` is made for `T`.
        if let Err(error) = to_result(unsafe { bindings::sock_register(Life::<T>::family()) }) {
            // Nobody knows of the family but us.
            family.close();
            // SAFETY: Registered above, and without users.
            unsafe { bindings::proto_unregister(proto) };
            return Err(error);
        }
        Ok(family)
    }
}

#[pinned_drop]
impl<T: Protocol> PinnedDrop for Registration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariants this family is ours.
        unsafe { bindings::sock_unregister(T::FAMILY) };
        self.family.close();
        // The last sockets may be on their way to the allocator, within RCU read-side sections.
        synchronize_rcu();
        // SAFETY: Registered by the type invariants; no socket is left, and none can be created.
        unsafe { bindings::proto_unregister(self.proto.get()) };
    }
}
