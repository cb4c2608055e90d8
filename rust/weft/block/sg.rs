// SPDX-License-Identifier: GPL-2.0

//! Memory as a list of its parts, for DMA.
//!
//! C header: [`include/linux/scatterlist.h`](srctree/include/linux/scatterlist.h)

use core::ptr::NonNull;
use kernel::bindings;

/// A scatter list.
#[derive(Clone, Copy)]
pub struct Sg {
    /// The first entry; the list may be chained.
    pub list: NonNull<bindings::scatterlist>,
    /// How many entries are in use, at least one.
    pub nents: u32,
}

/// An owner of memory that is described by a scatter list.
///
/// Whoever maps the memory for DMA takes the owner by value and keeps it until the memory is unmapped.
///
/// # Safety
///
/// While the value exists, wherever it is moved to, and until it is borrowed mutably or consumed by a method of its
/// type:
///
/// - [`SgSource::sg`] gives the same valid list each time, or nothing each time;
/// - the memory in it stays allocated, and may be read and written by hardware at any time;
/// - nobody but the caller of `sg` reads or writes the entries.
pub unsafe trait SgSource: Send {
    /// The list, or nothing if there is no data or it has not been listed yet.
    fn sg(&self) -> Option<Sg>;
}
