// SPDX-License-Identifier: GPL-2.0

//! RDMA devices, and how they go away.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)
//!
//! The library is one `ib_client`. Each device that the core shows it is a [`Device`], shared by all modules of this
//! tree. A device can be pulled at any time, and the core then waits until the client's `remove` returns, which must
//! not happen before everything that was made from the device is gone. Therefore:
//!
//! * everything made from a device (protection domain, queue, mapping, ...) holds a [`Use`] of it;
//! * `remove` first revokes the device: from then on no [`Use`] is given out, and whatever needs one fails with
//!   `ENODEV`. Then it tells every [`Watcher`](crate::watch::Watcher), and then it waits for the last [`Use`];
//! * an `Arc<Device>` alone keeps nothing up: it may be kept for ever, and compared, and asked for its limits.
//!
//! Who uses a device therefore registers a [`Watcher`](crate::watch::Watcher) and shuts down what it has on a
//! device in [`removed`](crate::watch::Watcher::removed), or starts to. A device whose users do not shut down hangs in
//! its removal, but is never used after it is gone.

use crate::{
    bindings,
    watch, //
};
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    ffi,
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        Completion, //
    },
    types::Opaque, //
};

/// Set in [`Device::users`] once the device is revoked.
const GONE: i64 = 1 << 62;

/// Room for the name of a device: `IB_DEVICE_NAME_MAX`.
const NAME_MAX: usize = 64;

// CAST: Single bits, of an enum whose type depends on the compiler of C.
/// The device has REG_MR and LOCAL_INV.
const CAN_FAST_REG: u64 = bindings::ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS as u64;
/// The device has `IB_MR_TYPE_SG_GAPS`.
const CAN_SG_GAPS: u64 = bindings::ib_kernel_cap_flags_IBK_SG_GAPS_REG as u64;

/// What a device can do; counts unless said otherwise. Copied when the device arrives.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Work requests of one send or receive queue. The device has one more, by which queues are drained.
    pub max_qp_wr: u32,
    /// Entries of a completion queue.
    pub max_cqe: u32,
    /// Scatter-gather entries of one work request that sends or writes.
    pub max_send_sge: u32,
    /// Scatter-gather entries of one work request that receives.
    pub max_recv_sge: u32,
    /// Scatter-gather entries of one RDMA READ.
    pub max_sge_rd: u32,
    /// Memory regions of the device.
    pub max_mr: u32,
    /// Pages of one fast-registration memory region.
    pub max_fast_reg_pages: u32,
    /// Bytes of one DMA segment.
    pub max_segment: u32,
    /// Completion vectors, at least 1.
    pub comp_vectors: u32,
    /// Page sizes that memory regions may have: bit n stands for 2^n bytes.
    pub page_sizes: u64,
    /// Whether memory regions can be registered and invalidated by work requests (`IB_DEVICE_MEM_MGT_EXTENSIONS`).
    pub fast_reg: bool,
    /// Whether a memory region takes segments that do not fill pages (`IBK_SG_GAPS_REG`).
    pub sg_gaps: bool,
    /// Whether RDMA WRITE with immediate is there, as far as can be known before a queue pair tries: false for
    /// soft-iWARP (`siw`), whose transport has none. Other iWARP devices depend on firmware and fail when posting.
    pub write_imm: bool,
    /// Whether DMA addresses are virtual addresses (software devices: `rxe`, `siw`).
    pub virt_dma: bool,
}

/// A device that the library has seen.
///
/// # Invariants
///
/// `raw` points to a registered `ib_device` as long as a [`Use`] exists, and as long as [`GONE`] is not set in
/// `users`. `users` without [`GONE`] is the number of [`Use`]s.
#[pin_data]
pub struct Device {
    raw: NonNull<bindings::ib_device>,
    name: [u8; NAME_MAX],
    node_guid: u64,
    limits: Limits,
    users: Atomic<i64>,
    #[pin]
    idle: Completion,
}

