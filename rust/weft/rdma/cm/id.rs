// SPDX-License-Identifier: GPL-2.0

//! What an id is for the library, and its end.

use super::{
    event::{
        self,
        CmHandler, //
    },
    inside::Inside,
    PortSpace, //
};
use crate::bindings;
use core::ptr::NonNull;
use kernel::{
    new_spinlock,
    prelude::*,
    static_lock_class,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        ArcBorrow,
        SpinLock, //
    },
    types::Opaque, //
};
use weft::workqueue::QueueHold;

/// How far an id has come. Changes under its handler mutex only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Phase {
    /// Nothing has been done.
    New,
    /// It has a local address.
    Bound,
    /// It listens, or has tried to.
    Listening,
    /// It looks for its peer, or has found it.
    Resolving,
    /// The peer could not be looked for: of no further use.
    Spent,
    /// It has asked the peer for a connection.
    Connecting,
    /// A peer asks for a connection.
    Requested,
    /// That was answered.
    Answered,
}

impl Phase {
    const ALL: [Self; 8] = [
        Self::New,
        Self::Bound,
        Self::Listening,
        Self::Resolving,
        Self::Spent,
        Self::Connecting,
        Self::Requested,
        Self::Answered,
    ];
}

/// The library's side of a C id: what its context points to.
///
/// # Invariants
///
/// * `raw` is valid until [`destroy`] is called for it. Its context is a pointer to this object, for which a strong
///   reference was leaked, and its handler is [`event::callback`].
/// * `users` is the number of [`IdRef`]s. Once it is zero it stays zero, and [`destroy`] is or will be called, once.
#[pin_data]
pub(super) struct Id {
    raw: NonNull<bindings::rdma_cm_id>,
    users: Atomic<i32>,
    phase: Atomic<i32>,
    /// There is a queue pair on it.
    pub(super) has_qp: Atomic<bool>,
    /// Who is told of events; taken away when the id's owner is gone.
    #[pin]
    handler: SpinLock<Option<Arc<dyn CmHandler>>>,
    /// Destroys the C id where the last user must not wait.
    #[pin]
    work: Opaque<bindings::work_struct>,
    /// Keeps the queue for the work, and the module of the handler with it.
    pub(super) hold: QueueHold,
}

// SAFETY: The C id may be used from any thread by the rules of its handler mutex, which the methods keep. The other
// fields are `Send`.
unsafe impl Send for Id {}
// SAFETY: As above; what changes is atomic or locked.
unsafe impl Sync for Id {}

impl Id {
    fn init(
        raw: NonNull<bindings::rdma_cm_id>,
        phase: Phase,
        handler: Arc<dyn CmHandler>,
        hold: QueueHold,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            raw,
            users: Atomic::new(1),
            // CAST: The representation of the enum.
            phase: Atomic::new(phase as i32),
            has_qp: Atomic::new(false),
            handler <- new_spinlock!(Some(handler), "weft_cm_handler"),
            work <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for writes and stays where it is; the name and the class live for ever.
                unsafe {
                    bindings::init_work_with_key(
                        slot,
                        Some(work_callback),
                        false,
                        c"weft_cm_destroy".as_char_ptr(),
                        static_lock_class!().as_ptr(),
                    )
                }
            }),
            hold,
        })
    }

    /// The id that the context of a C id points to.
    ///
    /// # Safety
    ///
    /// `raw` must be valid, have a context of this type, and not be destroyed during `'a`.
    pub(super) unsafe fn of<'a>(raw: *mut bindings::rdma_cm_id) -> ArcBorrow<'a, Self> {
        // SAFETY: By the type invariants of the id, a reference for the context is there until the C id is destroyed.
        unsafe { ArcBorrow::from_raw((*raw).context.cast::<Self>().cast_const()) }
    }

    pub(super) fn as_raw(&self) -> *mut bindings::rdma_cm_id {
        self.raw.as_ptr()
    }

    pub(super) fn phase(&self) -> Phase {
        // ORDERING: The handler mutex orders.
        let phase = self.phase.load(Relaxed);
        let known = Phase::ALL.into_iter().find(|&known| known as i32 == phase);
        known.unwrap_or(Phase::Spent)
    }

    pub(super) fn set_phase(&self, phase: Phase) {
        // ORDERING: The handler mutex orders.
        self.phase.store(phase as i32, Relaxed);
    }

    /// The handler, unless the id's owner is gone.
    pub(super) fn handler(&self) -> Option<Arc<dyn CmHandler>> {
        self.handler.lock().clone()
    }

    /// Takes the handler away, so that no further call of it begins.
    pub(super) fn take_handler(&self) -> Option<Arc<dyn CmHandler>> {
        self.handler.lock().take()
    }
}

