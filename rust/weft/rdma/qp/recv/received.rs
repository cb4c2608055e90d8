// SPDX-License-Identifier: GPL-2.0

//! Messages of the peer.

use crate::{
    bindings,
    mr::Invalidated,
    qp::{
        PostError,
        QueuePair,
        WcStatus, //
    },
};
use core::{
    marker::PhantomData,
    slice, //
};
use kernel::{
    ffi,
    prelude::*, //
};

/// What the peer has sent, beside bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// SEND.
    Send,
    /// SEND with an immediate.
    SendImm(u32),
    /// SEND that has invalidated the memory region with this key, here; see [`Received::invalidated`].
    SendInv(u32),
    /// RDMA WRITE with an immediate. The receive's own buffer was not used.
    WriteImm(u32),
}

/// A message of the peer: a receive that is over.
///
/// Dropping it leaves its place in the queue empty: post another one.
///
/// # Invariants
///
/// `entry` is an entry of the slab of `qp` that this object has: its index, and the bytes that the message has put
/// there, which are inside of it.
pub struct Received<'a> {
    pub(super) qp: &'a QueuePair,
    pub(super) message: Message,
    pub(super) bytes: u32,
    pub(super) entry: Option<(u32, usize)>,
    pub(super) _call: PhantomData<&'a mut ()>,
}

impl Received<'_> {
    /// What it is.
    #[inline]
    pub fn message(&self) -> Message {
        self.message
    }

    /// How many bytes the peer has sent or written.
    #[inline]
    pub fn len(&self) -> u32 {
        self.bytes
    }

    /// Whether the peer has sent or written no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The bytes that the peer has sent; `None` if it has written, or the receive was an empty one.
    ///
    /// Neither the peer nor hardware changes them any more.
    #[inline]
    pub fn payload(&self) -> Option<&[u8]> {
        let (index, len) = self.entry?;
        if matches!(self.message, Message::WriteImm(_)) {
            return None;
        }
        let data = self.qp.receives().bytes_of(index, len)?;
        // SAFETY: By the type invariants the entry is ours, and the bytes are inside. No hardware writes them: the
        // receive is over, and it is posted again only by `repost`, which takes this object.
        Some(unsafe { slice::from_raw_parts(data, len) })
    }

    /// Proof that the message has invalidated a memory region.
    #[inline]
    pub fn invalidated(&self) -> Option<Invalidated<'_>> {
        match self.message {
            // INVARIANT: The device has checked the key and invalidated the region before it completed the receive.
            Message::SendInv(rkey) => Some(Invalidated::new(self.qp.pd(), rkey)),
            _ => None,
        }
    }

    /// Whether the receive was one with a buffer.
    #[inline]
    pub fn has_buffer(&self) -> bool {
        self.entry.is_some()
    }

    /// Posts the receive again, in the kind in which it was. Any context.
    ///
    /// That is done for several at a time ([`QpInit::recv_batch`](crate::qp::QpInit::recv_batch)). An error may be about
    /// an earlier one.
    #[inline]
    pub fn repost(mut self) -> Result<(), PostError> {
        match self.entry.take() {
            Some((index, _)) => self.qp.receives().repost_filled(self.qp, index),
            None => self.qp.receives().repost_empty(self.qp),
        }
    }
}

impl Drop for Received<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some((index, _)) = self.entry.take() {
            // INVARIANT: The entry is nobody's any more.
            self.qp.receives().put_back(index);
        }
    }
}

/// A receive has completed: with what message, if it has not failed.
#[inline]
pub(super) fn decode(wc: &bindings::ib_wc) -> Result<Message, WcStatus> {
    if let Some(status) = WcStatus::of(wc) {
        return Err(status);
    }
    let ex = wc.ex.bindgen_union_field;
    Ok(match wc.opcode {
        bindings::ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM => Message::WriteImm(u32::from_be(ex)),
        bindings::ib_wc_opcode_IB_WC_RECV if wc.wc_flags & WITH_INVALIDATE != 0 => {
            Message::SendInv(ex)
        }
        bindings::ib_wc_opcode_IB_WC_RECV if wc.wc_flags & WITH_IMM != 0 => {
            Message::SendImm(u32::from_be(ex))
        }
        bindings::ib_wc_opcode_IB_WC_RECV => Message::Send,
        _ => return Err(WcStatus::GENERAL),
    })
}

// CAST: Single bits.
const WITH_IMM: ffi::c_int = bindings::ib_wc_flags_IB_WC_WITH_IMM as ffi::c_int;
const WITH_INVALIDATE: ffi::c_int = bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE as ffi::c_int;