// SAFETY: An `ib_device` may be used from any thread; the other fields are `Send`.
unsafe impl Send for Device {}
// SAFETY: As above, and all fields are used through shared references only.
unsafe impl Sync for Device {}

impl Device {
    /// The device that C knows as `raw`; `ENODEV` if the library has not seen it yet or it is being removed.
    ///
    /// The pointer is only compared. Sleeps for a mutex.
    pub(crate) fn from_raw(raw: *mut bindings::ib_device) -> Result<Arc<Self>> {
        watch::find(|device| device.raw.as_ptr() == raw).ok_or(ENODEV)
    }

    /// Its name when it arrived, such as `mlx5_0`.
    pub fn name(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.name).unwrap_or_default()
    }

    /// Its node GUID, in host order. Not necessarily unique.
    pub fn node_guid(&self) -> u64 {
        self.node_guid
    }

    /// What it can do.
    #[inline]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether it was revoked. A hint: creating something says for sure, with `ENODEV`.
    pub fn is_gone(&self) -> bool {
        // ORDERING: A hint.
        self.users.load(Relaxed) & GONE != 0
    }

    /// Counts a user; `ENODEV` once the device is revoked. Any context.
    #[inline]
    pub(crate) fn enter(self: &Arc<Self>) -> Result<Use> {
        // ORDERING: `Full` orders the check before all use of the device, against `revoke`.
        if self.users.fetch_add(1, Full) & GONE == 0 {
            // INVARIANT: Just counted.
            return Ok(Use(self.clone()));
        }
        self.leave();
        Err(ENODEV)
    }

    #[inline]
    fn leave(&self) {
        // ORDERING: `Full` orders all use of the device before the count is seen as zero.
        if self.users.fetch_sub(1, Full) == GONE + 1 {
            self.idle.complete_all();
        }
    }

    /// Lets nobody in any more.
    fn revoke(&self) {
        // ORDERING: `Full`: whoever is not seen by `wait` sees GONE.
        self.users.fetch_add(GONE, Full);
    }

    /// Waits until the last [`Use`] is gone. Sleeps.
    fn wait(&self) {
        // Counts itself, so that somebody ends the wait even if there was nobody.
        // ORDERING: As in `enter` and `leave`.
        self.users.fetch_add(1, Full);
        self.leave();
        self.idle.wait_for_completion();
    }

    /// Reads what is of interest of a device.
    ///
    /// # Safety
    ///
    /// `raw` must point to a registered device that stays valid for as long as the invariants of [`Device`] say.
    unsafe fn new(raw: NonNull<bindings::ib_device>) -> Result<Arc<Self>> {
        // SAFETY: The caller promises a valid device, whose attributes do not change while it is registered.
        let limits = unsafe { limits_of(raw.as_ptr()) };
        let mut name = [0; NAME_MAX];
        // SAFETY: The name is a string in the device.
        let source = unsafe { CStr::from_char_ptr(bindings::weft_helper_ib_name(raw.as_ptr())) };
        for (to, from) in name.iter_mut().take(NAME_MAX - 1).zip(source.to_bytes()) {
            *to = *from;
        }
        // SAFETY: The caller promises a valid device.
        let node_guid = u64::from_be(unsafe { (*raw.as_ptr()).node_guid });
        // INVARIANT: Nobody uses it yet.
        Arc::pin_init(
            pin_init!(Self {
                raw,
                name,
                node_guid,
                limits,
                users: Atomic::new(0),
                idle <- Completion::new(),
            }),
            GFP_KERNEL,
        )
    }
}

