// SPDX-License-Identifier: GPL-2.0

//! What RDS keeps for one network namespace.
//!
//! C shares the bind table, the congestion maps and the congestion generation among all namespaces; here each has its
//! own. The state holds only a passive reference of its namespace: connections do not keep a namespace alive, they go
//! down with it.

use crate::{
    bind::BindTable,
    cong::CongMap,
    conn::{
        Conn,
        ConnKey, //
    },
    idle::Remembered,
    maps::MapTable,
    sock::{
        self,
        RdsSock,
        RdsSockExt, //
    },
    state::Rds,
    sysctl,
    transport::Kind, //
};
use kernel::{
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode,
        RBTreeNodeReservation, //
    },
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
};
use weft::{
    net::{
        ns::{
            Net,
            NetRef,
            PerNetData,
            ScopedNet,
            WeakNet, //
        },
        sysctl::SysctlTable, //
    },
    new_spinlock_bh,
    new_task,
    sync::bh::SpinLockBh,
    time,
    workqueue::Task, //
};
use weft_proto::rds::counters::Core;

/// Sockets by their numbers.
type Sockets = RBTree<usize, ARef<RdsSock>>;

/// The connections of a namespace.
pub(crate) struct ConnTable {
    pub(crate) conns: RBTree<ConnKey, Arc<Conn>>,
    /// Those that were forgotten, but for their numbers.
    pub(crate) remembered: Remembered,
    /// How many there are of both.
    pub(crate) count: usize,
    /// The namespace is going away: no connection is added any more.
    closed: bool,
}

/// RDS in one network namespace.
#[pin_data]
pub struct NetState {
    /// The module.
    pub rds: Arc<Rds>,
    net: WeakNet,
    id: u64,
    /// Number of the namespace's file, for trace events.
    pub(crate) inode: u32,
    /// Tells peers that this is another life of this host; never 0.
    pub life: u32,
    /// Every socket that is not closed.
    #[pin]
    sockets: SpinLockBh<Sockets>,
    /// Who is bound where.
    #[pin]
    pub binds: BindTable,
    #[pin]
    pub(crate) conns: SpinLockBh<ConnTable>,
    #[pin]
    pub(crate) maps: SpinLockBh<MapTable>,
    /// Looks for connections that nobody uses.
    #[pin]
    idle: Task<NetState>,
    /// Sockets that want to know when ports become free.
    #[pin]
    monitors: SpinLockBh<Sockets>,
    /// Raised by every congestion update.
    generation: Atomic<u32>,
    /// Sockets that have met congestion: who waits on them wants to hear of updates.
    #[pin]
    congested: SpinLockBh<Sockets>,
}

weft::impl_has_task! { impl HasTask<0> for NetState { self.idle } }

impl NetState {
    fn new(rds: &Arc<Rds>, net: &ScopedNet<'_>) -> Result<Arc<Self>> {
        let weak = WeakNet::new(net)?;
        let (id, inode) = (net.id(), net.inode());
        Arc::pin_init(
            pin_init!(Self {
                rds: rds.clone(),
                net: weak,
                id,
                inode,
                life: time::random_u32() | 1,
                sockets <- new_spinlock_bh!(RBTree::new(), "rds_sockets"),
                binds <- BindTable::new(),
                conns <- new_spinlock_bh!(ConnTable {
                    conns: RBTree::new(),
                    remembered: RBTree::new(),
                    count: 0,
                    closed: false,
                }, "rds_conns"),
                maps <- new_spinlock_bh!(RBTree::new(), "rds_maps"),
                idle <- new_task!(rds.queue.clone(), "rds_idle"),
                monitors <- new_spinlock_bh!(RBTree::new(), "rds_monitors"),
                generation: Atomic::new(0),
                congested <- new_spinlock_bh!(RBTree::new(), "rds_congested"),
            }),
            GFP_KERNEL,
        )
    }

    /// Whether this is the state of `net`.
    pub fn is(&self, net: &Net) -> bool {
        self.id == net.id()
    }

    /// The namespace, unless it is going away.
    pub fn net(&self) -> Option<NetRef> {
        self.net.try_get()
    }

    /// Number of the last congestion update, for "has anything changed since".
    #[inline]
    pub fn congestion_generation(&self) -> u32 {
        // ORDERING: A hint; the wake-up that follows an update orders the rest.
        self.generation.load(Relaxed)
    }

    /// A map changed: `freed` are the ports (modulo 64) that can be sent to again. Up to softirq.
    pub fn map_updated(&self, map: &CongMap, freed: u64) {
        self.rds.count(Core::CongUpdateReceived);
        // ORDERING: See `congestion_generation`.
        self.generation.fetch_add(1, Relaxed);
        map.waiters.wake_all();
        for sk in self.congested.lock().values() {
            if sock::saw_congestion(sk) {
                sk.wake_sleepers();
            }
        }
        if freed != 0 {
            for sk in self.monitors.lock().values() {
                sk.congestion_freed(freed);
            }
        }
    }

    /// Whether a socket has met congestion and was not told since that it has ended.
    pub(crate) fn awaits_news(&self) -> bool {
        let has_failed = |sk: &ARef<RdsSock>| sock::saw_congestion(sk);
        let monitors = |sk: &ARef<RdsSock>| sk.monitor.lock().waiting != 0;
        self.congested.lock().values().any(has_failed)
            || self.monitors.lock().values().any(monitors)
    }

    /// Has `sk` told about ports that become free. May sleep.
    pub fn add_monitor(&self, sk: &RdsSock) -> Result {
        add(&self.monitors, sk)
    }

    /// Undoes [`Self::add_monitor`].
    pub fn remove_monitor(&self, sk: &RdsSock) {
        remove(&self.monitors, sk);
    }

