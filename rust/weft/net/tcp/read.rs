// SPDX-License-Identifier: GPL-2.0

//! Reading the received stream where it is, without copying it.
//!
//! C: `tcp_read_sock` in [`net/ipv4/tcp.c`](srctree/net/ipv4/tcp.c)

use super::{
    CallbackSk,
    LockedSk,
    TcpSk, //
};
use crate::{
    bindings,
    net::skb::OwnedSkb, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    alloc::Flags,
    error::to_result,
    ffi::{
        c_int,
        c_uint, //
    },
    prelude::*, //
};

/// The part of the received stream that comes next.
///
/// What is copied, extracted or skipped is consumed and leaves the receive queue; the rest stays for the next read.
///
/// # Invariants
///
/// `skb` is valid for `'a` and has at least `offset + left` bytes of data.
pub struct SkbChunk<'a> {
    skb: NonNull<bindings::sk_buff>,
    offset: usize,
    left: usize,
    _skb: PhantomData<&'a mut OwnedSkb>,
}

impl SkbChunk<'_> {
    /// Number of bytes that are left.
    #[inline]
    pub fn len(&self) -> usize {
        self.left
    }

    /// Whether no bytes are left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The flags with which the reader may allocate memory: it usually holds a spinlock, also in process context.
    #[inline]
    pub fn gfp(&self) -> Flags {
        GFP_ATOMIC
    }

    /// The same as C has them.
    #[inline]
    pub(super) fn raw_gfp(&self) -> bindings::gfp_t {
        bindings::GFP_ATOMIC
    }

    /// The offset of the chunk and `len`, as C wants them, if that many bytes are left.
    #[inline]
    fn range(&self, len: usize) -> Result<(c_int, c_int)> {
        if len > self.left {
            return Err(EINVAL);
        }
        Ok((self.offset.try_into()?, len.try_into()?))
    }

    /// Consumes `len` bytes, if that many are left.
    #[inline]
    pub fn skip(&mut self, len: usize) -> Result {
        if len > self.left {
            return Err(EINVAL);
        }
        // INVARIANT: `offset + left` stays the same.
        self.offset += len;
        self.left -= len;
        Ok(())
    }

    /// Copies bytes to all of `dest` and consumes them, if that many are left.
    #[inline]
    pub fn copy_to(&mut self, dest: &mut [u8]) -> Result {
        let (offset, len) = self.range(dest.len())?;
        // SAFETY: By the type invariants the range is within the buffer; `dest` has `len` bytes.
        to_result(unsafe {
            bindings::skb_copy_bits(self.skb.as_ptr(), offset, dest.as_mut_ptr().cast(), len)
        })?;
        self.skip(dest.len())
    }

    /// Takes `len` bytes out without copying them and consumes them, if that many are left.
    ///
    /// Nothing is consumed if there is no memory (`ENOMEM`).
    #[inline]
    pub fn extract(&mut self, len: usize) -> Result<OwnedSkb> {
        let (offset, size) = self.range(len)?;
        // SAFETY: By the type invariants the range is within the buffer.
        let skb =
            unsafe { bindings::pskb_extract(self.skb.as_ptr(), offset, size, self.raw_gfp()) };
        let skb = NonNull::new(skb).ok_or(ENOMEM)?;
        // SAFETY: This is a new header that belongs to no socket, and nobody else knows it.
        let skb = unsafe { OwnedSkb::from_raw(skb) };
        self.skip(len)?;
        Ok(skb)
    }
}

/// What the actor finds behind its descriptor.
struct Reader<F> {
    read: F,
    result: Result,
}

/// Gives received chunks to `read`.
///
/// # Safety
///
/// The lock of the socket must be held, and `read` must not be able to read from the same socket:
/// that would free the buffer under it.
#[inline]
unsafe fn read_sock<F>(sk: &TcpSk, read: F) -> Result<usize>
where
    F: FnMut(&mut SkbChunk<'_>) -> Result,
{
    let mut reader = Reader {
        read,
        result: Ok(()),
    };
    let mut descriptor = bindings::read_descriptor_t {
        // More than one buffer per call.
        count: 1,
        arg: bindings::read_descriptor_t__bindgen_ty_1 {
            data: (&raw mut reader).cast(),
        },
        ..Default::default()
    };
    // SAFETY: The socket is a valid TCP socket, locked by the caller; the actor gets the reader it expects.
    let copied = unsafe { bindings::tcp_read_sock(sk.as_raw(), &mut descriptor, Some(actor::<F>)) };
    reader.result?;
    usize::try_from(copied).map_err(|_| Error::from_errno(copied))
}

/// # Safety
///
/// To be called by `tcp_read_sock`, called by [`read_sock`] with the same `F`.
unsafe extern "C" fn actor<F>(
    descriptor: *mut bindings::read_descriptor_t,
    skb: *mut bindings::sk_buff,
    offset: c_uint,
    len: usize,
) -> c_int
where
    F: FnMut(&mut SkbChunk<'_>) -> Result,
{
    // SAFETY: `read_sock` put a pointer to its reader there, and does not use it during the call.
    let reader = unsafe { &mut *(*descriptor).arg.data.cast::<Reader<F>>() };
    // After partial progress TCP asks again for the rest of the buffer: stick to the error.
    if reader.result.is_err() {
        return 0;
    }
    let Some(skb) = NonNull::new(skb) else {
        return 0;
    };
    // INVARIANT: TCP gives a valid buffer with this many bytes after the offset.
    let mut chunk = SkbChunk {
        skb,
        // CAST: `usize` has at least 32 bits wherever the kernel has networking.
        offset: offset as usize,
        left: len,
        _skb: PhantomData,
    };
    reader.result = (reader.read)(&mut chunk);
    // No more than `len`, which is part of a buffer's length, less than 2^31. Zero makes TCP stop.
    c_int::try_from(len - chunk.left).unwrap_or(0)
}

impl LockedSk<'_> {
    /// Gives what was received to `read`, chunk by chunk, until there is no more or `read` fails or consumes nothing.
    ///
    /// Returns how much was consumed, or the error of `read`; what it had consumed before stays consumed. `read` must
    /// not use the socket's sleeping methods, as the socket is locked.
    #[inline]
    pub fn read_sock<F>(&mut self, read: F) -> Result<usize>
    where
        F: FnMut(&mut SkbChunk<'_>) -> Result,
    {
        // SAFETY: `self` is proof of the lock. It is borrowed, and there is no second token for a locked socket.
        unsafe { read_sock(self, read) }
    }
}

impl CallbackSk<'_> {
    /// Gives what was received to `read`, as [`LockedSk::read_sock`] does. `read` must not sleep.
    #[inline]
    pub fn read_sock<F>(&mut self, read: F) -> Result<usize>
    where
        F: FnMut(&mut SkbChunk<'_>) -> Result,
    {
        // SAFETY: By the invariant of `CallbackSk` TCP holds the lock. `self` is borrowed, and there is no second token
        // for a locked socket.
        unsafe { read_sock(self, read) }
    }
}
