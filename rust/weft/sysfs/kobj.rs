// SPDX-License-Identifier: GPL-2.0

//! Directories.

use super::{
    attribute::Attributes,
    files::{
        Kind,
        Table, //
    },
    node::{
        KobjRef,
        Node, //
    },
};
use crate::{
    bindings,
    sync::take::TakeCell, //
};
use core::{
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    error::{
        code::ENOMEM,
        to_result, //
    },
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        Completion, //
    },
};

/// A directory with files; `struct kobject` of C. Dropping it is [`Self::remove`].
///
/// It can be used as a [`Node`], to put more below it.
pub struct Kobj {
    node: Node,
    removal: Pin<KBox<Removal>>,
}

/// How a directory goes.
#[pin_data]
struct Removal {
    /// Taken by the one who removes the directory.
    files: TakeCell<Files>,
    #[pin]
    gone: Completion,
}

/// A directory in sysfs and its files. The fields drop in their order: the table after what refers to it.
pub(super) struct Files {
    added: Added,
    table: Option<KBox<Table>>,
}

/// A directory that is in sysfs until this drops.
///
/// # Invariants
///
/// `object` was added to sysfs, as `kind` says. If `table` is not null, it outlives this, and no other files than its
/// are in the directory by the doing of the owner.
struct Added {
    kind: Kind,
    object: KobjRef,
    table: *const Table,
}

// SAFETY: The table may be used from any thread.
unsafe impl Send for Added {}

impl Files {
    /// Takes over a device with its files, those of `table`.
    ///
    /// # Safety
    ///
    /// `device` must have been registered by the caller, who owns that reference and gives it up.
    pub(super) unsafe fn of_device(device: NonNull<bindings::device>, table: KBox<Table>) -> Self {
        // SAFETY: The device is valid.
        let kobj = unsafe { NonNull::new_unchecked(&raw mut (*device.as_ptr()).kobj) };
        // SAFETY: A reference of a device is one of its kobject.
        let object = unsafe { KobjRef::from_raw(kobj) };
        // INVARIANT: As the caller promises.
        Self::new(Kind::Device, object, Some(table))
    }

    fn new(kind: Kind, object: KobjRef, table: Option<KBox<Table>>) -> Self {
        Self {
            added: Added {
                kind,
                object,
                table: table
                    .as_ref()
                    .map_or(ptr::null(), |table| ptr::from_ref(&**table)),
            },
            table,
        }
    }

    fn add(&self) -> Result {
        match &self.table {
            // SAFETY: The object is in sysfs, and nobody but the drop of `added` removes it. The table outlives the
            // files.
            Some(table) => to_result(unsafe {
                bindings::sysfs_create_group(self.added.object.as_ptr(), table.group())
            }),
            None => Ok(()),
        }
    }
}

impl Drop for Added {
    fn drop(&mut self) {
        let kobj = self.object.as_ptr();
        match self.kind {
            Kind::Kobject => {
                // The files go first, so that those who write to them find the directory.
                // SAFETY: By the type invariants the table is still there.
                if let Some(table) = unsafe { self.table.as_ref() } {
                    // SAFETY: By the type invariants the object is in sysfs; C does not mind if a file is not.
                    unsafe { bindings::sysfs_remove_group(kobj, table.group()) };
                }
                // SAFETY: As above; this is the only place that does it.
                unsafe { bindings::kobject_del(kobj) };
            }
            Kind::Device => {
                // SAFETY: By the type invariants this is in a registered device. C removes the files first.
                unsafe { bindings::device_del(kernel::container_of!(kobj, bindings::device, kobj)) }
            }
        }
    }
}

impl Kobj {
    /// Creates the directory `name` below `parent` with the files of `attributes`, that lead to `data`. Sleeps.
    ///
    /// The files may be used before this returns. `EEXIST` if `parent` has something of that name, `ENODEV` if it is
    /// gone, or an error of [`check_name`](super::check_name).
    pub fn new<T: Send + Sync + 'static, const N: usize>(
        parent: &Node,
        name: &CStr,
        attributes: &'static Attributes<T, N>,
        data: Arc<T>,
    ) -> Result<Self> {
        let table = Table::new(Kind::Kobject, attributes, data)?;
        Self::create(parent, name, Some(table))
    }

    /// Creates a directory without files. Sleeps. Errors as for [`Self::new`].
    pub fn plain(parent: &Node, name: &CStr) -> Result<Self> {
        Self::create(parent, name, None)
    }

    #[inline(never)]
    fn create(parent: &Node, name: &CStr, table: Option<KBox<Table>>) -> Result<Self> {
        let object = parent.with_name(name, |parent| {
            // SAFETY: The parent is in sysfs, and `name` is a string.
            let kobj = unsafe { bindings::kobject_create_and_add(name.as_char_ptr(), parent) };
            // SAFETY: The reference is ours.
            Ok(unsafe { KobjRef::from_raw(NonNull::new(kobj).ok_or(ENOMEM)?) })
        })?;
        // INVARIANT: Just added; the files follow.
        let files = Files::new(Kind::Kobject, object, table);
        files.add()?;
        Self::from_files(files)
    }

    pub(super) fn from_files(files: Files) -> Result<Self> {
        // SAFETY: `remove` is the only one who removes the directory from here on, and closes the place before.
        let node = unsafe { Node::new(files.added.object.clone())? };
        let removal = KBox::pin_init(
            pin_init!(Removal {
                files: TakeCell::new(files),
                gone <- Completion::new(),
            }),
            GFP_KERNEL,
        )?;
        Ok(Self { node, removal })
    }

    /// Removes the directory with everything below it, and waits until none of its files is in use. Sleeps.
    ///
    /// Whether this did it: if another did, or does it now, this waits until it is done. Must not be called from a
    /// function of one of the files, unless that has called [`Active::leave`](super::Active::leave).
    pub fn remove(&self) -> bool {
        let Some(Files { added, table }) = self.removal.files.take() else {
            self.removal.gone.wait_for_completion();
            return false;
        };
        self.node.close();
        drop(added);
        self.removal.gone.complete_all();
        // Only now: the data may be what owns this, and then its drop comes here again.
        drop(table);
        true
    }
}

impl Drop for Kobj {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Deref for Kobj {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}
