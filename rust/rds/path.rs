// SPDX-License-Identifier: GPL-2.0

//! One path of a connection: its state.
//!
//! C counterpart: `struct rds_conn_path`. Every change of state that takes time is done by the path's task
//! (`worker.rs`), which never runs twice at a time; others change the state in one atomic step and kick the task.

use crate::{
    arrivals::Arrivals,
    conn::Conn,
    message::Message,
    queue::TxQueue,
    reconnect::Reconnect,
    trace,
    transport::{
        Kind,
        PathOps, //
    },
    worker::{
        Event,
        Events, //
    },
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        Arc,
        Mutex, //
    },
};
use weft::{
    new_spinlock_bh,
    new_task,
    sync::bh::SpinLockBh,
    time,
    workqueue::Task, //
};
use weft_proto::rds::state::{
    self,
    PathState, //
};

/// How long a connection of the peer's waits to be told which path it is for, in milliseconds.
const HOLD_MS: u32 = 1000;

/// The numbers of a path's messages, by which each is delivered once.
#[derive(Clone, Copy, Default)]
pub(crate) struct Numbers {
    /// Number that the next message sent gets.
    pub(crate) next_sequence: u64,
    /// Number of the next message expected.
    pub(crate) rx_expected: u64,
}

/// What the transmitter is at; whoever holds the lock transmits.
#[derive(Default)]
pub struct Xmit {
    /// The message being sent.
    pub current: Option<Arc<Message>>,
    /// Bytes of it that the transport took, header included.
    pub offset: usize,
    /// The last message was announced to have a successor.
    pub unflushed: bool,
}

/// A path.
#[pin_data]
pub struct Path {
    /// The transport's side. Dropped before the connection, whose reference keeps the transport's module loaded.
    pub ops: Arc<dyn PathOps>,
    /// Its connection; see `Conn::destroy` for the end of this circle.
    pub conn: Arc<Conn>,
    /// Which path of the connection.
    pub index: u8,
    state: Atomic<i32>,
    /// What is queued.
    #[pin]
    pub queue: SpinLockBh<TxQueue>,
    /// Who transmits.
    #[pin]
    pub xmit: Mutex<Xmit>,
    /// Somebody transmits. Only to be told of: the lock decides.
    pub(crate) transmitting: Atomic<bool>,
    /// The transport took part of a message and refused the rest.
    pub(crate) partial: Atomic<bool>,
    /// Numbers of what arrives.
    pub(crate) arrivals: Arrivals,
    /// Something has arrived that could not be taken yet.
    receiver_stopped: Atomic<bool>,
    /// Jiffies when the path came up.
    up_since: Atomic<usize>,
    /// The peer closed in order what carried the path.
    closed_by_peer: Atomic<bool>,
    /// How often what carried it was taken down.
    losses: Atomic<u32>,
    /// Who is at the path; see `idle.rs`.
    pub(crate) users: Atomic<u32>,
    /// What the task is to do.
    pub(crate) events: Events,
    /// When to connect again.
    #[pin]
    pub(crate) reconnect: SpinLockBh<Reconnect>,
    #[pin]
    pub(crate) task: Task<Path>,
}

weft::impl_has_task! { impl HasTask<0> for Path { self.task } }

impl Path {
    /// Makes a path that is down.
    pub(crate) fn new(conn: &Arc<Conn>, index: u8) -> Result<Arc<Self>> {
        let ops = conn.transport.new_path()?;
        Arc::pin_init(
            pin_init!(Self {
                ops,
                conn: conn.clone(),
                index,
                state: Atomic::new(PathState::Down as i32),
                queue <- new_spinlock_bh!(TxQueue::new(), "rds_path_queue"),
                xmit <- new_mutex!(Xmit::default(), "rds_path_xmit"),
                transmitting: Atomic::new(false),
                partial: Atomic::new(false),
                arrivals: Arrivals::new(),
                receiver_stopped: Atomic::new(false),
                up_since: Atomic::new(0),
                closed_by_peer: Atomic::new(false),
                losses: Atomic::new(0),
                users: Atomic::new(0),
                events: Events::new(),
                reconnect <- new_spinlock_bh!(Reconnect::new(), "rds_reconnect"),
                task <- new_task!(conn.rds.queue.clone(), "rds_path"),
            }),
            GFP_KERNEL,
        )
    }

    /// The state now. Any context.
    #[inline]
    pub fn state(&self) -> PathState {
        // ORDERING: `Acquire` pairs with the transitions.
        PathState::from_i32(self.state.load(Acquire)).unwrap_or(PathState::Error)
    }

