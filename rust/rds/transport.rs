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
            Acquire,
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
    fn send(
        &self,
        path: &Arc<Path>,
        message: &Arc<Message>,
        offset: usize,
        more: bool,
    ) -> Result<usize>;

    /// Says that the message announced with `more` does not follow. May sleep.
    fn flush(&self);

    /// The path that what carries path 0 is meant for, now that the peer is known to say so, and to have `paths` paths.
    /// Up to softirq.
    fn meant_for(&self, paths: u8) -> usize;

    /// Whether the peer has opened a connection that waits for the path to be free.
    fn has_parked(&self) -> bool;

    /// Goes on with receiving after memory ran out. May sleep.
    fn receive(&self, path: &Arc<Path>) -> Result;

    /// Appends the records of an information option for this path. Must not sleep.
    fn info(&self, path: &Path, option: i32, sink: &mut Sink);

    /// The path is down and may be taken by a connection that the peer opened meanwhile. May sleep.
    fn slot_available(&self, path: &Arc<Path>);
}

/// Who uses a transport.
#[pin_data]
struct Users {
    /// How many, plus [`GONE`] once the transport is leaving.
    count: Atomic<i64>,
    #[pin]
    none: Completion,
}

const GONE: i64 = 1 << 62;

/// One use of a transport.
struct User(Arc<Users>);

impl User {
    /// Counts a use; `None` if the transport is leaving.
    fn new(users: &Arc<Users>) -> Option<Self> {
        let user = Self(users.clone());
        // ORDERING: `Full` against `Registration::drop`, which sets GONE and then judges the count.
        (users.count.fetch_add(1, Full) & GONE == 0).then_some(user)
    }
}

impl Clone for User {
    fn clone(&self) -> Self {
        // ORDERING: The count is not zero, since `self` is in it.
        self.0.count.fetch_add(1, Full);
        Self(self.0.clone())
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // ORDERING: `Full` orders all use before the count is seen as zero.
        if self.0.count.fetch_sub(1, Full) == GONE + 1 {
            self.0.none.complete_all();
        }
    }
}

/// A transport in the table.
struct Entry {
    transport: Arc<dyn Transport>,
    module: &'static ThisModule,
    users: Arc<Users>,
}

impl Entry {
    /// A counted reference. The caller holds the lock of the table.
    fn enter(&self) -> Option<TransportRef> {
        Some(TransportRef {
            user: User::new(&self.users)?,
            transport: self.transport.clone(),
        })
    }
}

/// A transport in use; unloading the transport waits until all are dropped.
///
/// Fields are dropped in order: the transport's own code runs, if it does, before the use ends.
#[derive(Clone)]
pub struct TransportRef {
    transport: Arc<dyn Transport>,
    user: User,
}

impl TransportRef {
    /// Whether the transport is leaving: no new connection may use it.
    pub(crate) fn is_leaving(&self) -> bool {
        // ORDERING: The lock of the connection table orders this; see `NetState::insert_connection`.
        self.user.0.count.load(Acquire) & GONE != 0
    }
}

impl core::ops::Deref for TransportRef {
    type Target = dyn Transport;

    fn deref(&self) -> &Self::Target {
        &*self.transport
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
    entries: Mutex<[Option<Entry>; 4]>,
}

impl Transports {
    /// An empty table.
    pub fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            entries <- new_mutex!([None, None, None, None]),
        })
    }

    /// The transport of a kind, if it is loaded. Sleeps.
    pub fn get(&self, kind: Kind) -> Option<TransportRef> {
        self.entries.lock().get(kind.slot())?.as_ref()?.enter()
    }

    /// The same with a reference of its module.
    fn get_attached(&self, kind: Kind) -> Option<Attached> {
        let entries = self.entries.lock();
        let entry = entries.get(kind.slot())?.as_ref()?;
        // The use keeps the module from being unloaded for as long as the reference of the module is tried for.
        let transport = entry.enter()?;
        let module = ModuleRef::try_get_live(entry.module).ok()?;
        Some(Attached {
            transport,
            _module: module,
        })
    }

    /// Attaches a socket to a transport, loading its module if need be. `ENOPROTOOPT` if it cannot be had. Sleeps.
    pub fn attach(&self, kind: Kind) -> Result<Attached> {
        if let Some(attached) = self.get_attached(kind) {
            return Ok(attached);
        }
        if let Some(name) = kind.module() {
            // Whether that worked shows in the table.
            let _ = request_module(name);
        }
        self.get_attached(kind).ok_or(ENOPROTOOPT)
    }

    /// Attaches a socket to the transport that owns `address`: loopback for loopback addresses, else the first whose
    /// address it is. Sleeps.
    pub fn attach_for(&self, net: &Net, address: &Addr, scope_id: u32) -> Option<Attached> {
        if address.is_loopback() {
            return self.get_attached(Kind::Loop);
        }
        Kind::PREFERENCE.iter().find_map(|&kind| {
            let attached = self.get_attached(kind)?;
            attached
                .transport
                .is_local(net, address, scope_id)
                .then_some(attached)
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
    kind: Kind,
    name: &'static str,
    users: Arc<Users>,
}

/// Registers a transport of module `module`. `EEXIST` if there is one of its kind. Sleeps.
pub fn register(
    rds: &Arc<Rds>,
    transport: Arc<dyn Transport>,
    module: &'static ThisModule,
) -> Result<Registration> {
    let (kind, name) = (transport.kind(), transport.name());
    let users = Arc::pin_init(
        pin_init!(Users {
            count: Atomic::new(0),
            none <- Completion::new(),
        }),
        GFP_KERNEL,
    )?;
    {
        let mut entries = rds.transports.entries.lock();
        let slot = entries.get_mut(kind.slot()).ok_or(EINVAL)?;
        if slot.is_some() {
            return Err(EEXIST);
        }
        *slot = Some(Entry {
            transport,
            module,
            users: users.clone(),
        });
    }
    if kind != Kind::Loop {
        pr_info!("Registered RDS/{} transport\n", name);
    }
    Ok(Registration {
        rds: rds.clone(),
        kind,
        name,
        users,
    })
}

impl Drop for Registration {
    fn drop(&mut self) {
        let entry = self
            .rds
            .transports
            .entries
            .lock()
            .get_mut(self.kind.slot())
            .and_then(Option::take);
        // ORDERING: `Full`: whoever enters from now on sees GONE.
        let users = self.users.count.fetch_add(GONE, Full);
        self.rds
            .for_each_namespace(|state| state.destroy_connections(Some(self.kind)));
        if users != 0 {
            self.users.none.wait_for_completion();
        }
        drop(entry);
        if self.kind != Kind::Loop {
            pr_info!("Unregistered RDS/{} transport\n", self.name);
        }
    }
}
