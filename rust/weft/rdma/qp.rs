// SPDX-License-Identifier: GPL-2.0

//! Queue pairs: reliable connections over which work requests are done.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)
//!
//! A [`Qp`] is made on an id of the connection manager. Work requests are posted as [`Chain`]s, up to [`MAX_WRS`] at a
//! time, with [`QueuePair::post`]. What the peer sends comes to the [`Handler`].
//!
//! # Why no memory is lost
//!
//! A work request lends memory to hardware until it is over, which only hardware knows. The rule here: *each chain has an
//! owner, and names only what belongs to it.*
//!
//! * `post` takes an `Arc` of the owner and a closure `for<'o> FnOnce(&'o T, &mut Chain<'o>)`. Whatever goes into the
//!   chain has the lifetime `'o`. The closure must work for every `'o`, so all it can know of `'o` is that the owner is
//!   borrowed for it: what it puts in is reached from the owner by shared references (or is there for ever). It could as
//!   well be called with an `'o` that lasts until the chain is over, and that is what the library makes true:
//! * the `Arc` is kept in the queue pair's ring until the chain is over. So the owner is neither dropped nor, being shared,
//!   borrowed mutably; whatever was reached from it by shared references stays where it is, and its mappings stay.
//! * A chain is over when a completion says so, for it or for a later one (send queues complete in order), or when the queue
//!   pair was drained and destroyed. Nothing else releases an owner.
//! * What must get out of an owner while that lives on is in a [`Loan`](crate::loan::Loan) or an [`Mr`](crate::mr::Mr),
//!   which let it out only for a proof that the chains that use it are over.
//!
//! # Contexts
//!
//! Posting: any context, even hard interrupts; it allocates nothing. Handlers and [`Owner::sent`]: where the completion
//! queue is handled ([`Context`](crate::cq::Context)). Creating, shutting down, dropping: process context; they sleep.
//!
//! # The end
//!
//! [`Qp::shutdown`] (and the drop, if need be) lets nothing more in, puts the queue pair into its error state, waits until
//! all work requests have come back, destroys it, and releases what is left. Until then a queue pair holds its handler, so
//! a handler may own its queue pair if somebody calls `shutdown`.

mod chain;
mod recv;
mod ring;
mod shutdown;
mod status;

pub use chain::{
    Chain,
    Gather,
    Gathering,
    Remote,
    MAX_SGES,
    MAX_WRS, //
};
pub use recv::{
    Message,
    Received, //
};
pub use status::WcStatus;

use crate::{
    bindings,
    cm::{
        IdQp,
        Token, //
    },
    cq::{
        Cq,
        Room, //
    },
    device::Device,
    loan::{
        Drained,
        Sent, //
    },
    pd::Pd, //
};
use core::{
    cell::UnsafeCell,
    mem::{
        ManuallyDrop,
        MaybeUninit, //
    },
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    ffi,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc,
        ArcBorrow, //
    },
};
use recv::Receives;
use ring::Ring;
use shutdown::{
    Sentinel,
    Stage, //
};

/// The number of the next queue pair; none has 0.
static NEXT_ID: Atomic<u64> = Atomic::new(1);

/// Who has posted a chain, with all the memory that it names.
pub trait Owner: Send + Sync + 'static {
    /// The chain is over: done, if it was posted with [`Signal::Always`], or failed, with any signal.
    ///
    /// `sent` proves that it is over, with all chains posted before it. In the context of the send completion queue, or in
    /// [`Qp::shutdown`]; the owner may be dropped by this.
    fn sent(self: Arc<Self>, result: Result<(), WcStatus>, sent: &Sent) {
        let _ = (result, sent);
    }
}

/// Who is told what comes over a queue pair. In the context of the completion queue, unless said otherwise.
///
/// All must return soon. None may call [`Qp::shutdown`] or drop the [`Qp`].
pub trait Handler: Send + Sync + Sized + 'static {
    /// The peer has sent something. `qp` is the queue pair.
    fn received(this: ArcBorrow<'_, Self>, qp: &QueuePair, message: Received<'_>);

    /// The queue pair does not work any more. Called once, with the first error; any context, must not sleep.
    ///
    /// Also comes when the connection is closed and receives are flushed ([`WcStatus::is_flushed`]).
    fn error(this: ArcBorrow<'_, Self>, status: WcStatus);

    /// There is room again after a post failed with [`PostError::Full`].
    fn writable(this: ArcBorrow<'_, Self>, qp: &QueuePair) {
        let _ = (this, qp);
    }
}

