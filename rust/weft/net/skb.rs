// SPDX-License-Identifier: GPL-2.0

//! Received data in socket buffers.
//!
//! C header: [`include/linux/skbuff.h`](srctree/include/linux/skbuff.h)
//!
//! An [`OwnedSkb`] is a range of a TCP stream that was taken out of a receive queue without copying: a buffer header
//! of our own that shares the data with whoever else has it. The data is read only.

use crate::bindings;
use core::{
    marker::PhantomData,
    mem::{
        offset_of,
        ManuallyDrop, //
    },
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    error::to_result,
    iov::IovIterDest,
    prelude::*,
    types::Opaque, //
};

// The fields below are read directly: bindgen must agree with C on where they are.
static_assert!(offset_of!(bindings::sk_buff, len) == bindings::WEFT_SKB_LEN_OFFSET);
static_assert!(offset_of!(bindings::sk_buff, truesize) == bindings::WEFT_SKB_TRUESIZE_OFFSET);
static_assert!(bindings::WEFT_SKB_NEXT_OFFSET == 0);

/// A socket buffer.
///
/// # Invariants
///
/// The buffer is valid for the lifetime of a borrow, and its data does not change.
#[repr(transparent)]
pub struct Skb(Opaque<bindings::sk_buff>);

// SAFETY: Through a shared reference the buffer is only read.
unsafe impl Sync for Skb {}

impl Skb {
    /// The C structure.
    #[inline]
    fn as_raw(&self) -> *mut bindings::sk_buff {
        self.0.get()
    }

    /// Number of data bytes.
    #[inline]
    pub fn len(&self) -> usize {
        // SAFETY: By the type invariants the buffer is valid.
        let len = unsafe { (*self.as_raw()).len };
        // CAST: `usize` has at least 32 bits wherever the kernel has networking.
        len as usize
    }

    /// Whether there is no data.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The memory that the buffer is charged with.
    #[inline]
    pub fn truesize(&self) -> usize {
        // SAFETY: By the type invariants the buffer is valid.
        let truesize = unsafe { (*self.as_raw()).truesize };
        // CAST: As in `len`.
        truesize as usize
    }

    /// `offset` and `len` as C wants them, if that range is within the buffer.
    #[inline]
    fn range(&self, offset: usize, len: usize) -> Result<(i32, i32)> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len() => Ok((offset.try_into()?, len.try_into()?)),
            _ => Err(EINVAL),
        }
    }

    /// Copies `len` bytes from `offset` on to `dest`. May sleep if that is user memory.
    ///
    /// `EINVAL` if the buffer or `dest` is shorter, `EFAULT` if `dest` cannot be written.
    #[inline]
    pub fn copy_to_iter(&self, offset: usize, dest: &mut IovIterDest<'_>, len: usize) -> Result {
        if len > dest.len() {
            return Err(EINVAL);
        }
        let (offset, len) = self.range(offset, len)?;
        // SAFETY: The buffer is valid and the range is within it; `dest` may be written.
        to_result(unsafe {
            bindings::skb_copy_datagram_iter(self.as_raw(), offset, dest.as_raw(), len)
        })
    }

    /// Copies the bytes from `offset` on to `dest`, all of which must be there.
    #[inline]
    pub fn copy_bits(&self, offset: usize, dest: &mut [u8]) -> Result {
        let (offset, len) = self.range(offset, dest.len())?;
        // SAFETY: The buffer is valid and the range is within it; `dest` has that many bytes.
        to_result(unsafe {
            bindings::skb_copy_bits(self.as_raw(), offset, dest.as_mut_ptr().cast(), len)
        })
    }
}

/// A socket buffer whose header is ours alone.
///
/// # Invariants
///
/// `skb` is valid, its header is referenced by nobody else and is on no list, and it belongs to no socket.
pub struct OwnedSkb {
    skb: NonNull<bindings::sk_buff>,
}

// SAFETY: The header is ours alone, and the data it shares is read only and freed by atomic counts.
unsafe impl Send for OwnedSkb {}
// SAFETY: As for `Skb`.
unsafe impl Sync for OwnedSkb {}

impl OwnedSkb {
    /// Takes over a buffer.
    ///
    /// # Safety
    ///
    /// The type invariants must hold for `skb`, and the caller gives it away.
    #[inline]
    pub(crate) unsafe fn from_raw(skb: NonNull<bindings::sk_buff>) -> Self {
        // INVARIANT: The caller promises it.
        Self { skb }
    }
}

impl Deref for OwnedSkb {
    type Target = Skb;

    #[inline]
    fn deref(&self) -> &Skb {
        // SAFETY: The buffer is valid as long as `self`; `Skb` is transparent.
        unsafe { self.skb.cast().as_ref() }
    }
}

