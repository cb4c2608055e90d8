// SPDX-License-Identifier: GPL-2.0

//! Places in sysfs that something can be put below, and what links lead to.

use super::check_name;
use crate::bindings;
use core::ptr::{
    self,
    NonNull, //
};
use kernel::{
    error::{
        code::{
            EEXIST,
            ENODEV, //
        },
        to_result, //
    },
    new_mutex,
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        Mutex, //
    },
};

/// A reference to a `struct kobject`, such as the target of a link. It says nothing about whether that is in sysfs.
///
/// # Invariants
///
/// Owns a reference of the pointee.
pub struct KobjRef(NonNull<bindings::kobject>);

// SAFETY: References are counted atomically, and nothing is done to the pointee without further locks.
unsafe impl Send for KobjRef {}
// SAFETY: As above.
unsafe impl Sync for KobjRef {}

impl KobjRef {
    /// Takes over a reference.
    ///
    /// # Safety
    ///
    /// The caller must own a reference of `kobj`, which is this one's now.
    pub(crate) unsafe fn from_raw(kobj: NonNull<bindings::kobject>) -> Self {
        // INVARIANT: As the caller promises.
        Self(kobj)
    }

    /// Takes a reference.
    ///
    /// # Safety
    ///
    /// `kobj` must be valid.
    pub(crate) unsafe fn get(kobj: NonNull<bindings::kobject>) -> Self {
        // SAFETY: As the caller promises.
        unsafe { bindings::kobject_get(kobj.as_ptr()) };
        // INVARIANT: Just taken.
        Self(kobj)
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::kobject {
        self.0.as_ptr()
    }
}

impl Clone for KobjRef {
    fn clone(&self) -> Self {
        // SAFETY: By the type invariants it is valid.
        unsafe { Self::get(self.0) }
    }
}

impl Drop for KobjRef {
    fn drop(&mut self) {
        // SAFETY: By the type invariants a reference is owned.
        unsafe { bindings::kobject_put(self.0.as_ptr()) };
    }
}

/// What user space is told of an object; `enum kobject_action`. A device's coming and going tells the kernel itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Uevent {
    /// Something about it changed.
    Change,
    /// It can be used.
    Online,
    /// It cannot be used for now.
    Offline,
}

/// A directory that others can be put below: that of a [`Kobj`](super::Kobj), a [`ClassDevice`](super::ClassDevice)
/// or a disk.
///
/// A clone is the same place. It outlives the directory: once that is removed, every use fails with `ENODEV`.
#[derive(Clone)]
pub struct Node(Arc<Place>);

/// # Invariants
///
/// As long as `open` is true, the directory of `object` is in sysfs, or was taken away with one above it: in either
/// case its `sd` is valid.
#[pin_data]
struct Place {
    #[pin]
    open: Mutex<bool>,
    object: KobjRef,
}

impl Node {
    /// The place of an object that is in sysfs.
    ///
    /// # Safety
    ///
    /// The directory must not be removed, other than with one above it, before [`Self::close`] has returned.
    pub(crate) unsafe fn new(object: KobjRef) -> Result<Self> {
        // INVARIANT: As the caller promises.
        let place = pin_init!(Place {
            open <- new_mutex!(true, "sysfs.Node"),
            object,
        });
        Ok(Self(Arc::pin_init(place, GFP_KERNEL)?))
    }

    /// The object whose directory this is, for a link to it.
    pub fn object(&self) -> &KobjRef {
        &self.0.object
    }

    /// Tells user space, if the object is a device. Sleeps.
    pub fn uevent(&self, event: Uevent) -> Result {
        let action = match event {
            Uevent::Change => bindings::kobject_action_KOBJ_CHANGE,
            Uevent::Online => bindings::kobject_action_KOBJ_ONLINE,
            Uevent::Offline => bindings::kobject_action_KOBJ_OFFLINE,
        };
        self.with(|kobj| {
            // SAFETY: The object is in sysfs, so its parents are valid.
            to_result(unsafe { bindings::kobject_uevent(kobj, action) })
        })
    }

    /// Waits for those who use the place, and lets nobody else.
    pub(crate) fn close(&self) {
        *self.0.open.lock() = false;
    }

    /// Calls `f` while the directory is not removed; `ENODEV` if it was.
    pub(super) fn with<R>(&self, f: impl FnOnce(*mut bindings::kobject) -> Result<R>) -> Result<R> {
        let open = self.0.open.lock();
        if !*open {
            return Err(ENODEV);
        }
        f(self.0.object.as_ptr())
    }

    /// As [`Self::with`], if there can be something new of that name: `EEXIST` if there is something, or an error of
    /// [`check_name`].
    pub(super) fn with_name<R>(
        &self,
        name: &CStr,
        f: impl FnOnce(*mut bindings::kobject) -> Result<R>,
    ) -> Result<R> {
        check_name(name)?;
        self.with(|kobj| {
            // SAFETY: The place is open, so `sd` is valid.
            if unsafe { is_taken((*kobj).sd, name) } {
                return Err(EEXIST);
            }
            f(kobj)
        })
    }
}

/// Whether there is something named `name` in `directory`. C would print the stack if it were asked to make another.
///
/// # Safety
///
/// `directory` must be a valid directory without namespaces.
pub(super) unsafe fn is_taken(directory: *mut bindings::kernfs_node, name: &CStr) -> bool {
    // SAFETY: As the caller promises.
    let node =
        unsafe { bindings::kernfs_find_and_get_ns(directory, name.as_char_ptr(), ptr::null()) };
    // SAFETY: This is null or a reference that is ours.
    unsafe { bindings::kernfs_put(node) };
    !node.is_null()
}
