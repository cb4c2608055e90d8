// SPDX-License-Identifier: GPL-2.0

//! Events, and the callback by which C tells them.

use super::{
    id::Id,
    inside::Inside,
    new::{
        self,
        NewId, //
    },
    status_error,
    token::Token, //
};
use crate::bindings;
use core::{
    ptr,
    slice, //
};
use kernel::{
    error::Error,
    ffi::c_int,
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// Who is told what happens to an id.
///
/// The calls come in process context and may sleep. The handler mutex is held, so an id has one call at a time, and
/// [`CmId::lock`](super::CmId::lock) fails in all of them. What takes long, and whatever waits for an event of an id
/// (its own or another's), belongs elsewhere: events of different ids wait for each other in the queues of C.
pub trait CmHandler: Send + Sync + 'static {
    /// Something has happened to the id; `id` stands for its handler mutex.
    fn event(self: Arc<Self>, id: &Token<'_>, event: Event<'_>);

    /// A peer asks a listener for a connection.
    ///
    /// The mutex held is that of the new id. Requests that come over different devices are told of at the same time.
    /// A request that is neither accepted nor rejected is rejected without data when this returns.
    fn connect_request(self: Arc<Self>, _new: NewId<'_>, _request: ConnectRequest<'_>) {}
}

/// What has happened to an id.
///
/// Data in it is what the peer sent, and is there during the call only.
#[derive(Debug)]
pub enum Event<'a> {
    /// The peer's address is found, and the device to reach it; next is [`Token::resolve_route`].
    AddrResolved,
    /// It is not found.
    AddrError(Error),
    /// The route to the peer is found; next is a queue pair and [`Token::connect`].
    RouteResolved,
    /// It is not found.
    RouteError(Error),
    /// The peer has accepted, but the queue pair is gone.
    ConnectResponse(Connection<'a>),
    /// The connection could not be made.
    ConnectError(Error),
    /// The peer does not answer. May come at any time after the route was found.
    Unreachable(Error),
    /// The peer has rejected the connection.
    Rejected(Rejected<'a>),
    /// There is a connection. The end that has accepted gets no data with it.
    Established(Connection<'a>),
    /// The connection is over: the peer has disconnected, or answers that this end has.
    Disconnected,
    /// The device goes away: drop the id, soon. Nothing else comes after this.
    DeviceRemoval,
    /// The network address of the device has changed.
    AddrChange,
    /// No packet of the connection that is over can still be on its way.
    TimewaitExit,
}

/// What the peer has said about a connection that it accepts.
#[derive(Debug)]
pub struct Connection<'a> {
    /// What it has put into its message. The message does not say how much that is, so this is all the room that it has
    /// for data: 196 bytes, as a rule with zeros at the end.
    pub private_data: &'a [u8],
    /// How many reads and atomics it serves at a time.
    pub responder_resources: u8,
    /// How many it sends at a time.
    pub initiator_depth: u8,
}

/// A connection that the peer has rejected.
#[derive(Debug)]
pub struct Rejected<'a> {
    /// The code: `enum ib_cm_rej_reason`.
    pub reason: i32,
    /// What the code means.
    pub message: &'static CStr,
    /// What the peer has put into its message, as in [`Connection`], 148 bytes; empty if the reason is one of the
    /// connection manager's.
    pub private_data: &'a [u8],
}

/// What the peer asks for.
#[derive(Debug)]
pub struct ConnectRequest<'a> {
    /// What it has put into its message, as in [`Connection`]: 56 bytes between IP addresses, 92 between InfiniBand ones.
    pub private_data: &'a [u8],
    /// How many reads and atomics it serves at a time.
    pub responder_resources: u8,
    /// How many it sends at a time.
    pub initiator_depth: u8,
}

impl Event<'_> {
    /// Its name, to be printed.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AddrResolved => "address resolved",
            Self::AddrError(_) => "address error",
            Self::RouteResolved => "route resolved",
            Self::RouteError(_) => "route error",
            Self::ConnectResponse(_) => "connect response",
            Self::ConnectError(_) => "connect error",
            Self::Unreachable(_) => "unreachable",
            Self::Rejected(_) => "rejected",
            Self::Established(_) => "established",
            Self::Disconnected => "disconnected",
            Self::DeviceRemoval => "device removal",
            Self::AddrChange => "address change",
            Self::TimewaitExit => "timewait exit",
        }
    }
}

/// An event as C has it, during the callback.
///
/// # Invariants
///
/// `event` is valid for reads and unchanged for `'a`, and what it points to, too.
pub(super) struct RawEvent<'a> {
    raw: *mut bindings::rdma_cm_id,
    event: &'a bindings::rdma_cm_event,
}