    /// Has whoever waits on `sk` woken by congestion updates, as long as [`sock::saw_congestion`]. May sleep.
    pub(crate) fn add_congested(&self, sk: &RdsSock) -> Result {
        add(&self.congested, sk)
    }

    /// Undoes [`Self::add_congested`].
    pub(crate) fn remove_congested(&self, sk: &RdsSock) {
        remove(&self.congested, sk);
    }

    /// Lists a new socket. May sleep.
    pub(crate) fn add_socket(&self, sk: &RdsSock) -> Result {
        add(&self.sockets, sk)
    }

    /// Undoes [`Self::add_socket`].
    pub(crate) fn remove_socket(&self, sk: &RdsSock) {
        remove(&self.sockets, sk);
    }

    /// Calls `visit` for each socket, with the list locked; `visit` must not sleep.
    pub fn for_each_socket(&self, mut visit: impl FnMut(&RdsSock)) {
        for sk in self.sockets.lock().values() {
            visit(sk);
        }
    }

    /// The connection with this key, if there is one.
    pub fn find_connection(&self, key: &ConnKey) -> Option<Arc<Conn>> {
        self.conns.lock().conns.get(key).cloned()
    }

    /// Puts a new connection into the table, unless another was faster: the one that is in the table is returned.
    ///
    /// `ENETDOWN` if the namespace is going away, `ENOMEM` if it has as many connections as it may have.
    pub(crate) fn insert_connection(
        self: &Arc<Self>,
        conn: &Arc<Conn>,
        reservation: RBTreeNodeReservation<ConnKey, Arc<Conn>>,
    ) -> Result<Arc<Conn>> {
        let mut table = self.conns.lock();
        // Whoever destroys connections takes this lock after it has closed the table or announced that the transport
        // leaves: either it finds this connection, or this finds out.
        if table.closed || conn.transport.is_leaving() {
            return Err(ENETDOWN);
        }
        if let Some(found) = table.conns.get(&conn.key) {
            return Ok(found.clone());
        }
        match table.remembered.get(&conn.key) {
            Some(memory) => conn.recall(memory),
            None => {
                // ORDERING: A setting on its own.
                let most = self.rds.tunables.max_connections.load(Relaxed);
                if table.count >= usize::try_from(most).unwrap_or(0) {
                    drop(table);
                    return Err(refuse(conn, most));
                }
                table.count += 1;
            }
        }
        let remembered = table.remembered.remove_node(&conn.key);
        table
            .conns
            .insert(reservation.into_node(conn.key, conn.clone()));
        conn.local_map.add_conn(conn);
        drop(table);
        drop(remembered);
        self.watch_idle();
        Ok(conn.clone())
    }

    /// Calls `visit` for each connection, with the table locked; `visit` must not sleep.
    pub fn for_each_connection(&self, mut visit: impl FnMut(&Arc<Conn>)) {
        for conn in self.conns.lock().conns.values() {
            visit(conn);
        }
    }

    /// Has connections neither rest nor be forgotten any more, once none is added. Sleeps while the task runs.
    fn stop_watching(self: &Arc<Self>) {
        self.conns.lock().closed = true;
        Task::cancel_sync(self);
    }

    /// Destroys all connections, or those over one transport. Sleeps until their tasks have ended.
    pub fn destroy_connections(&self, kind: Option<Kind>) {
        while let Some(conn) = self.take_connection(kind) {
            conn.destroy();
        }
    }

    fn take_connection(&self, kind: Option<Kind>) -> Option<Arc<Conn>> {
        let mut table = self.conns.lock();
        if kind.is_none() {
            table.closed = true;
        }
        let key = table
            .conns
            .keys()
            .find(|key| kind.is_none_or(|kind| key.kind == kind))
            .copied()?;
        let node = table.conns.remove_node(&key);
        table.count -= 1;
        drop(table);
        node.map(|node| node.to_key_value().1)
    }
}

/// Adds a socket to a list. May sleep.
fn add(list: &SpinLockBh<Sockets>, sk: &RdsSock) -> Result {
    let node = RBTreeNode::new(sk.id(), ARef::from(sk), GFP_KERNEL)?;
    let replaced = list.lock().insert(node);
    drop(replaced);
    Ok(())
}

/// Takes a socket off a list.
fn remove(list: &SpinLockBh<Sockets>, sk: &RdsSock) {
    let removed = list.lock().remove_node(&sk.id());
    drop(removed);
}

/// Says that there is no room for a connection.
fn refuse(conn: &Conn, most: i32) -> Error {
    weft::pr_ratelimited!(
        pr_warn,
        "RDS: no connection to {}: there are {} (net.rds.max_connections; unused ones go after net.rds.idle_timeout_ms)\n",
        weft::fmt::Plain(conn.key.peer),
        most
    );
    ENOMEM
}

/// The namespace's entry in the registration; its end destroys the connections.
#[pin_data]
pub struct Namespace {
    state: Arc<NetState>,
    _sysctl: Option<SysctlTable<Rds>>,
}

impl PerNetData for Namespace {
    type Ctx = Arc<Rds>;

    fn init(net: &ScopedNet<'_>, rds: &Arc<Rds>) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(|| {
            let state = NetState::new(rds, net)?;
            let sysctl = if net.is_init() {
                Some(sysctl::register(net, rds)?)
            } else {
                None
            };
            rds.add_namespace(state.clone())?;
            Ok::<_, Error>(try_pin_init!(Self {
                state,
                _sysctl: sysctl,
            }? Error))
        })
    }

    fn exit(self: Pin<&Self>, _net: &Net) {
        self.state.rds.remove_namespace(&self.state);
        self.state.stop_watching();
        self.state.destroy_connections(None);
    }
}
