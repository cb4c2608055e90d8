// SPDX-License-Identifier: GPL-2.0

//! The memory of an I/O.

use core::ptr::NonNull;
use kernel::{
    bindings,
    prelude::*,
    sync::Arc, //
};

/// Physically contiguous bytes.
#[derive(Clone, Copy)]
pub struct Run {
    /// The page with the first byte.
    pub page: NonNull<bindings::page>,
    /// Where in that page it is, less than the size of a page.
    pub offset: u32,
    /// How many bytes there are; the pages after the first follow it.
    pub len: usize,
}

/// Memory that devices may read and write at any time.
///
/// The last reference may be dropped at the end of an I/O, which is in any context: its drop must not sleep.
///
/// # Safety
///
/// [`BioPages::run`] must give the same runs each time, nothing after the last of them, and all of it must stay
/// allocated, with nobody having a reference (`&` or `&mut`) to its bytes, for as long as the value exists.
pub unsafe trait BioPages: Send + Sync + 'static {
    /// The physically contiguous parts, in order.
    fn run(&self, index: usize) -> Option<Run>;
}

/// A range of some memory.
#[derive(Clone)]
pub struct Data {
    /// The memory.
    pub pages: Arc<dyn BioPages>,
    /// The first byte.
    pub offset: usize,
    /// How many bytes.
    pub len: usize,
}

impl Data {
    /// Calls `each` with the contiguous parts of the range, in order. `EINVAL` if the range is not in the memory.
    pub(super) fn for_each(&self, mut each: impl FnMut(Run) -> Result) -> Result {
        let (mut skip, mut left) = (self.offset, self.len);
        let mut index = 0;
        while left != 0 {
            let run = self.pages.run(index).ok_or(EINVAL)?;
            index += 1;
            if skip >= run.len {
                skip -= run.len;
                continue;
            }
            let len = (run.len - skip).min(left);
            // SAFETY: The run has `len` bytes from `skip` on.
            each(unsafe { part(run, skip, len) }?)?;
            left -= len;
            skip = 0;
        }
        Ok(())
    }
}

/// `len` bytes of `run` from byte `skip` on.
///
/// # Safety
///
/// The run must have them.
unsafe fn part(run: Run, skip: usize, len: usize) -> Result<Run> {
    let first = skip.checked_add(run.offset as usize).ok_or(EINVAL)?;
    let page = first / kernel::page::PAGE_SIZE;
    Ok(Run {
        // SAFETY: By the safety requirements the byte is in the run, whose pages follow each other.
        page: unsafe { run.page.add(page) },
        offset: u32::try_from(first % kernel::page::PAGE_SIZE)?,
        len,
    })
}