impl Drop for OwnedSkb {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants the buffer is ours. This variant works in every context.
        unsafe {
            bindings::dev_kfree_skb_any_reason(
                self.skb.as_ptr(),
                bindings::skb_drop_reason_SKB_CONSUMED,
            )
        }
    }
}

/// Buffers in the order they were added, chained through their headers: adding one needs no memory.
///
/// # Invariants
///
/// `head` is the first of a chain of buffers, ended by null, that are ours as in [`OwnedSkb`] but for being on this
/// chain. `tail` is the last of them if there is one. `bytes` is the sum of their lengths.
pub struct SkbQueue {
    head: *mut bindings::sk_buff,
    tail: *mut bindings::sk_buff,
    bytes: usize,
}

// SAFETY: Like the `OwnedSkb`s in it.
unsafe impl Send for SkbQueue {}
// SAFETY: As above.
unsafe impl Sync for SkbQueue {}

/// The link of a buffer to the next one.
///
/// # Safety
///
/// `skb` must be valid, and the header must be ours alone.
#[inline]
unsafe fn next(skb: *mut bindings::sk_buff) -> *mut *mut bindings::sk_buff {
    // SAFETY: The caller promises a valid buffer; all variants of the union begin with a pointer.
    unsafe { &raw mut (*skb).__bindgen_anon_1.__bindgen_anon_1.next }
}

impl SkbQueue {
    /// An empty queue.
    #[inline]
    pub const fn new() -> Self {
        // INVARIANT: There is no buffer.
        Self {
            head: ptr::null_mut(),
            tail: ptr::null_mut(),
            bytes: 0,
        }
    }

    /// Adds a buffer at the end.
    #[inline]
    pub fn push(&mut self, skb: OwnedSkb) {
        // The sum of lengths of buffers that are in memory cannot overflow.
        self.bytes = self.bytes.wrapping_add(skb.len());
        let skb = ManuallyDrop::new(skb).skb.as_ptr();
        // INVARIANT: The new buffer ends the chain; the one before it, if any, leads to it.
        // SAFETY: Both buffers are ours.
        unsafe {
            *next(skb) = ptr::null_mut();
            if self.head.is_null() {
                self.head = skb;
            } else {
                *next(self.tail) = skb;
            }
        }
        self.tail = skb;
    }

    /// Takes the first buffer out.
    #[inline]
    pub fn pop(&mut self) -> Option<OwnedSkb> {
        let skb = NonNull::new(self.head)?;
        // INVARIANT: The chain begins with the second buffer now, and the first leads nowhere.
        // SAFETY: By the type invariants the buffer is ours, and it leaves the chain.
        let skb = unsafe {
            self.head = *next(skb.as_ptr());
            *next(skb.as_ptr()) = ptr::null_mut();
            OwnedSkb::from_raw(skb)
        };
        self.bytes = self.bytes.wrapping_sub(skb.len());
        Some(skb)
    }

    /// Copies to `dest` as much as fits and returns how much that was; `EFAULT` if `dest` cannot be written. May sleep
    /// if that is user memory.
    pub fn copy_to_iter(&self, dest: &mut IovIterDest<'_>) -> Result<usize> {
        let mut done = 0;
        for skb in self.iter() {
            let wanted = skb.len().min(dest.len());
            if wanted == 0 {
                break;
            }
            skb.copy_to_iter(0, dest, wanted)?;
            done += wanted;
        }
        Ok(done)
    }

    /// Copies the first bytes to all of `dest`; `EINVAL` if there are fewer.
    pub fn copy_bits(&self, mut dest: &mut [u8]) -> Result {
        for skb in self.iter() {
            let wanted = skb.len().min(dest.len());
            let (part, rest) = dest.split_at_mut_checked(wanted).ok_or(EINVAL)?;
            skb.copy_bits(0, part)?;
            dest = rest;
        }
        if dest.is_empty() {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }

    /// Number of data bytes in all buffers.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is no buffer.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// The buffers in order.
    #[inline]
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            at: self.head,
            _queue: PhantomData,
        }
    }
}

impl Default for SkbQueue {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for SkbQueue {
    #[inline]
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

/// The iterator of [`SkbQueue::iter`].
///
/// # Invariants
///
/// `at` is null or a buffer of the queue, which is borrowed.
pub struct Iter<'a> {
    at: *mut bindings::sk_buff,
    _queue: PhantomData<&'a SkbQueue>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Skb;

    #[inline]
    fn next(&mut self) -> Option<&'a Skb> {
        let skb = NonNull::new(self.at)?;
        // SAFETY: By the type invariants the buffer is valid, and the queue it is in is borrowed for `'a`.
        unsafe {
            self.at = *next(self.at);
            Some(skb.cast().as_ref())
        }
    }
}