/// Whether the end of a chain is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Yes, by [`Owner::sent`].
    Always,
    /// Only if it fails. If it does not, its owner is released some time later; completions are asked for as often as
    /// necessary for the queue to have room.
    Auto,
}

/// Why nothing was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostError {
    /// There is no room; [`Handler::writable`] will tell when there is. (For receives: there are too many already.)
    Full,
    /// The queue pair was shut down, or has broken.
    Closed,
    /// Some work requests of the chain were posted and the others could not be: the queue pair must be shut down, and its
    /// owner is released then.
    Broken,
    /// The chain could not be built or posted. Nothing has changed.
    Failed(Error),
}

impl From<PostError> for Error {
    fn from(error: PostError) -> Self {
        match error {
            PostError::Full => EAGAIN,
            PostError::Closed => ENOTCONN,
            PostError::Broken => EIO,
            PostError::Failed(error) => error,
        }
    }
}

/// Buffers for receives.
#[derive(Clone, Copy, Debug)]
pub struct SlabSize {
    /// Bytes of each.
    pub entry: u32,
    /// How many there are, up to 65536.
    pub count: u32,
}

/// What a queue pair is made of.
pub struct QpInit<'a> {
    /// Its protection domain.
    pub pd: &'a Arc<Pd>,
    /// Where its sends complete. Needs `max_send_wr + 1` entries for it.
    pub send_cq: &'a Arc<Cq>,
    /// Where its receives complete; may be the same. Needs `max_recv_wr + 1` entries for it.
    pub recv_cq: &'a Arc<Cq>,
    /// Work requests in its send queue, at least [`MAX_WRS`]` + 1`.
    pub max_send_wr: u32,
    /// Receives in its receive queue.
    pub max_recv_wr: u32,
    /// Scatter-gather entries of one work request; not more than [`MAX_SGES`] are of use.
    pub max_send_sge: u32,
    /// Buffers for receives with bytes.
    pub slab: Option<SlabSize>,
}

/// What the library calls of a handler whose type it does not know. All take the queue pair in an [`Inner`] of the right
/// type.
struct Calls {
    error: unsafe fn(&QueuePair, WcStatus),
    writable: unsafe fn(&QueuePair),
    release: unsafe fn(&QueuePair),
}

/// A queue pair as those see it who post to it: see [`Qp`] for its owner.
///
/// # Invariants
///
/// It is the first field of an [`Inner`] of the type that `calls` is for. `qp` is initialised while `raw` is not null, and
/// `raw` is its queue pair, which holds nothing that `ring` and `recv` do not know. They are closed before it is destroyed.
#[pin_data]
#[repr(C)]
pub struct QueuePair {
    #[pin]
    ring: Ring,
    #[pin]
    recv: Receives,
    raw: Atomic<*mut bindings::ib_qp>,
    id: u64,
    max_send_sge: usize,
    pd: Arc<Pd>,
    send: Room,
    receive: Room,
    failed: Atomic<bool>,
    calls: Calls,
    qp: UnsafeCell<MaybeUninit<IdQp>>,
    #[pin]
    sentinel: Sentinel,
    #[pin]
    stage: Stage,
}

// SAFETY: A queue pair may be used from any thread; all fields are `Send`, or only used as their invariants say.
unsafe impl Send for QueuePair {}
// SAFETY: As above: what changes is atomic, locked, or changed by the consumer of the ring only.
unsafe impl Sync for QueuePair {}

