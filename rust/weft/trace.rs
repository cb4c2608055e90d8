// SPDX-License-Identifier: GPL-2.0

//! Trace events: safe calls of tracepoints that a module of this tree defines.
//!
//! C header: [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h)
//!
//! The events themselves are made by macros of C, in a C file of the module they belong to. That file also defines a
//! function for each that Rust can call. The kernel crate's `declare_trace!` finds only tracepoints in its own bindings,
//! so there is [`events!`] here, which does the same for those in ours.
//!
//! An event that nobody listens to costs a static branch, or on kernels without `CONFIG_JUMP_LABEL` a load and a
//! branch; what there is to tell is not even computed. The rest is out of the way of the code around it.

pub mod rds;

/// Whether somebody listens to a tracepoint. Any context.
#[cfg(CONFIG_TRACEPOINTS)]
macro_rules! is_enabled {
    ($tracepoint:ident) => {{
        #[cfg(CONFIG_JUMP_LABEL)]
        // SAFETY: The key is that of a tracepoint which macros of C have defined.
        let enabled = unsafe {
            kernel::jump_label::static_branch_unlikely!(
                $crate::bindings::$tracepoint,
                $crate::bindings::tracepoint,
                key
            )
        };
        #[cfg(not(CONFIG_JUMP_LABEL))]
        // SAFETY: The key is valid as long as the module is loaded; C reads it in the same way.
        let enabled = unsafe {
            core::ptr::addr_of!($crate::bindings::$tracepoint.key.key.enabled.counter)
                .read_volatile()
        } > 0;
        enabled
    }};
}
#[cfg(CONFIG_TRACEPOINTS)]
pub(crate) use is_enabled;

/// Defines a safe function for each tracepoint of a module.
///
/// ```ignore
/// events! {
///     /// The kettle boils. Any context.
///     pub fn boil(place: Place, degrees: u32) = kettle_boil(&place.0, degrees);
/// }
///
/// boil(|| (kettle.place(), kettle.degrees()));
/// ```
///
/// The function takes a closure that computes the arguments; it runs only if somebody listens. Behind the `=` is what
/// C gets: the name of the event, and its arguments. References among them become pointers, which must be good for the
/// duration of the call: an event copies what it keeps.
macro_rules! events {
    ($(
        $(#[$doc:meta])*
        pub fn $name:ident($($arg:ident: $ty:ty),+) = $event:ident($($value:expr),+);
    )+) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name(what: impl FnOnce() -> ($($ty,)+)) {
            #[cfg(CONFIG_TRACEPOINTS)]
            kernel::macros::paste! {
                if $crate::trace::is_enabled!([<__tracepoint_ $event>]) {
                    $crate::trace::emit(|| {
                        let ($($arg,)+) = what();
                        // SAFETY: The function is that of the event, so the arguments are of the types it wants, and
                        // those behind references live until it returns.
                        unsafe { $crate::bindings::[<rust_do_trace_ $event>]($($value),+) }
                    });
                }
            }
            #[cfg(not(CONFIG_TRACEPOINTS))]
            let _ = what;
        }
    )+};
}
pub(crate) use events;

/// Keeps what an event costs out of the code that has it.
#[cfg(CONFIG_TRACEPOINTS)]
#[cold]
#[inline(never)]
pub(crate) fn emit(event: impl FnOnce()) {
    event()
}