impl<'a> RawEvent<'a> {
    /// The parameters of a connection.
    fn param(&self) -> &'a bindings::rdma_conn_param {
        // SAFETY: All of the union is initialised, and any bytes are valid for the integers in this member.
        unsafe { self.event.param.conn.as_ref() }
    }

    /// The data of an event that has parameters of a connection.
    fn data(&self) -> &'a [u8] {
        let param = self.param();
        if param.private_data.is_null() {
            return &[];
        }
        // SAFETY: Such an event says where its data is and how long, or has no pointer. By the type invariants it is
        // there for `'a`.
        unsafe {
            slice::from_raw_parts(
                param.private_data.cast::<u8>(),
                param.private_data_len.into(),
            )
        }
    }

    fn connection(&self) -> Connection<'a> {
        Connection {
            private_data: self.data(),
            responder_resources: self.param().responder_resources,
            initiator_depth: self.param().initiator_depth,
        }
    }

    pub(super) fn request(&self) -> ConnectRequest<'a> {
        ConnectRequest {
            private_data: self.data(),
            responder_resources: self.param().responder_resources,
            initiator_depth: self.param().initiator_depth,
        }
    }

    fn rejected(&self) -> Rejected<'a> {
        let reason = self.event.status;
        let mut len = 0;
        // SAFETY: The id is valid and has a device, since a connection was asked for. C only reads the event.
        let (data, message) = unsafe {
            (
                bindings::rdma_consumer_reject_data(
                    self.raw,
                    ptr::from_ref(self.event).cast_mut(),
                    &mut len,
                ),
                // A string constant of a module that this one needs.
                CStr::from_char_ptr(bindings::rdma_reject_msg(self.raw, reason)),
            )
        };
        Rejected {
            reason,
            message,
            private_data: if data.is_null() { &[] } else { self.data() },
        }
    }

    /// The event, unless it is one that no id of ours asks for.
    fn decode(&self) -> Option<Event<'a>> {
        let error = status_error(self.event.status);
        Some(match self.event.event {
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_RESOLVED => Event::AddrResolved,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_ERROR => Event::AddrError(error),
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_RESOLVED => Event::RouteResolved,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ROUTE_ERROR => Event::RouteError(error),
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_RESPONSE => {
                Event::ConnectResponse(self.connection())
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_ERROR => Event::ConnectError(error),
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_UNREACHABLE => Event::Unreachable(error),
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_REJECTED => Event::Rejected(self.rejected()),
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ESTABLISHED => {
                Event::Established(self.connection())
            }
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_DISCONNECTED => Event::Disconnected,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_DEVICE_REMOVAL => Event::DeviceRemoval,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_ADDR_CHANGE => Event::AddrChange,
            bindings::rdma_cm_event_type_RDMA_CM_EVENT_TIMEWAIT_EXIT => Event::TimewaitExit,
            _ => return None,
        })
    }
}

/// The handler of every C id.
///
/// # Safety
///
/// To be called by the connection manager, under the handler mutex of `raw`, with an id whose context points to an
/// [`Id`]: its own, or in the event of a connection request its listener's, which is not destroyed meanwhile.
pub(super) unsafe extern "C" fn callback(
    raw: *mut bindings::rdma_cm_id,
    event: *mut bindings::rdma_cm_event,
) -> c_int {
    // Dropped last.
    let _inside = Inside::enter();
    // SAFETY: By the safety requirements.
    let id = unsafe { Id::of(raw) };
    // INVARIANT: The event belongs to this call.
    // SAFETY: As said, and C does not change it meanwhile.
    let event = unsafe {
        RawEvent {
            raw,
            event: &*event,
        }
    };
    let request = event.event.event == bindings::rdma_cm_event_type_RDMA_CM_EVENT_CONNECT_REQUEST;
    // Without an owner an id hears nothing more.
    match id.handler() {
        // SAFETY: This is the callback for such a request.
        Some(handler) if request => unsafe { new::connect_request(raw, &id, handler, &event) },
        // Only the id itself has a mutex that is held, not the parts of a listener for each device.
        Some(handler) if ptr::eq(raw, id.as_raw()) => {
            if let Some(event) = event.decode() {
                // SAFETY: The mutex is held during this call, which is no longer than the borrow of the token.
                handler.event(&unsafe { Token::new(id) }, event);
            }
            0
        }
        None if request => new::refused(),
        _ => 0,
    }
}
