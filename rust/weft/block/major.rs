// SPDX-License-Identifier: GPL-2.0

//! Major numbers of block devices.
//!
//! C header: [`include/linux/blkdev.h`](srctree/include/linux/blkdev.h) (`register_blkdev`)

use crate::{
    bindings,
    block::gate::Gate, //
};
use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// What a major number and the disks under it share.
#[pin_data]
struct Shared {
    number: u32,
    /// Each disk under the number is inside, until the last of its memory is freed.
    #[pin]
    disks: Gate,
}

/// A major number that a module has registered.
///
/// Dropping it sleeps: it waits until every disk under it is gone, so that no code of the module is called by the
/// block layer afterwards. Disks are to be removed before; what is waited for then are those that still close a file.
/// As with every registration of the kernel crate, it must not be forgotten by a module that is unloaded.
pub struct Major {
    shared: Arc<Shared>,
    name: &'static CStr,
}

impl Major {
    /// Registers a free major number, shown in `/proc/devices` as `name`. Sleeps. `EBUSY` if no number is left.
    pub fn register(name: &'static CStr) -> Result<Self> {
        // SAFETY: The name is a valid string; there is no probe function.
        let number = unsafe { bindings::__register_blkdev(0, name.as_char_ptr(), None) };
        kernel::error::to_result(number)?;
        let number = u32::try_from(number)?;
        let shared = Arc::pin_init(
            pin_init!(Shared {
                number,
                disks <- Gate::new(),
            }),
            GFP_KERNEL,
        );
        match shared {
            Ok(shared) => Ok(Self { shared, name }),
            Err(error) => {
                // SAFETY: The number was just registered by this name.
                unsafe { bindings::unregister_blkdev(number, name.as_char_ptr()) };
                Err(error)
            }
        }
    }

    /// A handle with which disks are made.
    pub fn handle(&self) -> MajorHandle {
        MajorHandle(self.shared.clone())
    }
}

impl Drop for Major {
    fn drop(&mut self) {
        self.shared.disks.close();
        // SAFETY: Registered by `register` with this name, and no disk is left that uses it.
        unsafe { bindings::unregister_blkdev(self.shared.number, self.name.as_char_ptr()) };
    }
}

/// A reference to a [`Major`]. Once that is being dropped, no disk can be made with it.
#[derive(Clone)]
pub struct MajorHandle(Arc<Shared>);

impl MajorHandle {
    /// The number.
    pub fn number(&self) -> u32 {
        self.0.number
    }

    /// Counts one more disk; `ENODEV` if the registration is being dropped.
    pub(super) fn enter(&self) -> Result {
        if self.0.disks.enter() {
            Ok(())
        } else {
            Err(ENODEV)
        }
    }

    /// The disk that was counted by [`Self::enter`] is gone.
    pub(super) fn leave(&self) {
        self.0.disks.leave();
    }
}
