// SPDX-License-Identifier: GPL-2.0

//! The life of a socket: the trampolines that create, release and destroy it.
//!
//! C headers: [`include/linux/net.h`](srctree/include/linux/net.h),
//! [`include/net/sock.h`](srctree/include/net/sock.h)
//!
//! `create` makes a `struct sock` with the state behind it; the `struct socket` owns the first
//! reference. `release` gives that up when the file is closed. `destruct` drops the state when the
//! last reference is gone.

use crate::{
    bindings,
    net::{
        family::User,
        ns::Net,
        ops::{
            done,
            Ops, //
        },
        proto::{
            Protocol,
            Registration, //
        },
        sock::{
            self,
            Sock, //
        },
        socket::Socket, //
    },
};
use core::{
    marker::PhantomData,
    mem,
    ptr, //
};
use kernel::{
    ffi,
    module::this_module,
    prelude::*, //
};

/// The `struct net_proto_family` of the protocol `T`.
pub(super) struct Life<T: Protocol>(PhantomData<T>);

impl<T: Protocol> Life<T> {
    const FAMILY: bindings::net_proto_family = bindings::net_proto_family {
        family: T::FAMILY,
        create: Some(Self::create_callback),
        owner: this_module::<T::OwnerModule>().as_ptr(),
    };

    /// How sockets of the family are created.
    pub(super) const fn family() -> &'static bindings::net_proto_family {
        &Self::FAMILY
    }

    /// # Safety
    ///
    /// `net` must be a valid namespace that the caller keeps alive, `sock` a new `struct socket`.
    unsafe extern "C" fn create_callback(
        net: *mut bindings::net,
        sock: *mut bindings::socket,
        protocol: ffi::c_int,
        kern: ffi::c_int,
    ) -> ffi::c_int {
        // SAFETY: The caller's guarantees are passed on.
        done(unsafe { Self::create(net, sock, protocol, kern) })
    }

    /// Creates a socket, or leaves `sock->sk` null.
    ///
    /// # Safety
    ///
    /// As for [`Self::create_callback`].
    unsafe fn create(
        net: *mut bindings::net,
        sock: *mut bindings::socket,
        protocol: ffi::c_int,
        kern: ffi::c_int,
    ) -> Result {
        // SAFETY: `sock` is valid.
        let type_ = i32::from(unsafe { (*sock).type_ });
        if type_ != T::SOCK_TYPE {
            return Err(ESOCKTNOSUPPORT);
        }
        // From here on the `struct proto` stays, even if the registration is being dropped.
        let user = User::get(Registration::<T>::FAMILY).ok_or(EAFNOSUPPORT)?;
        // SAFETY: A user's protocol is registered.
        if !unsafe { Registration::<T>::fits(user.proto()) } {
            return Err(EAFNOSUPPORT);
        }
        // SAFETY: `net` is the namespace of the calling task, which holds an active reference, or
        // one that the kernel uses and hence knows to be up.
        let net = unsafe { Net::from_raw(net) };
        let kern = kern != 0;
        let init = T::new(net, type_, protocol, kern)?;
        // SAFETY: `sock` is new, and `user` is of this protocol.
        let new = unsafe { NewSock::alloc(net, sock, T::FAMILY, &user, kern)? };
        // SAFETY: The socket was just allocated.
        unsafe { Self::fill(new.sk, protocol, init)? };
        user.into_socket();
        // SAFETY: The socket is complete but for this.
        unsafe { (*sock).ops = Ops::<T>::table() };

        if T::HAS_CREATED {
            // SAFETY: The socket is complete, and `sock` lives during this call.
            T::created(unsafe { Socket::<T>::from_raw(sock) })?;
        }
        new.keep();
        Ok(())
    }

    /// Makes the state of a socket, which is from then on dropped with it.
    ///
    /// # Safety
    ///
    /// `sk` must be a new socket, made of a protocol that fits `T`.
    unsafe fn fill(
        sk: *mut bindings::sock,
        protocol: ffi::c_int,
        init: impl PinInit<T, Error>,
    ) -> Result {
        // Slab objects are aligned to cache lines, which may be smaller than the type wants.
        if !sk.cast::<Sock<T>>().is_aligned() {
            return Err(EINVAL);
        }
        // CAST: A `u16` in C as well; the protocol has seen all of it.
        // SAFETY: `sk` is valid and nobody else knows it.
        unsafe { bindings::weft_helper_sk_set_protocol(sk, protocol as u16) };
        // SAFETY: The object is as big as a `Sock<T>`, aligned, and does not move.
        unsafe { pin_init::raw_try_init(Sock::<T>::state_of(sk), init)? };
        // SAFETY: `sk` is valid, and the state is initialised.
        unsafe { bindings::weft_helper_sk_set_destruct(sk, Some(Self::destruct_callback)) };
        Ok(())
    }

    /// # Safety
    ///
    /// `sk` must be a socket filled by [`Self::fill`] whose last reference is gone.
    unsafe extern "C" fn destruct_callback(sk: *mut bindings::sock) {
        // SAFETY: `fill` initialised the state; nobody has a reference to it any more.
        unsafe { ptr::drop_in_place(Sock::<T>::state_of(sk)) };
        // SAFETY: Matches the call of `into_socket` in `create`. Every reference of a socket is
        // given up through `sock::put`, so this runs in its RCU read-side section.
        drop(unsafe { User::from_socket(Registration::<T>::FAMILY) });
    }

    /// # Safety
    ///
    /// `sock` must be a socket of this family that nobody uses any more.
    pub(super) unsafe extern "C" fn release_callback(sock: *mut bindings::socket) -> ffi::c_int {
        // SAFETY: `sock` is valid.
        let sk = unsafe { (*sock).sk };
        if sk.is_null() {
            return 0;
        }
        // SAFETY: `sock` has a complete socket and lives during this call.
        T::release(unsafe { Socket::from_raw(sock) });
        // SAFETY: `sock` and `sk` belong together, and `sock` gives up its reference.
        unsafe { part(sock, sk) };
        0
    }
}