/// The limits of a device.
///
/// # Safety
///
/// `raw` must point to a registered device.
unsafe fn limits_of(raw: *mut bindings::ib_device) -> Limits {
    // SAFETY: The caller promises a valid device.
    let attrs = unsafe { &(*raw).attrs };
    // SAFETY: As above.
    let vectors = unsafe { (*raw).num_comp_vectors };
    let count = |value: ffi::c_int| u32::try_from(value).unwrap_or(0);
    Limits {
        max_qp_wr: attrs.max_qp_wr.saturating_sub(1),
        max_cqe: attrs.max_cqe,
        max_send_sge: attrs.max_send_sge,
        max_recv_sge: attrs.max_recv_sge,
        max_sge_rd: attrs.max_sge_rd,
        max_mr: attrs.max_mr,
        max_fast_reg_pages: attrs.max_fast_reg_page_list_len,
        // SAFETY: As above.
        max_segment: unsafe { bindings::weft_helper_ib_dma_max_seg_size(raw) },
        comp_vectors: count(vectors).max(1),
        page_sizes: attrs.page_size_cap,
        fast_reg: attrs.device_cap_flags & CAN_FAST_REG != 0,
        sg_gaps: attrs.kernel_cap_flags & CAN_SG_GAPS != 0,
        // SAFETY: As above.
        write_imm: unsafe { bindings::weft_helper_ib_has_write_imm(raw) },
        // SAFETY: As above.
        virt_dma: unsafe { bindings::weft_helper_ib_uses_virt_dma(raw) },
    }
}

/// A counted use of a [`Device`], which stays registered while one exists.
///
/// # Invariants
///
/// Is counted in [`Device::users`], and was before [`GONE`] was set there.
pub(crate) struct Use(Arc<Device>);

impl Use {
    /// The C device, valid as long as `self`.
    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::ib_device {
        self.0.raw.as_ptr()
    }

    /// The device.
    #[inline]
    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.0
    }
}

impl Clone for Use {
    fn clone(&self) -> Self {
        // ORDERING: The device is there as long as `self` is counted.
        self.0.users.fetch_add(1, Relaxed);
        // INVARIANT: Just counted. If GONE is set by now, `self` still holds the removal off.
        Self(self.0.clone())
    }
}

impl Drop for Use {
    #[inline]
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// The registration of the library with the RDMA core; one, made when the module is loaded.
///
/// Dropping it removes every device, so it waits for every [`Use`]. No user is left then: they stand on this module.
pub(crate) struct Client(Pin<KBox<Opaque<bindings::ib_client>>>);

// SAFETY: An `ib_client` may be unregistered from any thread.
unsafe impl Send for Client {}
// SAFETY: There are no methods that use `&self`.
unsafe impl Sync for Client {}

impl Client {
    /// Registers; the devices that are there are seen before this returns. Sleeps.
    pub(crate) fn register() -> Result<Self> {
        let client = KBox::pin(
            Opaque::new(bindings::ib_client {
                name: c"weft_rdma".as_char_ptr(),
                add: Some(add_callback),
                remove: Some(remove_callback),
                ..Default::default()
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: The client has its callbacks and stays where it is until `drop` has unregistered it.
        to_result(unsafe { bindings::ib_register_client(client.get()) })?;
        Ok(Self(client))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: It was registered in `register`.
        unsafe { bindings::ib_unregister_client(self.0.get()) }
    }
}

/// A device has come.
///
/// # Safety
///
/// To be called by the RDMA core.
unsafe extern "C" fn add_callback(raw: *mut bindings::ib_device) -> ffi::c_int {
    let add = || -> Result {
        let raw = NonNull::new(raw).ok_or(EINVAL)?;
        // SAFETY: The device is registered, and the core calls `remove_callback` before it ends. There GONE is set
        // and the last `Use` waited for.
        watch::insert(unsafe { Device::new(raw) }?)
    };
    add().map_or_else(|error| error.to_errno(), |()| 0)
}

/// A device goes.
///
/// # Safety
///
/// To be called by the RDMA core, with a device that was added.
unsafe extern "C" fn remove_callback(raw: *mut bindings::ib_device, _data: *mut ffi::c_void) {
    let Ok(device) = Device::from_raw(raw) else {
        return;
    };
    device.revoke();
    watch::remove(&device);
    device.wait();
}
