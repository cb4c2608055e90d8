// SPDX-License-Identifier: GPL-2.0

//! Network namespaces.
//!
//! C headers: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h),
//! [`include/net/netns/generic.h`](srctree/include/net/netns/generic.h)
//!
//! A namespace has two counts in C. While the *active* one is not zero the namespace works. When it drops to zero a
//! worker takes the namespace apart, subsystem by subsystem; its memory stays until the *passive* count is zero too.
//! A borrow must say which of the two it stands on, so there are three types:
//!
//! * [`Net`]: a namespace whose subsystems are up for as long as the borrow lasts, because somebody holds an active
//!   reference or because this is a callback of a [`PerNet`] registration. What runs in such a callback may find the
//!   active count at zero, so a `&Net` cannot simply be counted: [`Net::try_get`] may fail.
//! * [`ActiveNet`]: a namespace with an active reference behind it. It can be counted ([`NetRef`]).
//! * [`ScopedNet`]: the namespace of an [`init`](PerNetData::init) callback. Things that live in a namespace without
//!   keeping it alive (listeners, sysctl tables) are made from it and are gone when the namespace is left.
//!
//! There is no type for passive references: a module cannot drop one (`net_passive_dec` is not exported). What wants to
//! remember a namespace without keeping it alive uses a [`WeakNet`], or [`Net::id`] if it is just to compare.

mod pernet;
mod registry;
mod scope;
mod weak;

pub use pernet::{
    Level,
    PerNet,
    PerNetData, //
};
pub use scope::ScopedNet;
pub(crate) use scope::{
    NetBound,
    Resource, //
};
pub use weak::{
    NetUse,
    WeakNet, //
};

use crate::bindings;
use core::{
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    sync::aref::{
        ARef,
        AlwaysRefCounted, //
    },
    types::Opaque, //
};

/// A network namespace that is not taken apart while it is borrowed.
///
/// # Invariants
///
/// For the lifetime of every `&Net`, the subsystems that were registered before the caller's are initialised in it:
/// an active reference exists, or the borrow ends before the pernet callback that it was made for.
#[repr(transparent)]
pub struct Net(Opaque<bindings::net>);

// SAFETY: A `struct net` may be used from any thread.
unsafe impl Send for Net {}
// SAFETY: As above.
unsafe impl Sync for Net {}

/// An owned active reference to a namespace.
pub type NetRef = ARef<ActiveNet>;

impl Net {
    /// Borrows a namespace.
    ///
    /// # Safety
    ///
    /// For the duration of `'a`, `ptr` must point to a namespace that has an active reference, or the caller must be
    /// in a callback of a pernet registration for it.
    #[inline]
    pub(crate) unsafe fn from_raw<'a>(ptr: *const bindings::net) -> &'a Self {
        // SAFETY: `Net` is transparent, and the caller promises the type invariants.
        unsafe { &*ptr.cast() }
    }

    /// The C structure.
    #[doc(hidden)]
    #[inline]
    pub fn as_raw(&self) -> *mut bindings::net {
        self.0.get()
    }

    /// Whether this is the namespace the system has started with.
    #[inline]
    pub fn is_init(&self) -> bool {
        ptr::eq(self.as_raw(), &raw const bindings::init_net)
    }

    /// A number that no other namespace has, had or will have.
    #[inline]
    pub fn id(&self) -> u64 {
        // SAFETY: By the type invariants the namespace is initialised, which includes its cookie.
        unsafe { bindings::weft_helper_net_cookie(self.as_raw()) }
    }

    /// The number of the namespace's file, which is how users know it: the inode of `/proc/PID/ns/net`.
    #[inline]
    pub fn inode(&self) -> u32 {
        // SAFETY: By the type invariants the namespace is initialised, which includes its number.
        unsafe { bindings::weft_helper_net_inum(self.as_raw()) }
    }

    /// Takes an active reference, unless the last one is gone already, or the namespace is still being set up.
    #[inline]
    pub fn try_get(&self) -> Option<NetRef> {
        // SAFETY: By the type invariants the namespace is valid.
        if !unsafe { bindings::weft_helper_maybe_get_net(self.as_raw()) } {
            return None;
        }
        // SAFETY: The pointer is not null, and the reference just taken goes to the `ARef`.
        Some(unsafe { ARef::from_raw(NonNull::new_unchecked(self.as_raw().cast::<ActiveNet>())) })
    }

    /// The range of local ports that the system chooses from, both ends included.
    pub fn local_port_range(&self) -> (u16, u16) {
        let (mut low, mut high) = (0, 0);
        // SAFETY: By the type invariants the namespace is initialised.
        unsafe { bindings::weft_helper_local_port_range(self.as_raw(), &mut low, &mut high) };
        // The sysctl admits 1 to 65535.
        (
            u16::try_from(low).unwrap_or(0),
            u16::try_from(high).unwrap_or(u16::MAX),
        )
    }
}

impl PartialEq for Net {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for Net {}

/// A network namespace with an active reference behind it.
///
/// # Invariants
///
/// For the lifetime of every `&ActiveNet`, the active count is not zero.
#[repr(transparent)]
pub struct ActiveNet(Net);

impl ActiveNet {
    /// The namespace the system has started with. It never ends.
    #[inline]
    pub fn init() -> &'static Self {
        // SAFETY: `init_net` is a static whose active count is never zero.
        unsafe { Self::from_raw(&raw const bindings::init_net) }
    }

    /// Borrows a namespace.
    ///
    /// # Safety
    ///
    /// For the duration of `'a`, `ptr` must point to a namespace that has an active reference.
    #[inline]
    pub(crate) unsafe fn from_raw<'a>(ptr: *const bindings::net) -> &'a Self {
        // SAFETY: The type is transparent, and the caller promises the type invariants.
        unsafe { &*ptr.cast() }
    }
}

impl Deref for ActiveNet {
    type Target = Net;

    #[inline]
    fn deref(&self) -> &Net {
        &self.0
    }
}

impl PartialEq for ActiveNet {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for ActiveNet {}

// SAFETY: The active count keeps the namespace working and hence in memory, and by the type invariants it is not zero
// when it is raised.
unsafe impl AlwaysRefCounted for ActiveNet {
    #[inline]
    fn inc_ref(&self) {
        // SAFETY: By the type invariants the namespace is valid and its active count is not zero.
        unsafe { bindings::weft_helper_get_net(self.as_raw()) }
    }

    #[inline]
    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller owns the reference that is dropped here; the type is transparent.
        unsafe { bindings::weft_helper_put_net(obj.as_ptr().cast()) }
    }
}
