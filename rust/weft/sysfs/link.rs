// SPDX-License-Identifier: GPL-2.0

//! Symbolic links.

use super::node::{
    KobjRef,
    Node, //
};
use crate::bindings;
use kernel::{
    error::to_result,
    prelude::*,
    str::{
        CStr,
        CString, //
    },
};

/// A symbolic link in a directory to another one. Dropping it removes it; sleeps.
///
/// It goes with the directory it is in. It stays when its target goes, and then leads nowhere.
pub struct Link {
    directory: Node,
    name: CString,
}

impl Link {
    /// Creates the link `name` in `directory`. Sleeps.
    ///
    /// `EEXIST` if `directory` has something of that name, `ENOENT` if `target` is not in sysfs, `ENODEV` if
    /// `directory` is gone, or an error of [`check_name`](super::check_name).
    pub fn new(directory: &Node, name: &CStr, target: &KobjRef) -> Result<Self> {
        let link = CString::try_from(name)?;
        directory.with_name(name, |kobj| {
            // SAFETY: The directory is in sysfs, the target is valid, `name` is a string.
            to_result(unsafe {
                bindings::sysfs_create_link_nowarn(kobj, target.as_ptr(), name.as_char_ptr())
            })
        })?;
        Ok(Self {
            directory: directory.clone(),
            name: link,
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // If the directory is gone, so is the link.
        let _ = self.directory.with(|kobj| {
            // SAFETY: The directory is in sysfs, and only this removes the link from it.
            unsafe { bindings::sysfs_remove_link(kobj, self.name.as_char_ptr()) };
            Ok(())
        });
    }
}
