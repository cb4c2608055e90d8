// SPDX-License-Identifier: GPL-2.0

//! The interface between RDS and what carries its messages, and the table of carriers.
//!
//! C counterpart: `struct rds_transport` in `net/rds/rds.h`, `net/rds/transport.c`.
//!
//! A transport lives in a module of its own. Sockets that are bound to it pin that module; connections do not, so
//! unloading it destroys them first: [`Registration`] waits until the last path that uses the transport is gone.

use crate::{
    info::Sink,
    message::Message,
    netns::NetState,
    path::Path,
    state::Rds, //
};
use core::any::Any;
use kernel::{
    new_mutex,
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            Atomic,
            Full, //
        },
        Arc,
        Completion,
        Mutex, //
    },
};
use weft::{
    module::{
        request_module,
        ModuleRef, //
    },
    net::ns::Net,
};
use weft_proto::rds::addr::Addr;

/// Which transport; the numbers are those of `SO_RDS_TRANSPORT`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum Kind {
    /// RDMA over InfiniBand or RoCE.
    Ib = 0,
    /// TCP.
    Tcp = 2,
    /// Within one namespace.
    Loop = 3,
}

impl Kind {
    /// The order in which transports are asked whether an address is theirs.
    const PREFERENCE: [Kind; 2] = [Kind::Ib, Kind::Tcp];

    fn module(self) -> Option<&'static CStr> {
        match self {
            Kind::Ib => Some(c"rds_rdma"),
            Kind::Tcp => Some(c"rds_tcp"),
            Kind::Loop => None,
        }
    }

    fn slot(self) -> usize {
        self as usize
    }
}

/// Something that carries messages between two addresses.
pub trait Transport: Send + Sync {
    /// Which one it is.
    fn kind(&self) -> Kind;

    /// Its name in connection lists.
    fn name(&self) -> &'static str;

    /// Whether messages to an own address had better not leave the machine.
    fn prefers_loopback(&self) -> bool;

    /// How many paths a connection may have.
    fn max_paths(&self) -> u8;

    /// The type of service to use for the one asked for; `None` if the transport knows none.
    fn map_tos(&self, tos: u8) -> Option<u8>;

    /// Whether `address` is an address of `net` that this transport can use. May sleep.
    fn is_local(&self, net: &Net, address: &Addr, scope_id: u32) -> bool;

    /// Makes the transport's side of a path. May sleep.
    fn new_path(&self) -> Result<Arc<dyn PathOps>>;

