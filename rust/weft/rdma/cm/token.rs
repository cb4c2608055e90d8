// SPDX-License-Identifier: GPL-2.0

//! The handler mutex of an id as a type, and what is done under it.

use super::id::{
    Id,
    IdRef,
    Phase, //
};
use crate::{
    addr::{
        Addr,
        RawAddr, //
    },
    bindings,
    device::Device, //
};
use core::ptr::NonNull;
use kernel::{
    error::to_result,
    prelude::*,
    sync::{
        atomic::{
            Full,
            Relaxed,
            Release, //
        },
        Arc,
        ArcBorrow, //
    },
    types::NotThreadSafe, //
};
use weft::workqueue::QueueHold;

/// Room for data in the messages of the connection manager, in bytes: `IB_CM_REQ_PRIVATE_DATA_SIZE` and so on.
const MOST_REQUEST_DATA: usize = 92;
const MOST_ACCEPT_DATA: usize = 196;
const MOST_REJECT_DATA: usize = 148;
/// What the connection manager itself puts into a request between IP addresses: `struct cma_hdr`.
const IP_HEADER: usize = 36;
/// `IB_CM_REJ_CONSUMER_DEFINED`.
const CONSUMER_DEFINED: u8 = 28;
/// The longest time to wait for an address or a route, in milliseconds.
const MOST_TIMEOUT: u32 = 600_000;

/// Parameters of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnParam {
    /// Reads and atomics of the peer that this end serves at a time.
    pub responder_resources: u8,
    /// Reads and atomics that this end sends at a time.
    pub initiator_depth: u8,
    /// How often a packet is sent again that the peer does not answer, up to 7. Only the end that connects says so.
    pub retry_count: u8,
    /// How often a message is sent again for which the peer has no receive posted; 7 means without end.
    pub rnr_retry_count: u8,
}

impl Default for ConnParam {
    /// No reads, no atomics, 7 retries.
    fn default() -> Self {
        Self {
            responder_resources: 0,
            initiator_depth: 0,
            retry_count: 7,
            rnr_retry_count: 7,
        }
    }
}

impl ConnParam {
    /// The C form, which borrows `data` without saying so.
    fn as_raw(&self, data: &[u8], most: usize) -> Result<bindings::rdma_conn_param> {
        if data.len() > most {
            return Err(E2BIG);
        }
        Ok(bindings::rdma_conn_param {
            private_data: data.as_ptr().cast(),
            private_data_len: u8::try_from(data.len()).map_err(|_| E2BIG)?,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            retry_count: self.retry_count.min(7),
            rnr_retry_count: self.rnr_retry_count.min(7),
            ..Default::default()
        })
    }
}

/// Proof that the handler mutex of an id is held by this task. May sleep in all its methods.
///
/// # Invariants
///
/// For `'a`, the current task holds the handler mutex of `id`, and the C id of it is valid.
pub struct Token<'a> {
    id: ArcBorrow<'a, Id>,
    _not_send: NotThreadSafe,
}

