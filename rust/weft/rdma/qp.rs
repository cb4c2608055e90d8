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
//! A work request lends memory to hardware until it is over, which only hardware knows. The rule here: *each chain has
//! an owner, and names only what belongs to it.*
//!
//! * `post` takes an `Arc` of the owner and a closure `for<'o> FnOnce(&'o T, &mut Chain<'o>)`. Whatever goes into the
//!   chain has the lifetime `'o`. The closure must work for every `'o`, so all it can know of `'o` is that the owner is
//!   borrowed for it: what it puts in is reached from the owner by shared references (or is there for ever). It could
//!   as well be called with an `'o` that lasts until the chain is over, and that is what the library makes true:
//! * the `Arc` is kept in the queue pair's ring until the chain is over. So the owner is neither dropped nor, being
//!   shared, borrowed mutably; whatever was reached from it by shared references stays where it is, and its mappings
//!   stay.
//! * A chain is over when a completion says so, for it or for a later one (send queues complete in order), or when the
//!   queue pair was drained and destroyed. Nothing else releases an owner.
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
//! [`Qp::shutdown`] (and the drop, if need be) lets nothing more in, puts the queue pair into its error state, waits
//! until all work requests have come back, destroys it, and releases what is left. Until then a queue pair holds its
//! handler, so a handler may own its queue pair if somebody calls `shutdown`.

mod chain;
mod gather;
mod init;
mod inner;
mod pair;
mod recv;
mod ring;
mod shutdown;
mod status;
mod wr;

pub use chain::{
    Chain,
    Remote,
    MAX_SGES,
    MAX_WRS, //
};
pub use gather::{
    Gather,
    Gathering, //
};
pub use init::{
    QpInit,
    SlabSize, //
};
pub use pair::QueuePair;
pub use recv::{
    Message,
    Received, //
};
pub use status::WcStatus;

use crate::{
    cm::Token,
    loan::{
        Drained,
        Sent, //
    },
};
use core::{
    cell::UnsafeCell,
    mem::ManuallyDrop,
    ops::Deref, //
};
use inner::Inner;
use kernel::{
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
};
use recv::Receives;

/// Who has posted a chain, with all the memory that it names.
pub trait Owner: Send + Sync + 'static {
    /// The chain is over: done, if it was posted with [`Signal::Always`], or failed, with any signal.
    ///
    /// `sent` proves that it is over, with all chains posted before it. In the context of the send completion queue, or
    /// in [`Qp::shutdown`]; the owner may be dropped by this.
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
    /// Also comes when the peer closes the connection and receives are flushed ([`WcStatus::is_flushed`]), but not for
    /// what [`Qp::shutdown`] flushes.
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
    /// The queue pair was shut down, or does not work any more.
    Closed,
    /// Some work requests of the chain were posted and the others could not be, or what is lent could not be taken back:
    /// the queue pair must be shut down, and the owner is released then. Nobody else is told of it.
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
        let recv = Receives::new::<H>(init)?;
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
    /// Chains that are not over are ended with [`WcStatus::FLUSHED`], here or where completions are handled. When this
    /// returns, nobody is called any more, and the handler is released.
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