    /// Reports the transport's counters in their order.
    fn counters(&self, report: &mut dyn FnMut(&'static str, u64));

    /// Appends the records of an information option that only this transport has; `None` if it has not.
    fn info(&self, net: &NetState, option: i32, sink: &mut Sink) -> Option<()>;
}

/// The transport's side of one path of a connection.
pub trait PathOps: Send + Sync {
    /// The object itself, for its own transport.
    fn as_any(&self) -> &dyn Any;

    /// Begins to connect. Calls [`Path::complete`] when the path can be used. May sleep.
    fn connect(&self, path: &Arc<Path>) -> Result;

    /// Takes down what carries the path and delivers what the peer knows to have arrived. When it returns, the
    /// transport calls nothing of the path any more until the next `connect` or accept. Sleeps; bounded.
    ///
    /// With `destroy` the path will never be used again and nothing is waited for.
    fn shutdown(&self, path: &Arc<Path>, destroy: bool);

    /// Sends the bytes of `message` from `offset` on, header included; returns how many were taken.
    ///
    /// `more` says that another message follows at once. `EAGAIN` if there is no room now: the transport then
    /// schedules the path when there is. Any other error drops the path. May sleep.
    fn send(&self, path: &Arc<Path>, message: &Arc<Message>, offset: usize, more: bool) -> Result<usize>;

    /// Says that the message announced with `more` does not follow. May sleep.
    fn flush(&self);

    /// Goes on with receiving after memory ran out. May sleep.
    fn receive(&self, path: &Arc<Path>) -> Result;

    /// Appends the records of an information option for this path. Must not sleep.
    fn info(&self, path: &Path, option: i32, sink: &mut Sink);

    /// The path is down and may be taken by a connection that the peer opened meanwhile. May sleep.
    fn slot_available(&self, path: &Arc<Path>);
}

/// A transport in the table.
#[pin_data]
struct Entry {
    transport: Arc<dyn Transport>,
    module: &'static ThisModule,
    /// Paths that exist, plus [`GONE`] once the transport is leaving.
    users: Atomic<i64>,
    #[pin]
    unused: Completion,
}

const GONE: i64 = 1 << 62;

impl Entry {
    fn enter(self: &Arc<Self>) -> Option<TransportRef> {
        // ORDERING: `Full` against `Registration::drop`, which sets GONE and then judges the count.
        let reference = TransportRef(self.clone());
        if self.users.fetch_add(1, Full) & GONE == 0 {
            Some(reference)
        } else {
            None
        }
    }
}

/// A transport in use by a connection; unloading the transport waits until all are dropped.
pub struct TransportRef(Arc<Entry>);

impl core::ops::Deref for TransportRef {
    type Target = dyn Transport;

    fn deref(&self) -> &Self::Target {
        &*self.0.transport
    }
}

impl Clone for TransportRef {
    fn clone(&self) -> Self {
        // ORDERING: The count is not zero, since `self` is in it.
        self.0.users.fetch_add(1, Full);
        Self(self.0.clone())
    }
}

impl Drop for TransportRef {
    fn drop(&mut self) {
        // ORDERING: `Full` orders all use before the count is seen as zero.
        if self.0.users.fetch_sub(1, Full) == GONE + 1 {
            self.0.unused.complete_all();
        }
    }
}

/// A transport that a socket is bound to; pins the transport's module.
pub struct Attached {
    /// The transport.
    pub transport: TransportRef,
    _module: ModuleRef,
}

/// The table of transports.
#[pin_data]
pub struct Transports {
    #[pin]
    entries: Mutex<[Option<Arc<Entry>>; 4]>,
}

impl Transports {
    /// An empty table.
    pub fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            entries <- new_mutex!([None, None, None, None]),
        })
    }

    fn entry(&self, kind: Kind) -> Option<Arc<Entry>> {
        self.entries.lock().get(kind.slot())?.clone()
    }

    /// The transport of a kind, if it is loaded. Sleeps.
    pub fn get(&self, kind: Kind) -> Option<TransportRef> {
        self.entry(kind)?.enter()
    }

    /// Attaches a socket to a transport, loading its module if need be. `ENOPROTOOPT` if it cannot be had. Sleeps.
    pub fn attach(&self, kind: Kind) -> Result<Attached> {
        if self.entry(kind).is_none() {
            if let Some(name) = kind.module() {
                // Whether that worked shows in the table.
                let _ = request_module(name);
            }
        }
        let entry = self.entry(kind).ok_or(ENOPROTOOPT)?;
        Self::attach_entry(&entry).ok_or(ENOPROTOOPT)
    }

    fn attach_entry(entry: &Arc<Entry>) -> Option<Attached> {
        let module = ModuleRef::try_get(entry.module)?;
        Some(Attached {
            transport: entry.enter()?,
            _module: module,
        })
    }

    /// Attaches a socket to the transport that owns `address`: loopback for loopback addresses, else the first whose
    /// address it is. Sleeps.
    pub fn attach_for(&self, net: &Net, address: &Addr, scope_id: u32) -> Option<Attached> {
        if address.is_loopback() {
            return Self::attach_entry(&self.entry(Kind::Loop)?);
        }
        Kind::PREFERENCE.iter().find_map(|&kind| {
            let entry = self.entry(kind)?;
            entry
                .transport
                .is_local(net, address, scope_id)
                .then(|| Self::attach_entry(&entry))?
        })
    }

    /// Whether any transport regards `address` as an own one. Sleeps.
    pub fn is_local(&self, net: &Net, address: &Addr, scope_id: u32) -> bool {
        address.is_loopback()
            || Kind::PREFERENCE.iter().any(|&kind| {
                self.get(kind)
                    .is_some_and(|transport| transport.is_local(net, address, scope_id))
            })
    }

    /// Calls `visit` for each transport other than loopback, in the order of preference. Sleeps.
    pub fn for_each(&self, mut visit: impl FnMut(&dyn Transport)) {
        for kind in Kind::PREFERENCE {
            if let Some(transport) = self.get(kind) {
                visit(&*transport);
            }
        }
    }
}

/// A registered transport; dropping it destroys all its connections and waits until nobody uses it. Sleeps.
pub struct Registration {
    rds: Arc<Rds>,
    entry: Arc<Entry>,
}

/// Registers a transport of module `module`. `EEXIST` if there is one of its kind. Sleeps.
pub fn register(
    rds: &Arc<Rds>,
    transport: Arc<dyn Transport>,
    module: &'static ThisModule,
) -> Result<Registration> {
    let kind = transport.kind();
    let entry = Arc::pin_init(
        pin_init!(Entry {
            transport,
            module,
            users: Atomic::new(0),
            unused <- Completion::new(),
        }),
        GFP_KERNEL,
    )?;
    {
        let mut entries = rds.transports.entries.lock();
        let slot = entries.get_mut(kind.slot()).ok_or(EINVAL)?;
        if slot.is_some() {
            return Err(EEXIST);
        }
        *slot = Some(entry.clone());
    }
    if kind != Kind::Loop {
        pr_info!("Registered RDS/{} transport\n", entry.transport.name());
    }
    Ok(Registration {
        rds: rds.clone(),
        entry,
    })
}

impl Drop for Registration {
    fn drop(&mut self) {
        let kind = self.entry.transport.kind();
        if let Some(slot) = self.rds.transports.entries.lock().get_mut(kind.slot()) {
            *slot = None;
        }
        // ORDERING: `Full`: whoever enters from now on sees GONE.
        let users = self.entry.users.fetch_add(GONE, Full);
        self.rds.for_each_namespace(|state| state.destroy_connections(Some(kind)));
        if users != 0 {
            self.entry.unused.wait_for_completion();
        }
        if kind != Kind::Loop {
            pr_info!("Unregistered RDS/{} transport\n", self.entry.transport.name());
        }
    }
}