impl<'a> Token<'a> {
    /// # Safety
    ///
    /// The type invariants must hold.
    pub(super) unsafe fn new(id: ArcBorrow<'a, Id>) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            id,
            _not_send: NotThreadSafe,
        }
    }

    /// The C id; valid as long as the token.
    pub(crate) fn as_raw(&self) -> *mut bindings::rdma_cm_id {
        self.id.as_raw()
    }

    pub(super) fn phase(&self) -> Phase {
        self.id.phase()
    }

    pub(super) fn set_phase(&self, phase: Phase) {
        self.id.set_phase(phase);
    }

    /// `EINVAL` unless the id has come exactly this far.
    pub(super) fn require(&self, phase: Phase) -> Result {
        if self.phase() == phase {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }

    /// The local address, if there is one.
    pub fn local_addr(&self) -> Option<Addr> {
        // SAFETY: By the type invariants.
        unsafe { local_addr(self.as_raw()) }
    }

    /// The peer's address, if there is a peer.
    pub fn peer_addr(&self) -> Option<Addr> {
        // SAFETY: By the type invariants.
        unsafe { peer_addr(self.as_raw()) }
    }

    /// The port of the device, counted from one; zero before an address is resolved.
    pub fn port_num(&self) -> u32 {
        // SAFETY: The id is valid, and the port is set under the mutex.
        unsafe { (*self.as_raw()).port_num }
    }

    /// The device, once an address is resolved; `ENODEV` before, and when it goes away.
    pub fn device(&self) -> Result<Arc<Device>> {
        // SAFETY: By the type invariants.
        unsafe { device(self.as_raw()) }
    }

    /// Looks for the route to the peer, after [`Event::AddrResolved`](super::Event::AddrResolved).
    ///
    /// `timeout` is in milliseconds, 1 to 600 000. `EINVAL` if it is not the time for that.
    pub fn resolve_route(&self, timeout: u32) -> Result {
        self.require(Phase::Resolving)?;
        let timeout = checked_timeout(timeout)?;
        // SAFETY: The id is valid; C checks its state.
        to_result(unsafe { bindings::rdma_resolve_route(self.as_raw(), timeout) })
    }

    /// Asks the peer for a connection, after [`Event::RouteResolved`](super::Event::RouteResolved).
    ///
    /// `EINVAL` if it is not the time for that, or there is no queue pair on the id. `E2BIG` if there is more data than
    /// fits: 56 bytes between IP addresses, 92 between InfiniBand ones.
    pub fn connect(&self, param: &ConnParam, private_data: &[u8]) -> Result {
        self.require(Phase::Resolving)?;
        self.require_qp()?;
        let most = match self.local_addr() {
            Some(Addr::Gid(_)) => MOST_REQUEST_DATA,
            _ => MOST_REQUEST_DATA - IP_HEADER,
        };
        let mut raw = param.as_raw(private_data, most)?;
        // SAFETY: The id is valid, its mutex is held, and C checks its state. The data is read during the call only.
        to_result(unsafe { bindings::rdma_connect_locked(self.as_raw(), &mut raw) })?;
        self.set_phase(Phase::Connecting);
        Ok(())
    }

    /// Accepts the connection that the peer asks for. At most 196 bytes of data go with that (`E2BIG`).
    ///
    /// `EINVAL` if nobody asks or there is no queue pair on the id. If it fails with another error, the peer was
    /// rejected and the queue pair is in its error state.
    pub fn accept(&self, param: &ConnParam, private_data: &[u8]) -> Result {
        self.require(Phase::Requested)?;
        self.require_qp()?;
        let mut raw = param.as_raw(private_data, MOST_ACCEPT_DATA)?;
        self.set_phase(Phase::Answered);
        // SAFETY: As in `connect`.
        to_result(unsafe { bindings::rdma_accept(self.as_raw(), &mut raw) })
    }

    /// Rejects the connection that the peer asks for. At most 148 bytes of data go with that (`E2BIG`).
    pub fn reject(&self, private_data: &[u8]) -> Result {
        self.require(Phase::Requested)?;
        // SAFETY: By the type invariants the id is valid and its mutex held, and it was not answered.
        unsafe { reject(self.as_raw(), private_data) }?;
        self.set_phase(Phase::Answered);
        Ok(())
    }

    /// Ends the connection: the queue pair goes to its error state, and the peer is told.
    /// [`Event::Disconnected`](super::Event::Disconnected) comes when it has answered, or has not in time.
    ///
    /// Does nothing but set the error state if there is no connection (any more). `EINVAL` if none was asked for.
    pub fn disconnect(&self) -> Result {
        if !matches!(self.phase(), Phase::Connecting | Phase::Answered) {
            return Err(EINVAL);
        }
        // SAFETY: The id is valid. Its mutex is held, so it does not connect at the same time.
        to_result(unsafe { bindings::rdma_disconnect(self.as_raw()) })
    }

    fn require_qp(&self) -> Result {
        // ORDERING: A queue pair is created under the mutex. Destroying one races with its use anyway, and C has a
        // mutex for that.
        if self.id.has_qp.load(Relaxed) {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }

    /// Creates the queue pair of the id, which must have found its route's device or be asked for a connection.
    ///
    /// `EBUSY` if there is one; `EINVAL` if it is not the time for that, or `pd` is of another device.
    ///
    /// # Safety
    ///
    /// `pd` must be valid until the queue pair is destroyed, and `attr` be valid for [`rdma_create_qp`]; completion
    /// queues in it must be valid until then, too.
    ///
    /// [`rdma_create_qp`]: srctree/include/rdma/rdma_cm.h
    pub(crate) unsafe fn create_qp(
        &self,
        pd: NonNull<bindings::ib_pd>,
        attr: &mut bindings::ib_qp_init_attr,
    ) -> Result<IdQp> {
        if !matches!(self.phase(), Phase::Resolving | Phase::Requested) {
            return Err(EINVAL);
        }
        let id = IdRef::try_new(self.id).ok_or(ENOTCONN)?;
        // ORDERING: `Full` pairs with the end of an earlier queue pair.
        if self.id.has_qp.cmpxchg(false, true, Full).is_err() {
            return Err(EBUSY);
        }
        // SAFETY: The id is valid, has no queue pair, and its mutex is held; the rest the caller promises.
        let created = unsafe { bindings::rdma_create_qp(self.as_raw(), pd.as_ptr(), attr) };
        // SAFETY: The id is valid. Nobody changes the field: that takes an `IdQp` or `has_qp`.
        let qp = NonNull::new(unsafe { (*self.as_raw()).qp });
        match (to_result(created), qp) {
            // INVARIANT: Just created, with `has_qp` set.
            (Ok(()), Some(qp)) => Ok(IdQp { qp, id }),
            (result, _) => {
                self.id.has_qp.store(false, Release);
                Err(result.err().unwrap_or(EINVAL))
            }
        }
    }
}

/// The queue pair of an id. Keeps the C id; dropping it destroys the queue pair. Sleeps.
///
/// # Invariants
///
/// `qp` is the queue pair of `id`, valid as long as `self`; `has_qp` of the id is set for it.
pub(crate) struct IdQp {
    qp: NonNull<bindings::ib_qp>,
    id: IdRef,
}

// SAFETY: A queue pair and an id may be used from any thread.
unsafe impl Send for IdQp {}
// SAFETY: As above; C has the locks.
unsafe impl Sync for IdQp {}

impl IdQp {
    /// The C structure; valid as long as `self`.
    pub(crate) fn as_raw(&self) -> *mut bindings::ib_qp {
        self.qp.as_ptr()
    }

    /// Keeps the module that the handler of the id is in.
    pub(crate) fn hold(&self) -> QueueHold {
        self.id.0.hold.clone()
    }

    /// Tells the connection manager that a message of the peer was received before its last message about the
    /// connection: to be called in the event `IB_EVENT_COMM_EST`. Any context.
    pub(crate) fn established(&self) {
        if self.id.0.phase() == Phase::Answered {
            // SAFETY: The C id is valid as long as it is used; one that has accepted keeps its lower id until then.
            unsafe {
                bindings::rdma_notify(
                    self.id.0.as_raw(),
                    bindings::ib_event_type_IB_EVENT_COMM_EST,
                )
            };
        }
    }
}

impl Drop for IdQp {
    fn drop(&mut self) {
        let id = &self.id.0;
        // SAFETY: The id is valid and has this queue pair, by the type invariants.
        unsafe { bindings::rdma_destroy_qp(id.as_raw()) };
        // ORDERING: `Release` pairs with `create_qp`.
        id.has_qp.store(false, Release);
    }
}

/// A time for C, checked.
pub(super) fn checked_timeout(timeout: u32) -> Result<usize> {
    match timeout {
        // CAST: To a wider type.
        1..=MOST_TIMEOUT => Ok(timeout as usize),
        _ => Err(EINVAL),
    }
}

/// The local address of an id.
///
/// # Safety
///
/// `raw` must be valid and its handler mutex held.
pub(super) unsafe fn local_addr(raw: *mut bindings::rdma_cm_id) -> Option<Addr> {
    // SAFETY: The caller promises a valid id; addresses change under its mutex.
    unsafe { RawAddr::read(&raw const (*raw).route.addr.src_addr) }.decode()
}

/// The address of an id's peer.
///
/// # Safety
///
/// As for [`local_addr`].
pub(super) unsafe fn peer_addr(raw: *mut bindings::rdma_cm_id) -> Option<Addr> {
    // SAFETY: As in `local_addr`.
    unsafe { RawAddr::read(&raw const (*raw).route.addr.dst_addr) }.decode()
}

/// The device of an id.
///
/// # Safety
///
/// As for [`local_addr`].
pub(super) unsafe fn device(raw: *mut bindings::rdma_cm_id) -> Result<Arc<Device>> {
    // SAFETY: The caller promises a valid id; its device is set under its mutex. It keeps the structure of the device, so
    // that no other one is at its address.
    match unsafe { (*raw).device } {
        device if device.is_null() => Err(ENODEV),
        device => Device::from_raw(device),
    }
}

/// Rejects a connection request.
///
/// # Safety
///
/// `raw` must be a valid id that was made for a request, and its handler mutex held.
pub(super) unsafe fn reject(raw: *mut bindings::rdma_cm_id, data: &[u8]) -> Result {
    if data.len() > MOST_REJECT_DATA {
        return Err(E2BIG);
    }
    let len = u8::try_from(data.len()).map_err(|_| E2BIG)?;
    // SAFETY: The caller promises the id; the data is read during the call only.
    to_result(unsafe { bindings::rdma_reject(raw, data.as_ptr().cast(), len, CONSUMER_DEFINED) })
}
