// SPDX-License-Identifier: GPL-2.0

//! Tables of files.

use super::{
    Active,
    PageWriter, //
};
use crate::bindings;
use kernel::{
    module::{
        this_module,
        ModuleMetadata, //
    },
    prelude::*,
    str::CStr,
    sync::Arc,
    types::Opaque, //
};

/// Everybody reads.
const RO: u16 = 0o444;
/// Everybody reads, root writes.
const RW: u16 = 0o644;
/// Root writes.
const WO: u16 = 0o200;

/// What a file shows. An error goes to the reader; it must be quick to return, for removal waits for it.
pub type Show<T> = fn(&T, &mut PageWriter<'_>) -> Result;

/// Takes what is written to a file: 1 to 4096 bytes, all of which count as written on success.
///
/// Removal waits for it, unless it calls [`Active::leave`].
pub type Store<T> = fn(&Arc<T>, &[u8], Active<'_>) -> Result;

/// One file of a directory whose data is a `T`; `struct attribute` of C.
pub struct Attribute<T: 'static> {
    pub(super) name: &'static CStr,
    pub(super) mode: u16,
    pub(super) show: Option<Show<T>>,
    pub(super) store: Option<Store<T>>,
    /// What lockdep knows the file by, in all directories that have it.
    pub(super) key: Opaque<bindings::lock_class_key>,
}

impl<T> Attribute<T> {
    /// A file that is only read, mode 0444.
    pub const fn ro(name: &'static CStr, show: Show<T>) -> Self {
        Self::new(name, RO, Some(show), None)
    }

    /// A file that is read and written, mode 0644.
    pub const fn rw(name: &'static CStr, show: Show<T>, store: Store<T>) -> Self {
        Self::new(name, RW, Some(show), Some(store))
    }

    /// A file that is only written, mode 0200.
    pub const fn wo(name: &'static CStr, store: Store<T>) -> Self {
        Self::new(name, WO, None, Some(store))
    }

    const fn new(
        name: &'static CStr,
        mode: u16,
        show: Option<Show<T>>,
        store: Option<Store<T>>,
    ) -> Self {
        Self {
            name,
            mode,
            show,
            store,
            key: Opaque::zeroed(),
        }
    }
}

// SAFETY: The key is used by lockdep only, which has its own lock; the rest does not change.
unsafe impl<T> Send for Attribute<T> {}
// SAFETY: As above.
unsafe impl<T> Sync for Attribute<T> {}

/// The files of a directory. It is a `static` of the module whose functions it names.
pub struct Attributes<T: 'static, const N: usize> {
    pub(super) module: &'static ThisModule,
    pub(super) files: [Attribute<T>; N],
}

impl<T, const N: usize> Attributes<T, N> {
    /// A table of module `M`, which is `LocalModule`. Two files of one name make every use of it fail.
    pub const fn new<M: ModuleMetadata>(files: [Attribute<T>; N]) -> Self {
        Self {
            module: this_module::<M>(),
            files,
        }
    }
}
