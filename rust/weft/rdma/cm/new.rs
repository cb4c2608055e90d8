// SPDX-License-Identifier: GPL-2.0

//! A connection request: an id that nobody owns yet.

use super::{
    event::{
        CmHandler,
        RawEvent, //
    },
    id::{
        Id,
        IdRef,
        Phase, //
    },
    owner::CmId,
    token::{
        self,
        Token, //
    },
};
use crate::{
    addr::Addr,
    bindings,
    device::Device, //
};
use core::{
    cell::Cell,
    ptr::NonNull, //
};
use kernel::{
    ffi::c_int,
    prelude::*,
    sync::Arc,
    types::NotThreadSafe, //
};

/// The id of a connection that a peer asks for, in [`CmHandler::connect_request`].
///
/// # Invariants
///
/// For `'a`, `raw` is a valid id with a device, whose handler mutex this task holds; its context points to the listener.
/// The connection manager destroys it afterwards unless `kept` is set.
pub struct NewId<'a> {
    raw: NonNull<bindings::rdma_cm_id>,
    listener: &'a Id,
    kept: &'a Cell<bool>,
    _not_send: NotThreadSafe,
}

/// What the callback returns for C to destroy the new id, rejecting the peer if that was not done.
pub(super) fn refused() -> c_int {
    ECONNREFUSED.to_errno()
}

/// Tells the handler of `listener` of the request that `raw` was made for. Returns what the callback has to.
///
/// # Safety
///
/// To be called in the callback, with the id and event of a connection request.
pub(super) unsafe fn connect_request(
    raw: *mut bindings::rdma_cm_id,
    listener: &Id,
    handler: Arc<dyn CmHandler>,
    event: &RawEvent<'_>,
) -> c_int {
    let Some(raw) = NonNull::new(raw) else {
        return refused();
    };
    let kept = Cell::new(false);
    // INVARIANT: By the safety requirements, for this call; `kept` is obeyed below.
    let new = NewId {
        raw,
        listener,
        kept: &kept,
        _not_send: NotThreadSafe,
    };
    handler.connect_request(new, event.request());
    if kept.get() {
        0
    } else {
        refused()
    }
}

impl<'a> NewId<'a> {
    /// The address that the peer has asked for.
    pub fn local_addr(&self) -> Option<Addr> {
        // SAFETY: By the type invariants the id is valid and its mutex held.
        unsafe { token::local_addr(self.raw.as_ptr()) }
    }

    /// The address of the peer.
    pub fn peer_addr(&self) -> Option<Addr> {
        // SAFETY: As above.
        unsafe { token::peer_addr(self.raw.as_ptr()) }
    }

    /// The port of the device, counted from one.
    pub fn port_num(&self) -> u32 {
        // SAFETY: By the type invariants the id is valid, and it has its device.
        unsafe { (*self.raw.as_ptr()).port_num }
    }

    /// The device that the request came over; `ENODEV` if the library has not seen it yet, or it goes away.
    pub fn device(&self) -> Result<Arc<Device>> {
        // SAFETY: As above.
        unsafe { token::device(self.raw.as_ptr()) }
    }

    /// Makes it an id of its own, whose events go to `handler`. The token stands for its handler mutex during the call
    /// of [`CmHandler::connect_request`].
    ///
    /// The connection is to be accepted or rejected with the token, now or later under [`CmId::lock`]; dropping the id
    /// rejects it without data. `ENOMEM` if there is no memory: then the peer is rejected.
    pub fn accept_with(self, handler: Arc<dyn CmHandler>) -> Result<(CmId, Token<'a>)> {
        let hold = self.listener.hold.handle().hold().ok_or(ESHUTDOWN)?;
        // SAFETY: The id is valid, and we set `kept` if it is taken over. Its mutex is held, so no event comes.
        let id = unsafe { IdRef::adopt(self.raw, Phase::Requested, handler, hold) }?;
        self.kept.set(true);
        // SAFETY: The context is the id's own now. The id cannot be destroyed for `'a`: that waits for its mutex, which
        // is held until the handler has returned.
        let token = unsafe { Token::new(Id::of(self.raw.as_ptr())) };
        Ok((CmId::new_owner(id), token))
    }

    /// Rejects the connection. At most 148 bytes of data go with that (`E2BIG`).
    pub fn reject(self, private_data: &[u8]) -> Result {
        // SAFETY: By the type invariants the id is valid and its mutex held, and it was not answered.
        unsafe { token::reject(self.raw.as_ptr(), private_data) }
    }
}
