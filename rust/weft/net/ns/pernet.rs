// SPDX-License-Identifier: GPL-2.0

//! Data that a module keeps once per namespace.
//!
//! C header: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h) (`struct pernet_operations`)
//!
//! A [`PerNet`] registration makes one `T` for every namespace there is and will be. A namespace that ends, and the
//! drop of the registration, which leaves all namespaces, drops it again: first [`pre_exit`](PerNetData::pre_exit) of
//! all registrations, then an RCU grace period, then [`exit`](PerNetData::exit) and the drop.
//!
//! All callbacks run in process context and may sleep. They hold a lock that registrations need: a callback, and what
//! it waits for, must not make or drop a [`PerNet`].

use super::{
    registry,
    scope::NetScope,
    Net,
    ScopedNet, //
};
use crate::bindings;
use core::{
    any::TypeId,
    mem::size_of,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    ffi::{
        c_int,
        c_uint, //
    },
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        rcu, //
    },
    types::Opaque, //
};

/// Data that exists once per namespace.
pub trait PerNetData: Send + Sync + Sized + 'static {
    /// What [`init`](Self::init) needs besides the namespace; kept in the registration.
    type Ctx: Send + Sync + 'static;

    /// Makes the data of a namespace.
    ///
    /// An error lets the creation of the namespace fail, or the registration if the namespace was there before.
    fn init(net: &ScopedNet<'_>, ctx: &Self::Ctx) -> impl PinInit<Self, Error>;

    /// Called before any registration leaves the namespace; an RCU grace period follows.
    fn pre_exit(self: Pin<&Self>, _net: &Net) {}

    /// Called when the namespace is left; the data is dropped next.
    ///
    /// If the module is unloaded, the namespace itself lives on.
    fn exit(self: Pin<&Self>, _net: &Net) {}
}

/// When a registration leaves a dying namespace.
#[derive(Clone, Copy)]
pub enum Level {
    /// After the network devices have left it.
    Subsys,
    /// Before the network devices leave it, so that a connection can still say good-bye.
    Device,
}

/// What C keeps for us in each namespace. All zero is a valid value.
struct Slot<T> {
    /// Owned `Pin<KBox<T>>`, or null outside the time between `init` and `exit`.
    data: Atomic<*mut T>,
    /// Owned `Pin<KBox<NetScope>>`; goes with `data`.
    scope: Atomic<*mut NetScope>,
}

/// The registration of per-namespace data of type `T`. There is at most one for each `T`.
///
/// # Invariants
///
/// While the object exists and is initialised, `ops` is registered, with `id` as its id and a [`Slot<T>`] as its data
/// in each namespace, and `entry` is in the registry with this object as its owner.
#[pin_data(PinnedDrop)]
pub struct PerNet<T: PerNetData> {
    #[pin]
    ops: Opaque<bindings::pernet_operations>,
    #[pin]
    id: Opaque<c_uint>,
    #[pin]
    entry: registry::Entry,
    level: Level,
    ctx: T::Ctx,
}

// SAFETY: The C parts are used by C under its lock only, after registration; `T` and its context are `Send + Sync`.
unsafe impl<T: PerNetData> Send for PerNet<T> {}
// SAFETY: As above.
unsafe impl<T: PerNetData> Sync for PerNet<T> {}

impl<T: PerNetData> PerNet<T> {
    /// Registers `T`: makes its data in every namespace there is. Sleeps.
    pub fn new(level: Level, ctx: T::Ctx) -> impl PinInit<Self, Error> {
        try_pin_init!(&this in Self {
            ops <- Opaque::ffi_init(|slot: *mut bindings::pernet_operations| {
                let ops = bindings::pernet_operations {
                    init: Some(Self::init_callback),
                    pre_exit: Some(Self::pre_exit_callback),
                    exit: Some(Self::exit_callback),
                    // SAFETY: `this` points to the object being initialised.
                    id: Opaque::cast_into(unsafe { &raw const (*this.as_ptr()).id }),
                    size: size_of::<Slot<T>>(),
                    ..Default::default()
                };
                // SAFETY: `slot` is valid for writes.
                unsafe { slot.write(ops) }
            }),
            id: Opaque::new(0),
            entry: registry::Entry::new::<T>(this.as_ptr().cast_const().cast()),
            level,
            ctx,
            _: {
                // SAFETY: All fields are initialised and the object is pinned.
                unsafe { this.as_ref() }.register()?
            },
        })
    }

    /// Adds the initialised object to the registry and to C's list.
    fn register(&self) -> Result {
        // SAFETY: The object is pinned; it takes its entry off below, or when it is dropped.
        unsafe { self.entry.insert()? };
        // INVARIANT: The entry is in the registry, and after success the operations are registered.
        // SAFETY: The operations are initialised and stay where they are until they are unregistered. The callbacks
        // find this object through the registry, and its fields are initialised.
        let result = to_result(unsafe {
            match self.level {
                Level::Subsys => bindings::register_pernet_subsys(self.ops.get()),
                Level::Device => bindings::register_pernet_device(self.ops.get()),
            }
        });
        if result.is_err() {
            self.entry.remove();
        }
        result
    }

