// SPDX-License-Identifier: GPL-2.0

//! A buffer of a fixed length.

use core::ops::{
    Deref,
    DerefMut, //
};
use kernel::{
    alloc::{
        flags::__GFP_ZERO,
        Flags, //
    },
    prelude::*, //
};

/// Bytes in ordinary kernel memory, zero at first.
///
/// Unlike a vector that is filled with zeroes, the memory is cleared by the allocator in one go.
#[derive(Default)]
pub struct Bytes(KVec<u8>);

impl Bytes {
    /// No bytes.
    pub const EMPTY: Self = Self(KVec::new());

    /// Allocates `len` zero bytes. `ENOMEM`.
    #[inline]
    pub fn zeroed(len: usize, flags: Flags) -> Result<Self> {
        let mut bytes = KVec::with_capacity(len, flags | __GFP_ZERO)?;
        // SAFETY: The capacity is at least `len`, and the allocator has initialised it with zeroes.
        unsafe { bytes.inc_len(len) };
        Ok(Self(bytes))
    }
}

impl From<KVec<u8>> for Bytes {
    fn from(bytes: KVec<u8>) -> Self {
        Self(bytes)
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Bytes {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}
