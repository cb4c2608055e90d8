// SPDX-License-Identifier: GPL-2.0

//! Memory: what the network stack can hold on to, and how to ask for more.

pub mod bytes;
pub mod frags;
pub mod noio;
pub mod pages;
pub mod user_pages;

use crate::bindings;
use kernel::page::PAGE_SIZE;

/// Bytes of memory that this machine has and the kernel manages. Any context.
pub fn total_bytes() -> u64 {
    // SAFETY: Reads a counter.
    let pages = unsafe { bindings::weft_helper_totalram_pages() };
    // CAST: To wider types.
    (pages as u64).saturating_mul(PAGE_SIZE as u64)
}