/// Takes `sk` from `sock` and gives up the reference.
///
/// # Safety
///
/// `sk` must be the socket of `sock`, which must not be used any more.
unsafe fn part(sock: *mut bindings::socket, sk: *mut bindings::sock) {
    // SAFETY: Both are valid.
    unsafe {
        bindings::weft_helper_sock_orphan(sk);
        (*sock).sk = ptr::null_mut();
    }
    // SAFETY: The reference was that of `sock`.
    unsafe { sock::put(sk) };
}

/// A socket under construction; dropping it undoes that.
///
/// # Invariants
///
/// `sk` is the socket of `sock`, which owns a reference of it.
struct NewSock {
    sock: *mut bindings::socket,
    sk: *mut bindings::sock,
}

impl NewSock {
    /// Allocates a socket, without state, for `sock`.
    ///
    /// # Safety
    ///
    /// `sock` must be a new `struct socket`, `user` of the protocol of `family`.
    unsafe fn alloc(
        net: &Net,
        sock: *mut bindings::socket,
        family: ffi::c_int,
        user: &User,
        kern: bool,
    ) -> Result<Self> {
        // A socket of the kernel gets only a passive reference from `sk_alloc`, which is not
        // enough for `Sock::net`.
        let active = if kern {
            Some(net.try_get().ok_or(ENONET)?)
        } else {
            None
        };
        let (net, gfp) = (net.as_raw(), bindings::GFP_KERNEL);
        // SAFETY: `net` is valid, and `user` keeps the protocol registered.
        let sk = unsafe { bindings::sk_alloc(net, family, gfp, user.proto(), kern.into()) };
        if sk.is_null() {
            return Err(ENOMEM);
        }
        // SAFETY: `sk` is new.
        unsafe { bindings::sock_init_data(sock, sk) };
        if active.is_some() {
            // SAFETY: `sk` has a passive reference of the namespace, and there is an active one.
            unsafe { bindings::sk_net_refcnt_upgrade(sk) };
        }
        // INVARIANT: `sock_init_data` gave `sk` to `sock`, with one reference.
        Ok(Self { sock, sk })
    }

    /// The socket is complete.
    fn keep(self) {
        mem::forget(self);
    }
}

impl Drop for NewSock {
    fn drop(&mut self) {
        // SAFETY: By the type invariants they belong together; nobody else has seen `sock`.
        unsafe { part(self.sock, self.sk) };
    }
}
