// SPDX-License-Identifier: GPL-2.0

//! The C side of [`Protocol`]: one trampoline for each operation on a socket.
//!
//! C header: [`include/linux/net.h`](srctree/include/linux/net.h)
//!
//! The socket layer calls the members of `struct proto_ops` with a `struct socket` that the caller
//! keeps alive during the call, and `release` once, after all other calls have returned.

use crate::{
    bindings,
    net::{
        life::Life,
        msg::{
            MsgDest,
            MsgSource,
            MSG_TRUNC, //
        },
        poll::PollTable,
        proto::{
            Protocol,
            SockAddrBuf, //
        },
        socket::Socket,
        sockopt::{
            OptIn,
            OptOut, //
        },
    },
};
use core::{
    marker::PhantomData,
    ptr,
    slice, //
};
use kernel::{
    ffi,
    module::this_module,
    prelude::*, //
};

/// The `struct proto_ops` of the protocol `T`.
pub(super) struct Ops<T: Protocol>(PhantomData<T>);

/// What a callback returns for a count of bytes.
#[inline]
fn count(result: Result<usize>) -> ffi::c_int {
    match result {
        Ok(n) => ffi::c_int::try_from(n).unwrap_or(ffi::c_int::MAX),
        Err(error) => error.to_errno(),
    }
}

