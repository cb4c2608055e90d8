// SPDX-License-Identifier: GPL-2.0

//! Files that remove their own directory.

use super::{
    files::Row,
    life::Stay, //
};
use crate::{
    bindings,
    module::ModuleRef, //
};
use core::{
    cell::Cell,
    ptr::NonNull, //
};
use kernel::{
    error::code::ENODEV,
    prelude::*, //
};

/// Says that a file is being written, which its removal waits for.
pub struct Active<'a> {
    kobj: *mut bindings::kobject,
    row: *const Row,
    left: &'a Cell<Option<Left>>,
}

impl<'a> Active<'a> {
    /// # Safety
    ///
    /// The caller must be C's call of the store function of `row`, a file of `kobj`, which is not removed before the
    /// file is. If this leaves something in `left`, neither may be used any more, and it must be dropped before that
    /// call returns.
    pub(super) unsafe fn new(
        kobj: *mut bindings::kobject,
        row: *const Row,
        left: &'a Cell<Option<Left>>,
    ) -> Self {
        Self { kobj, row, left }
    }

    /// From now on the removal of the file and of what it is in does not wait for this write, so that this write may
    /// do it.
    ///
    /// The data stays until the function of the file has returned, and so does the module. Others may do the same at
    /// the same time: the removal itself tells who comes first. `ENODEV` if the module is being unloaded, `EAGAIN` if
    /// it is still being loaded. Process context, does not sleep for long.
    pub fn leave(self) -> Result {
        // SAFETY: By the contract of `new` the file is still there.
        let (module, attr) = unsafe { ((*self.row).module, (*self.row).attr()) };
        let module = ModuleRef::try_get_live(module)?;
        // A reference of a module that uses this one is held.
        let stay = Stay::new();
        // SAFETY: By the contract of `new` this runs in a function of the file. The `sd` that C looks at is valid:
        // whoever removes the directory removes the files first, which waits for this.
        let node = unsafe { bindings::sysfs_break_active_protection(self.kobj, attr) };
        // INVARIANT: Just made.
        self.left.set(Some(Left {
            node: NonNull::new(node).ok_or(ENODEV)?,
            _module: module,
            _stay: stay,
        }));
        Ok(())
    }
}

/// A write that removal does not wait for.
///
/// # Invariants
///
/// `node` is from [`sysfs_break_active_protection`](bindings::sysfs_break_active_protection) in this call of a file's
/// function. The fields are dropped in their order: first the reference to the module of the file, then what keeps
/// this one.
pub(super) struct Left {
    node: NonNull<bindings::kernfs_node>,
    _module: ModuleRef,
    _stay: Stay,
}

impl Drop for Left {
    fn drop(&mut self) {
        // SAFETY: By the type invariants this ends what was begun.
        unsafe { bindings::sysfs_unbreak_active_protection(self.node.as_ptr()) };
    }
}
