// SPDX-License-Identifier: GPL-2.0

//! Who wants to know of devices that come and go.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h) (`struct ib_client`)
//!
//! The devices that are there and the [`Watcher`]s are in one registry. Lock order: the calls of a watcher, then the
//! registry. No watcher is called with the registry locked.

use crate::device::Device;
use kernel::{
    prelude::*,
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    },
};

/// Is told of each device.
///
/// The calls of one watcher come one at a time, in process context, and may sleep. For each device they come in the
/// order `arrived`, `removed`; a device that goes while `arrived` runs is told of afterwards.
pub trait Watcher: Send + Sync + 'static {
    /// A device is there.
    fn arrived(&self, _device: &Arc<Device>) {}

    /// A device goes: nothing can be made from it any more. What the module still has on it must be shut down, here
    /// or soon after, because the removal of the device waits for that.
    fn removed(&self, device: &Arc<Device>);
}

/// A registered watcher.
struct Entry {
    /// Increases with each registration, so that a walk over the watchers can go on after the lock was dropped.
    id: u64,
    calls: Arc<Calls>,
}

impl Clone for Entry {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            calls: self.calls.clone(),
        }
    }
}

/// Whom to call, until the registration ends; locked during a call.
///
/// Nobody takes the watcher out of the lock but [`Watch`]: it is code of a module that may be unloaded afterwards, its
/// drop as well as its calls.
#[pin_data]
struct Calls {
    #[pin]
    watcher: Mutex<Option<Arc<dyn Watcher>>>,
}

/// The devices and the watchers there are.
struct Registry {
    devices: KVec<Arc<Device>>,
    watchers: KVec<Entry>,
    next_id: u64,
}

kernel::sync::global_lock! {
    // SAFETY: `init` below is called when the module is loaded, before anything else.
    unsafe(uninit) static REGISTRY: Mutex<Registry> = Registry {
        devices: KVec::new(),
        watchers: KVec::new(),
        next_id: 1,
    };
}

/// Prepares the registry.
///
/// # Safety
///
/// To be called once, before everything else here.
pub(crate) unsafe fn init() {
    // SAFETY: The caller's guarantee.
    unsafe { REGISTRY.init() }
}

/// The device that `wanted` names. Sleeps.
pub(crate) fn find(wanted: impl Fn(&Device) -> bool) -> Option<Arc<Device>> {
    let registry = REGISTRY.lock();
    registry.devices.iter().find(|at| wanted(at)).cloned()
}

/// Adds a device and tells the watchers. Sleeps.
pub(crate) fn insert(device: Arc<Device>) -> Result {
    REGISTRY.lock().devices.push(device.clone(), GFP_KERNEL)?;
    tell(|watcher| watcher.arrived(&device));
    Ok(())
}

/// Takes a device out and tells the watchers. Sleeps.
pub(crate) fn remove(device: &Arc<Device>) {
    let taken = take_out(&mut REGISTRY.lock().devices, |at| Arc::ptr_eq(at, device));
    drop(taken);
    tell(|watcher| watcher.removed(device));
}

/// Takes one out, which the caller drops without the lock. Nobody drops a static, so an empty list keeps no memory.
fn take_out<T>(list: &mut KVec<T>, wanted: impl Fn(&T) -> bool) -> Option<T> {
    let at = list.iter().position(wanted)?;
    let taken = list.remove(at).ok();
    if list.is_empty() {
        *list = KVec::new();
    }
    taken
}

/// Calls every watcher.
fn tell(call: impl Fn(&dyn Watcher)) {
    let mut last = 0;
    loop {
        // They are in the order of their ids.
        let next = REGISTRY
            .lock()
            .watchers
            .iter()
            .find(|at| at.id > last)
            .cloned();
        let Some(entry) = next else {
            return;
        };
        last = entry.id;
        let watcher = entry.calls.watcher.lock();
        if let Some(watcher) = &*watcher {
            call(&**watcher);
        }
    }
}

/// The registration of a [`Watcher`].
///
/// Dropping it ends the registration and waits for a call that runs; so it must not be dropped by such a call. As
/// with every registration, a module must not forget it: the watcher is code of the module.
pub struct Watch {
    id: u64,
    calls: Arc<Calls>,
}

impl Watch {
    /// Registers `watcher`, and tells it of the devices that are there before it returns. Sleeps.
    pub fn register(watcher: Arc<dyn Watcher>) -> Result<Self> {
        let calls = Arc::pin_init(
            pin_init!(Calls { watcher <- new_mutex!(Some(watcher), "Watch::calls") }),
            GFP_KERNEL,
        )?;
        let this = {
            // Held until all devices that are there were told of, so that none of them can be said to go before.
            let watcher = calls.watcher.lock();
            let (this, devices) = Self::enlist(&calls)?;
            for device in &devices {
                watcher.iter().for_each(|watcher| watcher.arrived(device));
            }
            this
        };
        Ok(this)
    }

    /// Adds a watcher; the devices that will not be told of otherwise.
    fn enlist(calls: &Arc<Calls>) -> Result<(Self, KVec<Arc<Device>>)> {
        let mut registry = REGISTRY.lock();
        let mut devices = KVec::with_capacity(registry.devices.len(), GFP_KERNEL)?;
        for device in &registry.devices {
            devices.push(device.clone(), GFP_KERNEL)?;
        }
        let id = registry.next_id;
        let entry = Entry {
            id,
            calls: calls.clone(),
        };
        registry.watchers.push(entry, GFP_KERNEL)?;
        registry.next_id = id.wrapping_add(1);
        let calls = calls.clone();
        Ok((Self { id, calls }, devices))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let taken = take_out(&mut REGISTRY.lock().watchers, |at| at.id == self.id);
        let watcher = self.calls.watcher.lock().take();
        drop((taken, watcher));
    }
}