    /// Whether traffic can flow.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.state() == PathState::Up
    }

    /// Goes from one state to another, if it is in the first and the step is legal. Any context.
    pub fn transition(&self, from: PathState, to: PathState) -> bool {
        let done = state::allowed(from, to) && self.step(from, to);
        if done && to == PathState::Connecting {
            self.arrivals.begin();
        }
        done
    }

    /// Goes from one state to another, if it is in the first.
    fn step(&self, from: PathState, to: PathState) -> bool {
        // ORDERING: `Full`: the state decides who may touch the transport's side.
        let done = self.state.cmpxchg(from as i32, to as i32, Full).is_ok();
        if done {
            trace::event::state_change(|| (self.place(), from as i32, to as i32));
        }
        done
    }

    /// The transport is connected: traffic can flow. Up to softirq.
    pub fn complete(self: &Arc<Self>) {
        // ORDERING: The change of state makes it visible.
        self.up_since.store(time::jiffies(), Relaxed);
        if !self.transition(PathState::Connecting, PathState::Up) {
            // Somebody dropped the path meanwhile; make sure that what was just connected is taken down.
            self.drop_path();
            return;
        }
        self.reconnect.lock().connected();
        self.closed_by_peer.store(false, Relaxed);
        self.conn.note_up();
        // The peer must not work with an old map: it is the first thing sent. Loopback has one map for both ends, and
        // maps take path 0 only, so that none can overtake a newer one.
        if self.conn.key.kind != Kind::Loop && self.index == 0 {
            self.conn.mark_map();
        }
        self.kick(Event::Send);
        self.kick(Event::Receive);
        if self.index == 0 {
            self.conn.connect_others();
        }
    }

    /// Gives the path up and has its task take it down and connect again. Any context up to softirq.
    pub fn drop_path(self: &Arc<Self>) {
        let mut state = self.state();
        // What is being taken down needs no second turn for it.
        while state::allowed(state, PathState::Error) {
            if self.step(state, PathState::Error) {
                break;
            }
            state = self.state();
        }
        self.kick(Event::Shutdown);
    }

    /// The peer closed what carries the path, in order. Up to softirq.
    pub fn closed_by_peer(self: &Arc<Self>) {
        // ORDERING: The change of state that follows makes it visible to the path's task.
        self.closed_by_peer.store(true, Relaxed);
        self.drop_path();
    }

    /// Whether the peer had closed it, asked once.
    pub(crate) fn take_closed_by_peer(&self) -> bool {
        self.closed_by_peer.xchg(false, Full)
    }

    /// How often what carried the path was taken down.
    pub fn losses(&self) -> u32 {
        self.losses.load(Relaxed)
    }

    /// Counts one more.
    pub(crate) fn count_loss(&self) {
        // ORDERING: For information only.
        self.losses.fetch_add(1, Relaxed);
    }

    /// The numbers of messages. While the path is down and nobody is at it they do not change.
    pub(crate) fn numbers(&self) -> Numbers {
        Numbers {
            next_sequence: self.queue.lock().next_sequence,
            rx_expected: self.rx_expected(),
        }
    }

    /// Goes on with the numbers of an earlier life; nothing was sent or received yet.
    pub(crate) fn recall(&self, numbers: Numbers) {
        self.queue.lock().next_sequence = numbers.next_sequence.max(1);
        self.arrivals.set_expected(numbers.rx_expected);
    }

    /// Whether somebody transmits now.
    pub fn is_transmitting(&self) -> bool {
        // ORDERING: A hint.
        self.transmitting.load(Relaxed)
    }

    /// Notes whether the transport holds something that has arrived and could not be taken. Up to softirq.
    #[inline]
    pub fn set_receiver_stopped(&self, stopped: bool) {
        // ORDERING: A hint for other tasks.
        if self.is_receiver_stopped() != stopped {
            self.receiver_stopped.store(stopped, Release);
        }
    }

    /// Whether the transport holds something that has arrived and could not be taken.
    pub fn is_receiver_stopped(&self) -> bool {
        self.receiver_stopped.load(Acquire)
    }

    /// How long the peer has to say which path a connection is for before it is taken to know nothing of paths, in
    /// jiffies; `None` if it has said so, or had the time.
    pub fn time_to_tell(&self, since: usize) -> Option<usize> {
        let limit = time::msecs_to_jiffies(HOLD_MS);
        let passed = time::jiffies().wrapping_sub(since);
        (self.conn.paths_in_use() == 0 && passed < limit).then(|| limit - passed)
    }

    /// The same for what carries the path now.
    pub(crate) fn own_time_to_tell(&self) -> Option<usize> {
        self.time_to_tell(self.up_since.load(Relaxed))
    }

    /// For how many jiffies the path has been up, if it is.
    pub(crate) fn time_up(&self) -> usize {
        time::jiffies().wrapping_sub(self.up_since.load(Relaxed))
    }

    /// Whether the two ends have agreed on fewer paths than would include this one. Any context.
    pub fn is_surplus(&self) -> bool {
        let paths = self.conn.paths_in_use();
        self.index > 0 && paths != 0 && self.index >= paths
    }

    /// Whether the path may carry a connection that the peer opened: path 0 always, others once they are agreed on.
    pub fn is_agreed(&self) -> bool {
        self.index == 0 || self.index < self.conn.paths_in_use()
    }
}
