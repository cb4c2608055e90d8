// SPDX-License-Identifier: GPL-2.0

//! Write-once payload memory made of page fragments.
//!
//! C headers: [`include/linux/skbuff.h`](srctree/include/linux/skbuff.h) (`skb_page_frag_refill`),
//! [`include/linux/bvec.h`](srctree/include/linux/bvec.h)
//!
//! The network stack can send pages without copying them (`MSG_SPLICE_PAGES`) if they are not slab memory and do not
//! change until the peer has them. [`Frags`] is such memory: filled once when it is made, read only from then on.
//! It is cut from the same per-task page fragments that TCP itself uses, up to 32 KiB each.

use super::pages::PageList;
use crate::bindings;
use core::{
    mem::MaybeUninit,
    slice, //
};
use kernel::{
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    page::PAGE_SIZE,
    prelude::*, //
};

/// Immutable bytes in page fragments.
///
/// # Invariants
///
/// Each entry of `vecs` owns one reference of its page, lies within one (compound) page that has a kernel address,
/// and its bytes are initialised and never written again.
pub struct Frags {
    vecs: KVec<bindings::bio_vec>,
    len: usize,
}

// SAFETY: The bytes are immutable and page reference counts are atomic.
unsafe impl Send for Frags {}
// SAFETY: As above.
unsafe impl Sync for Frags {}

impl Frags {
    /// Copies `len` bytes from `source`. May sleep.
    ///
    /// Fails with `ENOMEM`, or with `EFAULT` if `source` cannot be read or has fewer bytes.
    pub fn copy_from(source: &mut IovIterSource<'_>, len: usize) -> Result<Self> {
        let mut this = Self {
            vecs: KVec::new(),
            len: 0,
        };
        while this.len < len {
            this.append(source, len - this.len)?;
        }
        Ok(this)
    }

    /// Adds one fragment of at most `wanted` bytes, filled from `source`.
    fn append(&mut self, source: &mut IovIterSource<'_>, wanted: usize) -> Result {
        self.vecs.reserve(1, GFP_KERNEL)?;
        let least = u32::try_from(wanted.min(PAGE_SIZE))?;
        // SAFETY: This is process context; the task's fragment is used by the task only.
        if !unsafe { bindings::weft_helper_task_frag_refill(least, bindings::GFP_KERNEL) } {
            return Err(ENOMEM);
        }
        let (mut offset, mut length) = (0, 0);
        // SAFETY: The refill succeeded, so the fragment has a page and room in it.
        let page = unsafe {
            bindings::weft_helper_task_frag_take(
                u32::try_from(wanted).unwrap_or(u32::MAX),
                &mut offset,
                &mut length,
            )
        };
        let vec = bindings::bio_vec {
            bv_page: page,
            bv_len: length,
            bv_offset: offset,
        };
        let room = usize::try_from(length)?;
        // SAFETY: The helper handed out `length` bytes at `offset` of a lowmem page to us alone, and advanced the
        // fragment past them.
        let space = unsafe {
            let base = bindings::weft_helper_page_address(page).cast::<MaybeUninit<u8>>();
            slice::from_raw_parts_mut(base.add(offset as usize), room)
        };
        let copied = source.copy_from_iter_raw(space).len();
        if copied != room {
            // SAFETY: The helper took this reference for us.
            unsafe { bindings::weft_helper_put_page(page) };
            return Err(EFAULT);
        }
        self.len += room;
        // INVARIANT: The page reference is ours, the bytes are initialised and `space` is gone.
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
        // SAFETY: By the type invariants each page is referenced; page fragments are no slab memory.
        unsafe { PageList::new(&self.vecs, self.len) }
    }

    /// Copies to `dest` as much as fits and returns how much that was; `EFAULT` if `dest` cannot be written.
    pub fn copy_to(&self, dest: &mut IovIterDest<'_>) -> Result<usize> {
        let mut done = 0;
        for vec in self.vecs.iter() {
            // SAFETY: By the type invariants these bytes are initialised, within one page, and immutable.
            let bytes = unsafe {
                let base = bindings::weft_helper_page_address(vec.bv_page).cast::<u8>();
                slice::from_raw_parts(base.add(vec.bv_offset as usize), vec.bv_len as usize)
            };
            let wanted = bytes.len().min(dest.len());
            if wanted == 0 {
                break;
            }
            let copied = dest.copy_to_iter(&bytes[..wanted]);
            done += copied;
            if copied < wanted {
                return Err(EFAULT);
            }
        }
        Ok(done)
    }
}

impl Drop for Frags {
    fn drop(&mut self) {
        for vec in self.vecs.iter() {
            // SAFETY: By the type invariants this page reference is ours.
            unsafe { bindings::weft_helper_put_page(vec.bv_page) };
        }
    }
}
