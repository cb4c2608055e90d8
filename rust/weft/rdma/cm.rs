// SPDX-License-Identifier: GPL-2.0

//! The connection manager: listening, connecting, and what happens to a connection.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)
//!
//! A [`CmId`] is one end of a connection, or a listener. What happens to it is told to its [`CmHandler`], in process
//! context and under the id's *handler mutex*, so one call at a time. A [`Token`] stands for that mutex: a handler is
//! given one, [`CmId::lock`] makes one elsewhere. What has to be done under the mutex is a method of the token.
//!
//! Ownership
//!
//! * A `CmId` owns the C id. When its drop returns, no call of its handler runs and none will come, and the handler is
//!   released. So a handler may own what it likes, even the `CmId` itself, if somebody else takes that out and drops it.
//! * A `CmId` may be dropped in a handler, its own or another's. There the drop cannot wait: it makes sure that no further
//!   call begins, and the C id goes in a work item.
//! * A queue pair on an id keeps the C id (not the handler) until it is destroyed.
//! * An id holds the [`Queue`](weft::workqueue::Queue) that it was made with, so dropping that queue at the end of a
//!   module waits until all its ids are gone, those being destroyed in a work item too.
//! * An id keeps its network namespace.
//!
//! A connection request brings a new id, as a [`NewId`]. It becomes a `CmId` by [`NewId::accept_with`]; otherwise the
//! connection manager destroys it when the handler returns.
//!
//! Locking: the mutexes of two ids are never held by one task. What would do so fails with `EDEADLK`. To lock an id or
//! to drop one waits for its handler, so neither may be done under a lock that a handler takes, of any id.
//!
//! Removal of a device: the library is removed from a device before the connection manager is. First the
//! [`Watcher`](crate::watch::Watcher)s are told, and drop all they have on the device, ids too. Then the connection
//! manager tells ids that came late ([`Event::DeviceRemoval`]), which must be dropped as well. Until they are, the
//! device stays. On such a late id no queue pair can be created.
//!
//! Only InfiniBand and RoCE devices are used: iWARP ones have no write with immediate data.

mod event;
mod id;
mod inside;
mod new;
mod owner;
mod token;

pub use event::{
    CmHandler,
    ConnectRequest,
    Connection,
    Event,
    Rejected, //
};
pub use new::NewId;
pub use owner::{
    CmId,
    Locked, //
};
pub(crate) use token::IdQp;
pub use token::{
    ConnParam,
    Token, //
};

use crate::bindings;
use kernel::{
    error::Error,
    ffi::c_int,
    prelude::*, //
};

/// How addresses of an id name a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortSpace {
    /// IP addresses and ports: `RDMA_PS_TCP`.
    Tcp,
    /// InfiniBand addresses: `RDMA_PS_IB`.
    Ib,
}

impl PortSpace {
    fn as_raw(self) -> bindings::rdma_ucm_port_space {
        match self {
            Self::Tcp => bindings::rdma_ucm_port_space_RDMA_PS_TCP,
            Self::Ib => bindings::rdma_ucm_port_space_RDMA_PS_IB,
        }
    }
}

/// The error that the status of an event means.
fn status_error(status: c_int) -> Error {
    match status {
        // CAST: `MAX_ERRNO` is small.
        -4095..=-1 => Error::from_errno(status),
        _ => EIO,
    }
}