impl QueuePair {
    /// Posts the chain that `build` makes. Any context; allocates nothing.
    ///
    /// The work requests are done in the order in which they were added, after all that were posted before. `owner` is kept
    /// until they are over; after an error, other than [`PostError::Broken`], it is released at once. If `build` fails,
    /// that is [`PostError::Failed`]. See [`qp`](self) for why `build` has to work for any `'o`.
    ///
    /// `build` must not wait; it may post other chains.
    #[inline]
    pub fn post<T: Owner>(
        &self,
        owner: Arc<T>,
        signal: Signal,
        build: impl for<'o> FnOnce(&'o T, &mut Chain<'o>) -> Result,
    ) -> Result<(), PostError> {
        let raw = self.as_raw().ok_or(PostError::Closed)?;
        // SAFETY: `owner` is kept until the chain is dropped or, if it is posted, over. In that time nobody has a mutable
        // reference, since an `Arc` gives shared ones only.
        let borrow = unsafe { &*Arc::as_ptr(&owner) };
        let mut chain = Chain::new(self);
        build(borrow, &mut chain).map_err(PostError::Failed)?;
        self.ring.post(raw, owner, signal, &mut chain)
    }

    /// Posts `count` receives without buffers. Any context. After an error some may have been posted.
    #[inline]
    pub fn post_recv(&self, count: u32) -> Result<(), PostError> {
        self.recv.post_empty(self, count)
    }

    /// Posts `count` receives with buffers of the slab. Any context. After an error some may have been posted.
    #[inline]
    pub fn post_slab_recv(&self, count: u32) -> Result<(), PostError> {
        self.recv.post_filled(self, count)
    }

    /// Proof of what is over by now. Any context.
    #[inline]
    pub fn progress(&self) -> Sent {
        self.ring.progress(self.id)
    }

    /// Work requests that its send queue has room for.
    pub fn max_send_wr(&self) -> u32 {
        self.ring.max_wrs()
    }

    /// Scatter-gather entries that one work request can have.
    #[inline]
    pub fn max_send_sge(&self) -> usize {
        self.max_send_sge
    }

    /// Its protection domain.
    #[inline]
    pub fn pd(&self) -> &Arc<Pd> {
        &self.pd
    }

    /// Its device.
    #[inline]
    pub fn device(&self) -> &Arc<Device> {
        self.pd.device()
    }

    /// Whether an error has come; a hint.
    #[inline]
    pub fn has_failed(&self) -> bool {
        // ORDERING: A hint.
        self.failed.load(Relaxed)
    }

    /// The library's number for it.
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    #[inline]
    fn as_raw(&self) -> Option<*mut bindings::ib_qp> {
        // ORDERING: `Acquire` pairs with `Qp::new`. That it is not destroyed meanwhile is for the locks of the queues.
        let raw = self.raw.load(Acquire);
        (!raw.is_null()).then_some(raw)
    }

    #[inline]
    fn ring(&self) -> &Ring {
        &self.ring
    }

    #[inline]
    fn receives(&self) -> &Receives {
        &self.recv
    }

    /// An error has come; the first one is told to the handler.
    #[cold]
    fn fail(&self, status: WcStatus) {
        // ORDERING: One is the first.
        if !self.failed.xchg(true, Full) {
            // SAFETY: By the type invariants.
            unsafe { (self.calls.error)(self, status) }
        }
    }

    #[cold]
    fn writable(&self) {
        // SAFETY: By the type invariants.
        unsafe { (self.calls.writable)(self) }
    }
}

/// A queue pair and its handler.
///
/// # Invariants
///
/// The handler is there until the queue pair was destroyed, and changed only then.
#[pin_data]
#[repr(C)]
struct Inner<H: Handler> {
    #[pin]
    queues: QueuePair,
    handler: UnsafeCell<Option<Arc<H>>>,
}

// SAFETY: The handler is `Send + Sync`, and so is the queue pair.
unsafe impl<H: Handler> Send for Inner<H> {}
// SAFETY: As above, and by the type invariants it does not change while others look.
unsafe impl<H: Handler> Sync for Inner<H> {}

impl<H: Handler> Inner<H> {
    /// The object around the queue pair at `queues`.
    #[inline]
    fn of(queues: *const QueuePair) -> *const Self {
        queues.cast()
    }

    #[inline]
    fn queues(&self) -> &QueuePair {
        &self.queues
    }