/// What a callback returns for success.
#[inline]
pub(super) fn done(result: Result) -> ffi::c_int {
    match result {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}

/// The bytes of an address.
///
/// # Safety
///
/// `addr` must be valid for reads of `len` bytes, if `len` is positive, which do not change for
/// `'a`.
#[inline]
unsafe fn address<'a>(addr: *mut bindings::sockaddr_unsized, len: ffi::c_int) -> &'a [u8] {
    match usize::try_from(len) {
        // SAFETY: By the safety requirements.
        Ok(len) if len > 0 => unsafe { slice::from_raw_parts(addr.cast::<u8>(), len) },
        _ => &[],
    }
}

impl<T: Protocol> Ops<T> {
    const TABLE: bindings::proto_ops = bindings::proto_ops {
        family: T::FAMILY,
        owner: this_module::<T::OwnerModule>().as_ptr(),
        release: Some(Life::<T>::release_callback),
        bind: if T::HAS_BIND {
            Some(Self::bind_callback)
        } else {
            Some(bindings::sock_no_bind)
        },
        connect: if T::HAS_CONNECT {
            Some(Self::connect_callback)
        } else {
            Some(bindings::sock_no_connect)
        },
        socketpair: Some(bindings::sock_no_socketpair),
        accept: Some(bindings::sock_no_accept),
        getname: if T::HAS_GETNAME {
            Some(Self::getname_callback)
        } else {
            Some(bindings::sock_no_getname)
        },
        poll: if T::HAS_POLL {
            Some(Self::poll_callback)
        } else {
            None
        },
        ioctl: if T::HAS_IOCTL {
            Some(Self::ioctl_callback)
        } else {
            Some(bindings::sock_no_ioctl)
        },
        #[cfg(CONFIG_COMPAT)]
        compat_ioctl: if T::HAS_IOCTL {
            Some(Self::compat_ioctl_callback)
        } else {
            None
        },
        listen: Some(bindings::sock_no_listen),
        shutdown: Some(bindings::sock_no_shutdown),
        setsockopt: if T::HAS_SETSOCKOPT {
            Some(Self::setsockopt_callback)
        } else {
            None
        },
        getsockopt_iter: if T::HAS_GETSOCKOPT {
            Some(Self::getsockopt_callback)
        } else {
            None
        },
        sendmsg: if T::HAS_SENDMSG {
            Some(Self::sendmsg_callback)
        } else {
            Some(bindings::sock_no_sendmsg)
        },
        recvmsg: if T::HAS_RECVMSG {
            Some(Self::recvmsg_callback)
        } else {
            Some(bindings::sock_no_recvmsg)
        },
        mmap: Some(bindings::sock_no_mmap),
        ..pin_init::zeroed()
    };

    /// The table for the protocol `T`.
    pub(super) const fn table() -> &'static bindings::proto_ops {
        &Self::TABLE
    }

    /// # Safety
    ///
    /// `sock` must be a live socket of this family, `addr` valid for reads of `len` bytes.
    unsafe extern "C" fn bind_callback(
        sock: *mut bindings::socket,
        addr: *mut bindings::sockaddr_unsized,
        len: ffi::c_int,
    ) -> ffi::c_int {
        // SAFETY: By the safety requirements.
        done(unsafe { T::bind(Socket::from_raw(sock), address(addr, len)) })
    }

    /// # Safety
    ///
    /// As for [`Self::bind_callback`].
    unsafe extern "C" fn connect_callback(
        sock: *mut bindings::socket,
        addr: *mut bindings::sockaddr_unsized,
        len: ffi::c_int,
        flags: ffi::c_int,
    ) -> ffi::c_int {
        // SAFETY: By the safety requirements.
        done(unsafe { T::connect(Socket::from_raw(sock), address(addr, len), flags) })
    }

    /// # Safety
    ///
    /// `sock` must be a live socket of this family, `addr` valid for writes of the length of its
    /// addresses.
    unsafe extern "C" fn getname_callback(
        sock: *mut bindings::socket,
        addr: *mut bindings::sockaddr,
        peer: ffi::c_int,
    ) -> ffi::c_int {
        // Not every caller in the kernel has room for the longest address there is.
        let mut out = SockAddrBuf::new();
        // SAFETY: `sock` is a live socket.
        let result = T::getname(unsafe { Socket::from_raw(sock) }, &mut out, peer != 0);
        count(result.map(|len| {
            let len = len.min(out.len());
            // SAFETY: Both are valid for `len` bytes, and `out` is not known to the caller.
            unsafe { ptr::copy_nonoverlapping(out.as_ptr(), addr.cast::<u8>(), len) };
            len
        }))
    }

    /// # Safety
    ///
    /// `sock` must be a live socket of this family, `msg` a message to be sent that only this call
    /// uses.
    unsafe extern "C" fn sendmsg_callback(
        sock: *mut bindings::socket,
        msg: *mut bindings::msghdr,
        len: usize,
    ) -> ffi::c_int {
        // SAFETY: By the safety requirements.
        let mut msg = unsafe { MsgSource::from_raw(msg) };
        // SAFETY: `sock` is a live socket.
        let sent = T::sendmsg(unsafe { Socket::from_raw(sock) }, &mut msg, len);
        // C goes on from there in what it has given.
        count(sent.map(|sent| sent.min(len)))
    }

    /// # Safety
    ///
    /// `sock` must be a live socket of this family, `msg` a message to be filled in that only this
    /// call uses, with a null name or room for the longest address.
    unsafe extern "C" fn recvmsg_callback(
        sock: *mut bindings::socket,
        msg: *mut bindings::msghdr,
        len: usize,
        flags: ffi::c_int,
    ) -> ffi::c_int {
        // SAFETY: By the safety requirements.
        let mut msg = unsafe { MsgDest::from_raw(msg) };
        // SAFETY: `sock` is a live socket.
        let sk = unsafe { Socket::from_raw(sock) };
        let received = T::recvmsg(sk, &mut msg, len, flags);
        // C looks at so much of what was filled in; with the flag it knows that there may be less.
        let truncates = u32::from_ne_bytes(flags.to_ne_bytes()) & MSG_TRUNC != 0;
        count(received.map(|received| {
            if truncates {
                received
            } else {
                received.min(len)
            }
        }))
    }

    /// # Safety
    ///
    /// `sock` must be the live socket, of this family, of `file`; `table` must be null or valid.
    unsafe extern "C" fn poll_callback(
        file: *mut bindings::file,
        sock: *mut bindings::socket,
        table: *mut bindings::poll_table_struct,
    ) -> bindings::__poll_t {
        // SAFETY: By the safety requirements. Both are for the duration of this call.
        let (sk, table) = unsafe { (Socket::from_raw(sock), PollTable::from_raw(file, table)) };
        T::poll(sk, &table)
    }

    /// # Safety
    ///
    /// `sock` must be a live socket of this family.
    unsafe extern "C" fn ioctl_callback(
        sock: *mut bindings::socket,
        cmd: ffi::c_uint,
        arg: ffi::c_ulong,
    ) -> ffi::c_int {
        // SAFETY: By the safety requirements.
        T::ioctl(unsafe { Socket::from_raw(sock) }, cmd, arg).unwrap_or_else(|e| e.to_errno())
    }

    /// # Safety
    ///
    /// As for [`Self::ioctl_callback`].
    #[cfg(CONFIG_COMPAT)]
    unsafe extern "C" fn compat_ioctl_callback(
        sock: *mut bindings::socket,
        cmd: ffi::c_uint,
        arg: ffi::c_ulong,
    ) -> ffi::c_int {
        // CAST: A pointer of a 32-bit process.
        // SAFETY: Pure computation.
        let arg = unsafe { bindings::weft_helper_compat_ptr(arg as u32) }.addr();
        // SAFETY: By the safety requirements.
        unsafe { Self::ioctl_callback(sock, cmd, arg) }
    }

    /// # Safety
    ///
    /// `sock` must be a live socket of this family; `val`, if kernel memory, valid for reads of
    /// `len` bytes.
    unsafe extern "C" fn setsockopt_callback(
        sock: *mut bindings::socket,
        level: ffi::c_int,
        name: ffi::c_int,
        val: bindings::sockptr_t,
        len: ffi::c_uint,
    ) -> ffi::c_int {
        // SAFETY: By the safety requirements.
        let (sk, val) = unsafe { (Socket::from_raw(sock), OptIn::from_raw(val, len as usize)) };
        done(T::setsockopt(sk, level, name, val))
    }

    /// # Safety
    ///
    /// `sock` must be a live socket of this family, `opt` a valid `sockopt_t` that only this call
    /// uses.
    unsafe extern "C" fn getsockopt_callback(
        sock: *mut bindings::socket,
        level: ffi::c_int,
        name: ffi::c_int,
        opt: *mut bindings::sockopt_t,
    ) -> ffi::c_int {
        // SAFETY: By the safety requirements.
        let mut val = unsafe { OptOut::from_raw(opt) };
        // SAFETY: `sock` is a live socket.
        let sk = unsafe { Socket::from_raw(sock) };
        T::getsockopt(sk, level, name, &mut val).unwrap_or_else(|e| e.to_errno())
    }
}
