// SPDX-License-Identifier: GPL-2.0

//! Copying small pieces of a stream together.

use super::SkbChunk;
use crate::{
    bindings,
    net::skb::OwnedSkb, //
};
use core::{
    ptr::NonNull,
    slice, //
};
use kernel::prelude::*;

/// Bytes that one buffer gathers at most; with its header it fills about a page.
const CAPACITY: usize = 3584;

/// A network buffer that pieces of a stream are copied into.
///
/// A peer decides how small the segments are that it sends. Keeping the buffer of each would cost hundreds of bytes for
/// one; copied together they cost what they are.
///
/// # Invariants
///
/// `raw` is the buffer that `skb` owns. It is linear and was never cloned, so its room at the end is ours to write.
pub struct GatherSkb {
    skb: OwnedSkb,
    raw: NonNull<bindings::sk_buff>,
}

// SAFETY: Like the `OwnedSkb` in it.
unsafe impl Send for GatherSkb {}

impl GatherSkb {
    /// Allocates an empty one in the context of `chunk`, for up to `wanted` bytes. `ENOMEM`.
    pub fn new(chunk: &SkbChunk<'_>, wanted: usize) -> Result<Self> {
        let size = u32::try_from(wanted.min(CAPACITY))?;
        // SAFETY: The helper only allocates.
        let raw = unsafe { bindings::weft_helper_alloc_skb(size, chunk.raw_gfp()) };
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        // INVARIANT: A new buffer is linear and not cloned.
        Ok(Self {
            // SAFETY: The buffer was just made and belongs to nobody else.
            skb: unsafe { OwnedSkb::from_raw(raw) },
            raw,
        })
    }

    /// Bytes that still fit.
    pub fn room(&self) -> usize {
        // SAFETY: The buffer is valid.
        usize::try_from(unsafe { bindings::weft_helper_skb_tailroom(self.raw.as_ptr()) })
            .unwrap_or(0)
    }

    /// Copies the next `len` bytes of `chunk` to the end and consumes them. `EINVAL` if they do not fit.
    pub fn append(&mut self, chunk: &mut SkbChunk<'_>, len: usize) -> Result {
        if len > self.room() || len > chunk.len() {
            return Err(EINVAL);
        }
        let size = u32::try_from(len)?;
        // SAFETY: By the type invariants the buffer is linear, and it has room for `size` more bytes.
        let space = unsafe { bindings::skb_put(self.raw.as_ptr(), size) }.cast::<u8>();
        // SAFETY: `skb_put` has just added these bytes, which nobody else refers to; zeroes make them initialised.
        let space = unsafe {
            space.write_bytes(0, len);
            slice::from_raw_parts_mut(space, len)
        };
        chunk.copy_to(space)
    }

    /// The buffer.
    pub fn into_skb(self) -> OwnedSkb {
        self.skb
    }
}
