// SPDX-License-Identifier: GPL-2.0

//! Holding and loading modules.
//!
//! C headers: [`include/linux/module.h`](srctree/include/linux/module.h),
//! [`include/linux/kmod.h`](srctree/include/linux/kmod.h)
//!
//! Where one module calls code that another one has registered with it, it holds a [`ModuleRef`] of
//! the other one, as it would for a C function table with an `owner`.

use crate::bindings;
use core::ptr;
use kernel::{
    error::{
        code::{
            EAGAIN,
            ENODEV, //
        },
        to_result, //
    },
    prelude::*, //
};

/// A reference that keeps a module from being unloaded.
///
/// # Invariants
///
/// Owns one reference of `module`.
pub struct ModuleRef {
    module: *mut bindings::module,
}

// SAFETY: A module reference belongs to no thread in particular.
unsafe impl Send for ModuleRef {}
// SAFETY: There are no methods that use `&self` but `clone`, which counts atomically.
unsafe impl Sync for ModuleRef {}

impl ModuleRef {
    /// Takes a reference, unless the module is being unloaded. Any context.
    fn try_get(module: &'static ThisModule) -> Option<Self> {
        let module = module.as_ptr();
        // SAFETY: A `ThisModule` has the pointer of a module that is there, or null for built-in
        // code, which C allows.
        // INVARIANT: On success, a reference was taken.
        let taken = unsafe { bindings::try_module_get(module) };
        // Not `then_some`: a value that is made for nothing would be dropped, and put a reference.
        taken.then(|| Self { module })
    }

    /// Takes a reference. Any context.
    ///
    /// `ENODEV` if the module is being unloaded, `EAGAIN` if it is still being loaded: if that failed, it would not wait
    /// for references.
    pub fn try_get_live(module: &'static ThisModule) -> Result<Self> {
        let reference = Self::try_get(module).ok_or(ENODEV)?;
        if reference.module.is_null() {
            // Built-in code stays.
            return Ok(reference);
        }
        // SAFETY: The module is there; C changes the field while others look at it.
        let state = unsafe { ptr::read_volatile(&raw const (*reference.module).state) };
        if state == bindings::module_state_MODULE_STATE_COMING {
            return Err(EAGAIN);
        }
        Ok(reference)
    }
}

impl Clone for ModuleRef {
    fn clone(&self) -> Self {
        // SAFETY: By the type invariants the module is there.
        unsafe { bindings::__module_get(self.module) };
        // INVARIANT: Just taken.
        Self {
            module: self.module,
        }
    }
}

impl Drop for ModuleRef {
    fn drop(&mut self) {
        // SAFETY: By the type invariants a reference is owned.
        unsafe { bindings::module_put(self.module) };
    }
}

/// Loads a module by name or alias, with `modprobe`, and waits for that. May sleep.
///
/// `Ok` does not mean that what one wants is there now: look again. `ENOENT` if `modprobe` failed.
pub fn request_module(name: &CStr) -> Result {
    // SAFETY: The format takes one string, and both are terminated.
    let ret = unsafe { bindings::__request_module(true, c"%s".as_char_ptr(), name.as_char_ptr()) };
    match ret {
        1.. => Err(ENOENT),
        _ => to_result(ret),
    }
}