    #[inline]
    fn handler(&self) -> Option<ArcBorrow<'_, H>> {
        // SAFETY: By the type invariants it is not changed while completions and events come, which call this.
        unsafe { &*self.handler.get() }
            .as_ref()
            .map(Arc::as_arc_borrow)
    }

    const CALLS: Calls = Calls {
        error: |queues, status| {
            // SAFETY: By the invariants of `QueuePair`, as for those below.
            let inner = unsafe { &*Self::of(queues) };
            if let Some(handler) = inner.handler() {
                H::error(handler, status);
            }
        },
        writable: |queues| {
            // SAFETY: See above.
            let inner = unsafe { &*Self::of(queues) };
            if let Some(handler) = inner.handler() {
                H::writable(handler, queues);
            }
        },
        release: |queues| {
            // SAFETY: See above. To be called when the queue pair is destroyed.
            let handler = unsafe { (*(*Self::of(queues)).handler.get()).take() };
            drop(handler);
        },
    };
}

/// A queue pair.
///
/// Dropping it shuts it down; see [`Self::shutdown`].
pub struct Qp<H: Handler> {
    inner: ManuallyDrop<Pin<KBox<Inner<H>>>>,
}

impl<H: Handler> Qp<H> {
    /// Makes the queue pair of an id that has found its route, or was asked for a connection. Sleeps.
    ///
    /// `EINVAL` if the device cannot do what `init` says or the parts of it are of different devices; `ENOSPC` if a
    /// completion queue has not enough entries; `EBUSY` if the id has a queue pair; `ENODEV`, `ENOMEM`.
    pub fn new(token: &Token<'_>, init: &QpInit<'_>, handler: Arc<H>) -> Result<Self> {
        let room = init.check()?;
        let recv = Receives::new::<H>(init.pd.device(), init.max_recv_wr, init.slab)?;
        let queues = QueuePair::init(init, room, recv, Inner::<H>::CALLS)?;
        let inner = KBox::pin_init(
            // INVARIANT: The queue pair is not there yet.
            try_pin_init!(Inner::<H> {
                queues <- queues,
                handler: UnsafeCell::new(Some(handler)),
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: It is pinned in an `Inner`, with the calls for it.
        unsafe { inner.queues.create(token, init) }?;
        Ok(Self {
            inner: ManuallyDrop::new(inner),
        })
    }

    /// Ends all work and destroys the queue pair: the proof that nothing posted to it is in use any more. Sleeps.
    ///
    /// Chains that are not over are ended with [`WcStatus::FLUSHED`], here or where completions are handled; the handler
    /// is told of an error if it was not. When this returns, neither is called any more, and the handler is released.
    /// May be called several times, also at once, but not by the handler or by [`Owner::sent`].
    pub fn shutdown(&self) -> Drained {
        self.inner.queues.shutdown();
        // INVARIANT: As just done.
        Drained {
            qp: self.inner.queues.id,
        }
    }
}

impl<H: Handler> Deref for Qp<H> {
    type Target = QueuePair;

    #[inline]
    fn deref(&self) -> &QueuePair {
        &self.inner.queues
    }
}

impl<H: Handler> Drop for Qp<H> {
    fn drop(&mut self) {
        if self.inner.queues.shutdown() {
            // SAFETY: It is not used again. No completion of it will come.
            unsafe { ManuallyDrop::drop(&mut self.inner) };
        }
    }
}

impl QpInit<'_> {
    /// Checks it and takes room in the completion queues.
    fn check(&self) -> Result<(Room, Room)> {
        let device = self.pd.device();
        let limits = device.limits();
        let same = Arc::ptr_eq(device, self.send_cq.device())
            && Arc::ptr_eq(device, self.recv_cq.device());
        let fits = (ring::LEAST_WRS..=limits.max_qp_wr).contains(&self.max_send_wr)
            && self.max_recv_wr <= limits.max_qp_wr
            && (1..=limits.max_send_sge).contains(&self.max_send_sge);
        if !same || !fits {
            return Err(EINVAL);
        }
        // One more each, to drain.
        Ok((
            self.send_cq.reserve(self.max_send_wr + 1)?,
            self.recv_cq.reserve(self.max_recv_wr + 1)?,
        ))
    }
}

impl QueuePair {
    fn init(
        init: &QpInit<'_>,
        (send, receive): (Room, Room),
        recv: impl PinInit<Receives>,
        calls: Calls,
    ) -> Result<impl PinInit<Self>> {
        let ring = Ring::new(init.max_send_wr)?;
        let pd = init.pd.clone();
        let max_send_sge = usize::try_from(init.max_send_sge)?.min(MAX_SGES);
        // INVARIANT: There is no queue pair yet.
        Ok(pin_init!(Self {
            ring <- ring,
            recv <- recv,
            raw: Atomic::new(core::ptr::null_mut()),
            // ORDERING: Only uniqueness counts; a 64-bit counter does not wrap.
            id: NEXT_ID.fetch_add(1, Relaxed),
            max_send_sge,
            pd,
            send,
            receive,
            failed: Atomic::new(false),
            calls,
            qp: UnsafeCell::new(MaybeUninit::uninit()),
            sentinel <- Sentinel::new(),
            stage <- Stage::new(),
        }))
    }

    /// Makes the queue pair of C and lets work in.
    ///
    /// # Safety
    ///
    /// `self` must be pinned, in an [`Inner`] of the type that `calls` is for. To be called once.
    unsafe fn create(&self, token: &Token<'_>, init: &QpInit<'_>) -> Result {
        // SAFETY: The caller promises that it is pinned.
        unsafe {
            self.ring.attach(self);
            self.recv.attach(self);
        }
        let mut attr = bindings::ib_qp_init_attr {
            event_handler: Some(event_callback),
            qp_context: core::ptr::from_ref(self).cast_mut().cast(),
            send_cq: self.send.cq().as_raw(),
            recv_cq: self.receive.cq().as_raw(),
            cap: bindings::ib_qp_cap {
                max_send_wr: init.max_send_wr + 1,
                max_recv_wr: init.max_recv_wr + 1,
                max_send_sge: init.max_send_sge,
                max_recv_sge: 1,
                ..Default::default()
            },
            sq_sig_type: bindings::ib_sig_type_IB_SIGNAL_REQ_WR,
            qp_type: bindings::ib_qp_type_IB_QPT_RC,
            ..Default::default()
        };
        let pd = NonNull::new(self.pd.as_raw()).ok_or(EINVAL)?;
        // SAFETY: The domain and the completion queues are held by `self`, which destroys the queue pair before it drops
        // them. The context is `self`, which stays for that long.
        let qp = unsafe { token.create_qp(pd, &mut attr) }?;
        let raw = qp.as_raw();
        // SAFETY: `raw` is null, so nobody looks at the field.
        unsafe { (*self.qp.get()).write(qp) };
        // INVARIANT: It is initialised.
        // ORDERING: `Release` pairs with `as_raw`.
        self.raw.store(raw, Release);
        self.stage.begin();
        self.ring.open();
        self.recv.open();
        Ok(())
    }
}

/// Something has happened to a queue pair outside of its queues.
///
/// # Safety
///
/// To be called by the RDMA core with the [`QueuePair`] that was given as context, until the queue pair is destroyed.
unsafe extern "C" fn event_callback(event: *mut bindings::ib_event, context: *mut ffi::c_void) {
    // SAFETY: By the safety requirements.
    let qp = unsafe { &*context.cast::<QueuePair>().cast_const() };
    // SAFETY: C gives a valid event.
    let event = unsafe { (*event).event };
    match event {
        bindings::ib_event_type_IB_EVENT_COMM_EST if qp.as_raw().is_some() => {
            // SAFETY: It is initialised; destroying it waits for events.
            unsafe { (*qp.qp.get()).assume_init_ref() }.established();
        }
        bindings::ib_event_type_IB_EVENT_QP_FATAL
        | bindings::ib_event_type_IB_EVENT_QP_REQ_ERR
        | bindings::ib_event_type_IB_EVENT_QP_ACCESS_ERR => qp.fail(WcStatus::FATAL),
        _ => {}
    }
}
