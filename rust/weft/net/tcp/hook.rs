// SPDX-License-Identifier: GPL-2.0

//! `sk_user_data`, the callback pointers of a socket, and the lock they change under.

use crate::bindings;
use core::ptr::NonNull;
use kernel::{
    ffi::c_void,
    types::NotThreadSafe, //
};

/// One of the callback pointers of a socket.
pub(super) type Callback = unsafe extern "C" fn(*mut bindings::sock);

/// `sk_callback_lock` held for reading, as callbacks do.
pub(super) struct ReadLock {
    sk: *mut bindings::sock,
    _not_send: NotThreadSafe,
}

impl ReadLock {
    /// # Safety
    ///
    /// `sk` must be valid until the lock is dropped.
    #[inline]
    pub(super) unsafe fn new(sk: *mut bindings::sock) -> Self {
        // SAFETY: The caller promises a valid socket.
        unsafe { bindings::weft_helper_sk_callback_read_lock_bh(sk) };
        Self {
            sk,
            _not_send: NotThreadSafe,
        }
    }
}

impl Drop for ReadLock {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: The socket is valid, and `new` took the lock.
        unsafe { bindings::weft_helper_sk_callback_read_unlock_bh(self.sk) }
    }
}

/// `sk_callback_lock` held for writing.
pub(super) struct WriteLock {
    sk: *mut bindings::sock,
    _not_send: NotThreadSafe,
}

impl WriteLock {
    /// # Safety
    ///
    /// `sk` must be valid until the lock is dropped.
    #[inline]
    pub(super) unsafe fn new(sk: *mut bindings::sock) -> Self {
        // SAFETY: The caller promises a valid socket.
        unsafe { bindings::weft_helper_sk_callback_write_lock_bh(sk) };
        Self {
            sk,
            _not_send: NotThreadSafe,
        }
    }
}

impl Drop for WriteLock {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: The socket is valid, and `new` took the lock.
        unsafe { bindings::weft_helper_sk_callback_write_unlock_bh(self.sk) }
    }
}

/// What we have put into `sk_user_data`.
///
/// It bears the mark that keeps a child from inheriting it. When it has been taken away, a BPF program may put something
/// of its own there, which bears other marks.
///
/// # Safety
///
/// `sk` must be valid. What is found stays valid only under a lock that keeps it from being taken away.
#[inline]
pub(super) unsafe fn get(sk: *mut bindings::sock) -> Option<NonNull<c_void>> {
    // SAFETY: The caller promises a valid socket.
    let data = unsafe { bindings::weft_helper_sk_user_data(sk) };
    if data & bindings::WEFT_SK_USER_DATA_MARKS != bindings::WEFT_SK_USER_DATA_NOCOPY {
        return None;
    }
    // CAST: C keeps the marks in the low bits of the pointer.
    NonNull::new((data & !bindings::WEFT_SK_USER_DATA_MARKS) as *mut c_void)
}
