// SPDX-License-Identifier: GPL-2.0

//! Values of socket options.
//!
//! C headers: [`include/linux/sockptr.h`](srctree/include/linux/sockptr.h),
//! [`include/linux/net.h`](srctree/include/linux/net.h) (`sockopt_t`)
//!
//! The value of an option is in user memory, or in kernel memory if the caller is the kernel
//! itself; [`OptIn`] and [`OptOut`] hide which. Copying may sleep and can fail with `EFAULT`. User
//! memory may change at any time: read a value once and check what was read.

use crate::bindings;
use core::{
    marker::PhantomData,
    mem::size_of, //
};
use kernel::{
    iov::IovIterDest,
    prelude::*, //
};

/// The value given to `setsockopt`.
///
/// # Invariants
///
/// If `value` points to kernel memory, `len` bytes of it are valid for reads during `'a`.
pub struct OptIn<'a> {
    value: bindings::sockptr_t,
    len: usize,
    _value: PhantomData<&'a [u8]>,
}

impl OptIn<'_> {
    /// Wraps the arguments of a `setsockopt` call.
    ///
    /// # Safety
    ///
    /// The type invariants must hold for the lifetime that the caller chooses.
    #[inline]
    pub(super) unsafe fn from_raw(value: bindings::sockptr_t, len: usize) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            value,
            len,
            _value: PhantomData,
        }
    }

    /// The length of the value.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the value has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads the start of the value. `EINVAL` if it is shorter than `out`, `EFAULT` if it cannot be
    /// read. May sleep.
    pub fn read_exact(&self, out: &mut [u8]) -> Result {
        if self.len < out.len() {
            return Err(EINVAL);
        }
        let (to, len) = (out.as_mut_ptr().cast(), out.len());
        // SAFETY: `out` is valid for writes of its length; kernel memory, by the type invariants,
        // for reads of at least as much. The helper checks user memory itself.
        match unsafe { bindings::weft_helper_copy_from_sockptr_offset(to, self.value, 0, len) } {
            0 => Ok(()),
            _ => Err(EFAULT),
        }
    }

    /// Reads the value as an `int`; more bytes are ignored. `EINVAL` if it is shorter. May sleep.
    pub fn read_i32(&self) -> Result<i32> {
        let mut value = [0; size_of::<i32>()];
        self.read_exact(&mut value)?;
        Ok(i32::from_ne_bytes(value))
    }
}

/// Where `getsockopt` wants the value.
///
/// # Invariants
///
/// `opt` is a valid `sockopt_t`, used only through this view during `'a`; its `iter_out` is a
/// destination.
pub struct OptOut<'a> {
    opt: *mut bindings::sockopt_t,
    _opt: PhantomData<&'a mut bindings::sockopt_t>,
}

impl OptOut<'_> {
    /// Wraps the `sockopt_t` of a `getsockopt` call.
    ///
    /// # Safety
    ///
    /// The type invariants must hold for the lifetime that the caller chooses.
    #[inline]
    pub(super) unsafe fn from_raw(opt: *mut bindings::sockopt_t) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            opt,
            _opt: PhantomData,
        }
    }

    /// The room for the value, until [`Self::set_len`] was called; never negative before that.
    #[inline]
    pub fn len(&self) -> i32 {
        // SAFETY: Valid for reads by the type invariants.
        unsafe { (*self.opt).optlen }
    }

    /// Whether there is no room for a value.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets the length that the caller is told, also when the call fails.
    #[inline]
    pub fn set_len(&mut self, len: i32) {
        // SAFETY: Valid for writes by the type invariants.
        unsafe { (*self.opt).optlen = len };
    }

    /// Appends `data` to the value. `EFAULT` if it does not fit or the memory is not writable. May
    /// sleep. `data` must not lie in a socket's state, from which hardened kernels refuse to copy.
    pub fn write(&mut self, data: &[u8]) -> Result {
        // SAFETY: By the type invariants the iterator is a valid destination, only used here.
        let iter = unsafe { IovIterDest::from_raw(&raw mut (*self.opt).iter_out) };
        if iter.copy_to_iter(data) == data.len() {
            Ok(())
        } else {
            Err(EFAULT)
        }
    }

    /// Whether the value goes to user memory, not to kernel memory.
    #[inline]
    pub fn is_user_backed(&self) -> bool {
        // SAFETY: Valid for reads by the type invariants.
        let iter_type = u32::from(unsafe { (*self.opt).iter_out.iter_type });
        iter_type == bindings::iter_type_ITER_UBUF || iter_type == bindings::iter_type_ITER_IOVEC
    }
}
