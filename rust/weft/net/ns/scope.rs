// SPDX-License-Identifier: GPL-2.0

//! Things that live in a namespace without keeping it alive.
//!
//! A listening socket or a sysctl table belongs to a namespace and must be gone before the namespace is taken apart,
//! but must not hold it: it would never end. Such a thing is made from the [`ScopedNet`] of an
//! [`init`](super::PerNetData::init) callback. Normally it is a field of the data made there and is dropped with it.
//! If it was moved elsewhere or forgotten, it is taken away when the namespace is left: the handle is still valid then,
//! but empty. So no safe code can keep one beyond its namespace.

use super::Net;
use core::ops::Deref;
use kernel::{
    prelude::*,
    static_lock_class,
    str::CStr,
    sync::{
        Arc,
        Completion,
        Mutex, //
    },
};

/// Names of lock classes. The initialisers below are compiled into the modules that use them, and lockdep wants one
/// pointer for the name of one class: a literal would be another one in each module.
static SCOPE_NAME: &CStr = c"NetScope::bound";
static RESOURCE_NAME: &CStr = c"NetBound::resource";

/// The namespace of an [`init`](super::PerNetData::init) callback.
pub struct ScopedNet<'a> {
    net: &'a Net,
    scope: &'a NetScope,
}

impl<'a> ScopedNet<'a> {
    #[inline]
    pub(super) fn new(net: &'a Net, scope: &'a NetScope) -> Self {
        Self { net, scope }
    }

    /// Binds a resource of the namespace to its life.
    pub(crate) fn bind<R: Resource>(&self, resource: R) -> Result<NetBound<R>> {
        let bound = Arc::pin_init(Bound::new(resource), GFP_KERNEL)?;
        self.add(bound.clone())?;
        Ok(NetBound(bound))
    }

    /// Takes something to be taken away when the namespace is left.
    pub(super) fn add(&self, bound: Arc<dyn Revoke>) -> Result {
        Ok(self.scope.bound.lock().push(bound, GFP_KERNEL)?)
    }
}

impl Deref for ScopedNet<'_> {
    type Target = Net;

    #[inline]
    fn deref(&self) -> &Net {
        self.net
    }
}

/// Everything bound to the life of one namespace on behalf of one registration.
///
/// Dropping it takes away what is left.
#[pin_data(PinnedDrop)]
pub(super) struct NetScope {
    #[pin]
    bound: Mutex<KVec<Arc<dyn Revoke>>>,
}

impl NetScope {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            bound <- Mutex::new(KVec::new(), SCOPE_NAME, static_lock_class!()),
        })
    }
}

#[pinned_drop]
impl PinnedDrop for NetScope {
    fn drop(self: Pin<&mut Self>) {
        // In reverse order, as resources made later may stand on earlier ones.
        loop {
            let last = self.bound.lock().pop();
            match last {
                Some(bound) => bound.revoke(),
                None => break,
            }
        }
    }
}

/// Something that must not outlive a namespace.
pub(crate) trait Resource: Send + Unpin + 'static {
    /// What remains of it and may outlive the namespace.
    type Rest;

    /// Ends it. Sleeps.
    ///
    /// What remains is dropped after everybody knows that the resource is gone: it may own the resource's handle.
    fn close(self) -> Self::Rest;
}

/// What can be taken away.
pub(super) trait Revoke: Send + Sync {
    /// Takes it away. When this returns, nobody uses it any more. Sleeps.
    fn revoke(&self);
}

/// A resource until it is taken away.
#[pin_data]
struct Bound<R> {
    #[pin]
    resource: Mutex<Option<R>>,
    #[pin]
    gone: Completion,
}

impl<R: Resource> Bound<R> {
    fn new(resource: R) -> impl PinInit<Self> {
        pin_init!(Self {
            resource <- Mutex::new(Some(resource), RESOURCE_NAME, static_lock_class!()),
            gone <- Completion::new(),
        })
    }

    /// Closes the resource; false if it was taken by somebody before.
    fn close(&self) -> bool {
        // Closed without the lock, as what is closed may take other locks of this kind.
        let taken = self.resource.lock().take();
        let Some(resource) = taken else {
            return false;
        };
        let rest = resource.close();
        self.gone.complete_all();
        drop(rest);
        true
    }
}

impl<R: Resource> Revoke for Bound<R> {
    fn revoke(&self) {
        if !self.close() {
            self.gone.wait_for_completion();
        }
    }
}

/// The owner of a resource that is bound to a namespace.
pub(crate) struct NetBound<R: Resource>(Arc<Bound<R>>);

impl<R: Resource> NetBound<R> {
    /// Uses the resource, if it has not been taken away. One user at a time; others sleep.
    pub(crate) fn with<U>(&self, f: impl FnOnce(&R) -> U) -> Option<U> {
        self.0.resource.lock().as_ref().map(f)
    }
}

impl<R: Resource> Drop for NetBound<R> {
    fn drop(&mut self) {
        self.0.close();
    }
}
