// SPDX-License-Identifier: GPL-2.0

//! Proofs that chains are over.

/// Everything up to a chain of a queue pair is over: hardware does not use its memory any more.
///
/// # Invariants
///
/// All chains of the queue pair `qp` with a number below `over` are over; those with a number below `good` were done
/// without an error.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub(crate) qp: u64,
    pub(crate) over: u64,
    pub(crate) good: u64,
}

/// Everything that was ever posted to a queue pair is over, and nothing can be posted to it any more.
///
/// # Invariants
///
/// That holds for the queue pair `qp`.
#[derive(Clone, Copy, Debug)]
pub struct Drained {
    pub(crate) qp: u64,
}

/// A proof that chains are over: [`Sent`] or [`Drained`].
pub trait Proof: sealed::Covers {}

impl Proof for Sent {}
impl Proof for Drained {}

mod sealed {
    /// What a proof says; sealed, so that nobody else makes one.
    pub trait Covers {
        /// Whether chain `seq` of queue pair `qp` is over.
        fn covers(&self, qp: u64, seq: u64) -> bool;
    }

    impl Covers for super::Sent {
        #[inline]
        fn covers(&self, qp: u64, seq: u64) -> bool {
            self.qp == qp && seq < self.over
        }
    }

    impl Covers for super::Drained {
        #[inline]
        fn covers(&self, qp: u64, _seq: u64) -> bool {
            self.qp == qp
        }
    }
}
pub(crate) use sealed::Covers;