/// A counted use of an id: as long as there is one, the C id is not destroyed.
///
/// Dropping the last one destroys the C id. Sleeps, except in a handler.
///
/// # Invariants
///
/// It is counted in `users` of its id.
pub(crate) struct IdRef(pub(super) Arc<Id>);

impl IdRef {
    /// Takes a C id over.
    ///
    /// # Safety
    ///
    /// `raw` must be a valid id that nobody else destroys, unless this fails. No event may come to it during the call.
    pub(super) unsafe fn adopt(
        raw: NonNull<bindings::rdma_cm_id>,
        phase: Phase,
        handler: Arc<dyn CmHandler>,
        hold: QueueHold,
    ) -> Result<Self> {
        let id = Arc::pin_init(Id::init(raw, phase, handler, hold), GFP_KERNEL)?;
        // INVARIANT: The context is the object, with a reference leaked for it. `users` was one from the start.
        // SAFETY: The id is valid, and nothing reads these fields now.
        unsafe {
            (*raw.as_ptr()).context = Arc::into_raw(id.clone()).cast_mut().cast();
            (*raw.as_ptr()).event_handler = Some(event::callback);
        }
        Ok(Self(id))
    }

    /// Creates a C id in the namespace `net`.
    pub(super) fn create(
        net: &weft::net::ns::ActiveNet,
        space: PortSpace,
        handler: Arc<dyn CmHandler>,
        hold: QueueHold,
    ) -> Result<Self> {
        // SAFETY: The namespace is active. Without an address no event comes, so the context may be null for now.
        let raw = kernel::error::from_err_ptr(unsafe {
            bindings::__rdma_create_kernel_id(
                net.as_raw(),
                Some(event::callback),
                core::ptr::null_mut(),
                space.as_raw(),
                bindings::ib_qp_type_IB_QPT_RC,
                c"weft".as_char_ptr(),
            )
        })?;
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        // SAFETY: The id is valid and new.
        let adopted = kernel::error::to_result(unsafe {
            bindings::rdma_restrict_node_type(raw.as_ptr(), RDMA_NODE_IB_CA)
        })
        // SAFETY: Nobody else knows the id, and it has no address yet.
        .and_then(|()| unsafe { Self::adopt(raw, Phase::New, handler, hold) });
        if adopted.is_err() {
            // SAFETY: The id is valid and was not taken over.
            unsafe { bindings::rdma_destroy_id(raw.as_ptr()) };
        }
        adopted
    }

    /// Counts one more use, unless the last one is gone.
    pub(super) fn try_new(id: ArcBorrow<'_, Id>) -> Option<Self> {
        // ORDERING: Whoever calls this keeps the object; the count only decides.
        let mut users = id.users.load(Relaxed);
        while users > 0 && users < i32::MAX {
            match id.users.cmpxchg(users, users + 1, Full) {
                // INVARIANT: Just counted.
                Ok(_) => return Some(Self(id.into())),
                Err(now) => users = now,
            }
        }
        None
    }
}

impl Drop for IdRef {
    fn drop(&mut self) {
        // ORDERING: `Full` orders all uses before the end.
        if self.0.users.fetch_sub(1, Full) != 1 {
            return;
        }
        if Inside::possible() {
            // SAFETY: The queue is held by the id, which stays until the work has run: the reference for the context
            // is dropped there. The work is initialised, and is queued this once.
            unsafe {
                bindings::queue_work_on(
                    // CAST: A small constant.
                    bindings::wq_misc_consts_WORK_CPU_UNBOUND as kernel::ffi::c_int,
                    self.0.hold.as_raw(),
                    self.0.work.get(),
                )
            };
        } else {
            // SAFETY: The last use is gone, and this task holds no handler mutex.
            unsafe { destroy(Arc::as_ptr(&self.0)) };
        }
    }
}

/// Destroys the C id and drops the reference of its context.
///
/// # Safety
///
/// `id` must be valid and its `users` have dropped to zero; to be called once. The current task must not hold the
/// id's handler mutex.
unsafe fn destroy(id: *const Id) {
    // SAFETY: By the type invariants the C id is valid. Its queue pair, being a user, is gone. When this returns, no
    // handler runs and none will be called.
    unsafe { bindings::rdma_destroy_id((*id).as_raw()) };
    // SAFETY: By the type invariants a reference was leaked for the context, which nobody reads any more.
    drop(unsafe { Arc::from_raw(id) });
}

/// # Safety
///
/// To be called by a work queue with the work of an [`Id`] whose last user is gone.
unsafe extern "C" fn work_callback(work: *mut bindings::work_struct) {
    let work = Opaque::cast_from(work.cast_const());
    // SAFETY: It is the work of an `Id`, and a work item holds no handler mutex.
    unsafe { destroy(kernel::container_of!(work, Id, work)) };
}

/// The type of InfiniBand and RoCE devices.
// CAST: A small constant.
const RDMA_NODE_IB_CA: u8 = bindings::RDMA_NODE_IB_CA as u8;
