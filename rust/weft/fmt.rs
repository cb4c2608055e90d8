// SPDX-License-Identifier: GPL-2.0

//! Printing types of kernel-free crates with the kernel's `pr_*!` macros.

use kernel::fmt;

/// Lets a type that implements [`core::fmt::Display`] be printed.
///
/// The kernel's macros ask for the kernel's own trait, which a crate that also runs on the host cannot implement.
pub struct Plain<T>(pub T);

impl<T: core::fmt::Display> fmt::Display for Plain<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
