// SPDX-License-Identifier: GPL-2.0

//! Pages of a user's memory, lent to the kernel for a while.
//!
//! C headers: [`include/linux/uio.h`](srctree/include/linux/uio.h) (`iov_iter_get_pages2`),
//! [`include/linux/skbuff.h`](srctree/include/linux/skbuff.h) (`mm_account_pinned_pages`)
//!
//! The user can write to the pages at any time, so their bytes are never visible as a slice: they can be sent from where
//! they are, and copied.

use super::pages::PageList;
use crate::bindings;
use core::ptr;
use kernel::{
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    page::PAGE_SIZE,
    prelude::*, //
};

/// What a user is charged for pages against `RLIMIT_MEMLOCK`.
///
/// # Invariants
///
/// `pin` was charged by `mm_account_pinned_pages` only, or not at all, and that was not undone.
struct Charge {
    pin: bindings::ubuf_info_msgzc_mmpin,
    /// Pages that it is for.
    pages: usize,
}

// SAFETY: The charge is a counted reference of a user and a number; neither belongs to a thread.
unsafe impl Send for Charge {}
// SAFETY: Nothing can be done with a shared reference.
unsafe impl Sync for Charge {}

impl Charge {
    /// Charges the calling task's user for as many pages as `len` bytes in one piece may take. `ENOMEM` beyond the limit.
    fn new(len: usize) -> Result<Self> {
        // INVARIANT: Nothing is charged yet.
        let mut this = Self {
            pin: bindings::ubuf_info_msgzc_mmpin {
                user: ptr::null_mut(),
                num_pg: 0,
            },
            pages: 0,
        };
        this.cover(len.div_ceil(PAGE_SIZE) + 1)?;
        Ok(this)
    }

    /// Makes sure that so many pages are charged for. `ENOMEM` beyond the limit.
    fn cover(&mut self, pages: usize) -> Result {
        let Some(more @ 1..) = pages.checked_sub(self.pages) else {
            return Ok(());
        };
        // The kernel adds two pages to each charge. Who has many small pieces is charged for some in advance.
        let more = more.max(self.pages);
        // SAFETY: This is process context, and `pin` is a valid charge, of this user if any.
        let result = unsafe {
            bindings::mm_account_pinned_pages(&mut self.pin, (more - 1).saturating_mul(PAGE_SIZE))
        };
        if result != 0 {
            return Err(ENOMEM);
        }
        self.pages += more;
        Ok(())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the charge was not undone; if there is none this does nothing. Any context will do.
        unsafe { bindings::mm_unaccount_pinned_pages(&mut self.pin) };
    }
}

/// Pages of a user's memory.
///
/// # Invariants
///
/// Each entry of `vecs` owns one reference of its page, which is a user's and thus no slab page.
pub struct UserPages {
    vecs: KVec<bindings::bio_vec>,
    len: usize,
    charge: Charge,
}

// SAFETY: Page reference counts are atomic, and the bytes are only copied by means that expect them to change.
unsafe impl Send for UserPages {}
// SAFETY: As above.
unsafe impl Sync for UserPages {}

impl UserPages {
    /// Takes the pages of the next `len` bytes of `source`. May sleep.
    ///
    /// Fails with `ENOMEM`, also if the user may not have so much memory locked (`RLIMIT_MEMLOCK`), and with `EFAULT` if
    /// `source` is not memory of a user that can be read, or has fewer bytes. After an error nothing is held.
    pub fn take(source: &mut IovIterSource<'_>, len: usize) -> Result<Self> {
        // SAFETY: The iterator is valid; this only looks at its type.
        if !unsafe { bindings::weft_helper_user_backed_iter(source.as_raw()) } {
            return Err(EFAULT);
        }
        let charge = Charge::new(len)?;
        let mut this = Self {
            vecs: KVec::with_capacity(len.div_ceil(PAGE_SIZE) + 1, GFP_KERNEL)?,
            len: 0,
            charge,
        };
        while this.len < len {
            this.append(source, len - this.len)?;
        }
        Ok(this)
    }

    /// Adds the next page, or as much of it as the iterator has in one piece.
    fn append(&mut self, source: &mut IovIterSource<'_>, wanted: usize) -> Result {
        // Small pieces of memory take a page each.
        self.vecs.reserve(1, GFP_KERNEL)?;
        self.charge.cover(self.vecs.len() + 1)?;
        let (mut page, mut start) = (ptr::null_mut(), 0);
        // SAFETY: The iterator is valid and over a user's memory, and there is room for one page.
        let taken = unsafe {
            bindings::iov_iter_get_pages2(
                source.as_raw(),
                &mut page,
                wanted.min(PAGE_SIZE),
                1,
                &mut start,
            )
        };
        let taken = match usize::try_from(taken) {
            Ok(taken @ 1..) => taken,
            _ => return Err(EFAULT),
        };
        let vec = bindings::bio_vec {
            bv_page: page,
            // CAST: At most a page.
            bv_len: taken as u32,
            bv_offset: start as u32,
        };
        self.len += taken;
        // INVARIANT: The reference of the page was taken for us.
        self.vecs.push_within_capacity(vec).map_err(|_| ENOMEM)
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

    /// The pages, to be sent from.
    #[inline]
    pub fn pages(&self) -> PageList<'_> {
        // SAFETY: By the type invariants each page is referenced and no slab page.
        unsafe { PageList::new(&self.vecs, self.len) }
    }

    /// Copies to `dest` as much as fits and returns how much that was; `EFAULT` if `dest` cannot be written. May sleep.
    pub fn copy_to(&self, dest: &mut IovIterDest<'_>) -> Result<usize> {
        let mut done = 0;
        for vec in self.vecs.iter() {
            let wanted = (vec.bv_len as usize).min(dest.len());
            if wanted == 0 {
                break;
            }
            // SAFETY: By the type invariants the page is referenced, and the entry lies within it. The bytes are copied
            // by the kernel's own means, which do not mind that they change.
            let copied = unsafe {
                bindings::copy_page_to_iter(
                    vec.bv_page,
                    vec.bv_offset as usize,
                    wanted,
                    dest.as_raw(),
                )
            };
            done += copied;
            if copied < wanted {
                return Err(EFAULT);
            }
        }
        Ok(done)
    }
}

impl Drop for UserPages {
    fn drop(&mut self) {
        for vec in self.vecs.iter() {
            // SAFETY: By the type invariants this page reference is ours.
            unsafe { bindings::weft_helper_put_page(vec.bv_page) };
        }
    }
}