    /// The data of a namespace, if it has been made.
    ///
    /// # Safety
    ///
    /// To be called by a callback of this registration for `net`.
    unsafe fn get<'a>(&'a self, net: &'a Net) -> Option<Pin<&'a T>> {
        let slot = self.slot(net)?;
        // ORDERING: Pairs with the `Release` in `init_callback`: the data is seen initialised.
        // SAFETY: The slot is valid as long as the namespace is not left.
        let data = unsafe { slot.as_ref() }.data.load(Acquire);
        // SAFETY: The data is pinned. It is dropped by `exit_callback` only. C calls the callbacks for one namespace one
        // after the other, and the caller is one of them, so that either has run and cleared the pointer, or does so
        // after the borrow `net` has ended.
        NonNull::new(data).map(|data| unsafe { Pin::new_unchecked(data.as_ref()) })
    }

    /// This registration's slot in a namespace.
    #[inline]
    fn slot(&self, net: &Net) -> Option<NonNull<Slot<T>>> {
        // SAFETY: The id was written by the registration, before anyone could get here.
        let id = usize::try_from(unsafe { *self.id.get() }).ok()?;
        let _guard = rcu::read_lock();
        // SAFETY: The namespace is valid, and we are in an RCU read section, which keeps the array.
        let array = unsafe { bindings::weft_helper_net_gen(net.as_raw()) };
        // A namespace older than the registration may have a shorter array until it is this registration's turn.
        // SAFETY: The array is valid and begins with its length.
        let len = usize::try_from(unsafe { (*array).__bindgen_anon_1.s.as_ref().len }).ok()?;
        if id >= len {
            return None;
        }
        // SAFETY: `id` is within the array of `len` pointers. Pointers are not changed while they are in use.
        NonNull::new(unsafe { array.cast::<*mut Slot<T>>().add(id).read_volatile() })
    }

    /// The registration that a callback for `T` belongs to.
    ///
    /// # Safety
    ///
    /// Must be called by a callback of this type's operations. The result must not be used after it returns.
    unsafe fn of_callback<'a>() -> Option<&'a Self> {
        let owner = registry::owner(TypeId::of::<T>())?;
        // SAFETY: The entry of type `T` was made by `PerNet::<T>::new` with its own address, and C waits for callbacks
        // before it ends the registration and the object.
        Some(unsafe { owner.cast::<Self>().as_ref() })
    }

    /// # Safety
    ///
    /// To be called by C, as `init` of the operations.
    unsafe extern "C" fn init_callback(net: *mut bindings::net) -> c_int {
        from_result(|| {
            // SAFETY: This is a callback.
            let this = unsafe { Self::of_callback() }.ok_or(ENODEV)?;
            // SAFETY: This is a callback for `net`.
            let net = unsafe { Net::from_raw(net) };
            let slot = this.slot(net).ok_or(ENODEV)?;
            // SAFETY: The slot is valid until `exit` has run.
            let slot = unsafe { slot.as_ref() };

            let scope = KBox::pin_init(NetScope::new(), GFP_KERNEL)?;
            let data =
                KBox::pin_init(T::init(&ScopedNet::new(net, &scope), &this.ctx), GFP_KERNEL)?;

            // SAFETY: The boxes go to the slot, where they stay pinned.
            let (scope, data) = unsafe {
                (
                    KBox::into_raw(Pin::into_inner_unchecked(scope)),
                    KBox::into_raw(Pin::into_inner_unchecked(data)),
                )
            };
            // ORDERING: `Release` on the second store shows whoever finds the data that it is initialised.
            slot.scope.store(scope, Relaxed);
            slot.data.store(data, Release);
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// To be called by C, as `pre_exit` of the operations.
    unsafe extern "C" fn pre_exit_callback(net: *mut bindings::net) {
        // SAFETY: This is a callback.
        let Some(this) = (unsafe { Self::of_callback() }) else {
            return;
        };
        // SAFETY: This is a callback for `net`.
        let net = unsafe { Net::from_raw(net) };
        // SAFETY: As above.
        if let Some(data) = unsafe { this.get(net) } {
            data.pre_exit(net);
        }
    }

    /// # Safety
    ///
    /// To be called by C, as `exit` of the operations.
    unsafe extern "C" fn exit_callback(net: *mut bindings::net) {
        // SAFETY: This is a callback.
        let Some(this) = (unsafe { Self::of_callback() }) else {
            return;
        };
        // SAFETY: This is a callback for `net`.
        let net = unsafe { Net::from_raw(net) };
        // SAFETY: As above.
        if let Some(data) = unsafe { this.get(net) } {
            data.exit(net);
        }
        let Some(slot) = this.slot(net) else {
            return;
        };
        // SAFETY: C frees the slot after all exit callbacks.
        let slot = unsafe { slot.as_ref() };
        // ORDERING: C runs the callbacks of a namespace one after the other; nobody else uses the slot any more.
        let data = slot.data.load(Relaxed);
        let scope = slot.scope.load(Relaxed);
        slot.data.store(ptr::null_mut(), Relaxed);
        slot.scope.store(ptr::null_mut(), Relaxed);
        if !data.is_null() {
            // SAFETY: `init_callback` left these boxes in the slot; they are taken out once. See `get` for why no
            // borrow of the data is left.
            unsafe {
                drop(Pin::new_unchecked(KBox::from_raw(data)));
                drop(Pin::new_unchecked(KBox::from_raw(scope)));
            }
        }
    }
}

#[pinned_drop]
impl<T: PerNetData> PinnedDrop for PerNet<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariants the operations are registered. This leaves all namespaces and waits for
        // callbacks that run.
        unsafe {
            match self.level {
                Level::Subsys => bindings::unregister_pernet_subsys(self.ops.get()),
                Level::Device => bindings::unregister_pernet_device(self.ops.get()),
            }
        }
        self.entry.remove();
    }
}
