// SPDX-License-Identifier: GPL-2.0

//! Pages that the network stack can send from where they are.

use crate::bindings;

/// A view of pages that somebody holds references of.
///
/// # Invariants
///
/// The pages of `vecs` are referenced during `'a` and are no slab pages, and the entries have `len` bytes.
#[derive(Clone, Copy)]
pub struct PageList<'a> {
    vecs: &'a [bindings::bio_vec],
    len: usize,
}

impl<'a> PageList<'a> {
    /// Makes the view.
    ///
    /// # Safety
    ///
    /// The type invariants must hold.
    #[inline]
    pub(super) unsafe fn new(vecs: &'a [bindings::bio_vec], len: usize) -> Self {
        // INVARIANT: The caller vouches for it.
        Self { vecs, len }
    }

    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The fragments, for the send path of this crate.
    #[inline]
    pub(crate) fn bvecs(&self) -> &'a [bindings::bio_vec] {
        self.vecs
    }
}
