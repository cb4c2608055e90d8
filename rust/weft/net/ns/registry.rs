// SPDX-License-Identifier: GPL-2.0

//! Finds the registration that a pernet callback belongs to.
//!
//! C hands the callbacks of `struct pernet_operations` the namespace and nothing else: in C the rest is a static
//! variable. Rust has no static per type parameter, so the live registrations are kept in one list, found by the type
//! of their data. The list is short and used only when a namespace or a module comes or goes.

use crate::bindings;
use core::{
    any::TypeId,
    cell::UnsafeCell,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    ffi::c_void,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Mutex, //
    },
};

/// The first entry; like the `next` fields, changed and followed under [`lock`] only.
static HEAD: Atomic<*mut Entry> = Atomic::new(ptr::null_mut());

/// The lock of the list.
fn lock() -> &'static Mutex<()> {
    // SAFETY: The helper returns a static mutex.
    unsafe { Mutex::from_raw(bindings::weft_helper_pernet_mutex()) }
}

/// One registration, embedded in its pinned object.
pub(super) struct Entry {
    id: TypeId,
    owner: *const c_void,
    next: UnsafeCell<*mut Entry>,
}

// SAFETY: `next` is used under the lock of the list only, the rest is constant.
unsafe impl Send for Entry {}
// SAFETY: As above.
unsafe impl Sync for Entry {}

impl Entry {
    /// An entry that is not in the list yet, for the data type `T` and its registration `owner`.
    pub(super) fn new<T: 'static>(owner: *const c_void) -> Self {
        Self {
            id: TypeId::of::<T>(),
            owner,
            next: UnsafeCell::new(ptr::null_mut()),
        }
    }

    /// Adds the entry to the list; `EEXIST` if one of the same type is there.
    ///
    /// # Safety
    ///
    /// The entry must stay where it is and valid until [`Entry::remove`] has returned.
    pub(super) unsafe fn insert(&self) -> Result {
        let _guard = lock().lock();
        // SAFETY: We hold the lock.
        if unsafe { find(self.id) }.is_some() {
            return Err(EEXIST);
        }
        // ORDERING: The lock orders all accesses.
        // SAFETY: We hold the lock.
        unsafe { *self.next.get() = HEAD.load(Relaxed) };
        HEAD.store(ptr::from_ref(self).cast_mut(), Relaxed);
        Ok(())
    }

    /// Takes the entry off the list, if it is there.
    pub(super) fn remove(&self) {
        let _guard = lock().lock();
        // ORDERING: The lock orders all accesses.
        let mut at = HEAD.load(Relaxed);
        if ptr::eq(at, self) {
            // SAFETY: We hold the lock.
            HEAD.store(unsafe { *self.next.get() }, Relaxed);
            return;
        }
        while !at.is_null() {
            // SAFETY: We hold the lock, and entries are valid while they are in the list.
            let next = unsafe { (*at).next.get() };
            // SAFETY: As above.
            unsafe {
                if ptr::eq(*next, self) {
                    *next = *self.next.get();
                    return;
                }
                at = *next;
            }
        }
    }
}

/// Finds the entry of a type.
///
/// # Safety
///
/// The caller must hold the lock of the list.
unsafe fn find(id: TypeId) -> Option<NonNull<Entry>> {
    // ORDERING: The lock orders all accesses.
    let mut at = HEAD.load(Relaxed);
    while let Some(entry) = NonNull::new(at) {
        // SAFETY: Entries are valid while they are in the list, and the caller holds its lock.
        unsafe {
            if entry.as_ref().id == id {
                return Some(entry);
            }
            at = *entry.as_ref().next.get();
        }
    }
    None
}

/// The registration of the data type with this id.
pub(super) fn owner(id: TypeId) -> Option<NonNull<c_void>> {
    let _guard = lock().lock();
    // SAFETY: We hold the lock, which keeps the entry valid.
    unsafe { find(id).and_then(|entry| NonNull::new(entry.as_ref().owner.cast_mut())) }
}
