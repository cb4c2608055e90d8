// SPDX-License-Identifier: GPL-2.0

//! The devices of a session by the number the client knows them by.
//!
//! Requests look a device up in place and without a lock; opening and closing replace the table as a whole, and once
//! a device is out of the table nobody is left who found it there and did not hold it yet.
//!
//! C counterpart: `index_idr` of `struct rnbd_srv_session`.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use weft::{
    new_snapshot,
    sync::snapshot::Snapshot, //
};

/// Devices that a session may have: as many as a client has minor numbers for.
const MAX_DEVICES: usize = 1 << 14;

/// What a number stands for.
enum Slot<T> {
    /// Nothing.
    Free,
    /// An open device.
    Open(Arc<T>),
    /// A device that was closed here while the client may still use its number: no other device may get it.
    Kept,
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Free => Self::Free,
            Self::Open(device) => Self::Open(device.clone()),
            Self::Kept => Self::Kept,
        }
    }
}

/// The devices of a session.
#[pin_data]
pub(crate) struct Table<T: Send + Sync + 'static> {
    #[pin]
    slots: Snapshot<KVVec<Slot<T>>>,
    /// Held by whoever replaces `slots`.
    #[pin]
    changing: Mutex<()>,
}

impl<T: Send + Sync + 'static> Table<T> {
    /// An empty table.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(|| {
            let slots = KBox::new(KVVec::new(), GFP_KERNEL)?;
            Ok(try_pin_init!(Self {
                slots <- new_snapshot!(slots, "rnbd_server_table"),
                changing <- new_mutex!(()),
            }? Error))
        })
    }

    /// The device of a number. Any context but hard interrupts.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<Arc<T>> {
        let id = usize::try_from(id).ok()?;
        match self.slots.read().get(id)? {
            Slot::Open(device) => Some(device.clone()),
            Slot::Free | Slot::Kept => None,
        }
    }

    /// The first device for which `wanted` holds.
    pub(crate) fn find(&self, wanted: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        self.slots.read().iter().find_map(|slot| match slot {
            Slot::Open(device) if wanted(device) => Some(device.clone()),
            _ => None,
        })
    }

    /// Adds the device that `make` makes of the lowest free number. May sleep.
    pub(crate) fn insert(&self, make: impl FnOnce(u32) -> Result<Arc<T>>) -> Result<Arc<T>> {
        let _changing = self.changing.lock();
        let mut slots = self.copy(1)?;
        let free = slots.iter().position(|slot| matches!(slot, Slot::Free));
        let id = free.unwrap_or(slots.len());
        if id >= MAX_DEVICES {
            return Err(ENOSPC);
        }
        let device = make(u32::try_from(id).map_err(|_| ENOSPC)?)?;
        match slots.get_mut(id) {
            Some(slot) => *slot = Slot::Open(device.clone()),
            None => slots.push(Slot::Open(device.clone()), GFP_KERNEL)?,
        }
        self.slots.replace(KBox::new(slots, GFP_KERNEL)?);
        Ok(device)
    }

    /// Forgets the device of a number, or that it was kept: another device may get it. May sleep.
    ///
    /// Without memory for that the number stays what it is; its device is closed all the same.
    pub(crate) fn free(&self, id: u32) -> Result {
        self.change(
            |at, slot| at == id && !matches!(slot, Slot::Free),
            |_| Slot::Free,
        )
    }

    /// Forgets a device, if it is still there: its number stands for nothing until the client closes it. As above.
    pub(crate) fn keep(&self, device: &Arc<T>) -> Result {
        let is_it = |_, slot: &Slot<T>| match slot {
            Slot::Open(open) => Arc::ptr_eq(open, device),
            Slot::Free | Slot::Kept => false,
        };
        self.change(is_it, |_| Slot::Kept)
    }

    /// Forgets all devices, whose numbers stand for nothing until this is called once more. As above.
    pub(crate) fn keep_all(&self) -> Result {
        self.change(
            |_, slot| !matches!(slot, Slot::Free),
            |slot| match slot {
                Slot::Open(_) => Slot::Kept,
                Slot::Free | Slot::Kept => Slot::Free,
            },
        )
    }

    /// Replaces each slot that `which` chooses.
    fn change(
        &self,
        which: impl Fn(u32, &Slot<T>) -> bool,
        new: impl Fn(&Slot<T>) -> Slot<T>,
    ) -> Result {
        let _changing = self.changing.lock();
        let mut slots = self.copy(0)?;
        let mut changed = false;
        for (at, slot) in (0u32..).zip(slots.iter_mut()) {
            if which(at, slot) {
                *slot = new(slot);
                changed = true;
            }
        }
        if changed {
            self.slots.replace(KBox::new(slots, GFP_KERNEL)?);
        }
        Ok(())
    }

    /// Forgets all. May sleep.
    pub(crate) fn clear(&self) -> Result {
        let _changing = self.changing.lock();
        self.slots.replace(KBox::new(KVVec::new(), GFP_KERNEL)?);
        Ok(())
    }

    /// Does something with every device. `visit` must not change the table.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&Arc<T>)) {
        for slot in self.slots.read().iter() {
            if let Slot::Open(device) = slot {
                visit(device);
            }
        }
    }

    /// A copy with room for `more`.
    fn copy(&self, more: usize) -> Result<KVVec<Slot<T>>> {
        let slots = self.slots.read();
        let mut copy = KVVec::with_capacity(slots.len().saturating_add(more), GFP_KERNEL)?;
        copy.extend_from_slice(&slots, GFP_KERNEL)?;
        Ok(copy)
    }
}
