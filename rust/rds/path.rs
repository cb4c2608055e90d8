// SPDX-License-Identifier: GPL-2.0

//! One path of a connection: its state, what is queued on it, what was sent and not acknowledged.
//!
//! C counterpart: `struct rds_conn_path`. Every change of state that takes time is done by the path's task
//! (`worker.rs`), which never runs twice at a time; others change the state in one atomic step and kick the task.

use crate::{
    arrivals::Arrivals,
    conn::Conn,
    message::{
        Envelope,
        Message,
        Payload, //
    },
    trace::{
        self,
        Datagram,
        Reason, //
    },
    transport::{
        Kind,
        PathOps, //
    },
    worker::{
        Event,
        Events,
        Reconnect, //
    },
};
use kernel::{
    list::List,
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
    list::HomeList,
    new_spinlock_bh,
    new_task,
    sync::bh::SpinLockBh,
    time,
    workqueue::Task, //
};
use weft_proto::rds::{
    counters::Core,
    handshake,
    state::{
        self,
        PathState, //
    },
    window::AckPolicy,
    wire::PORT_PING, //
};

/// Protocol messages that may be queued on a path: a peer that pings and does not read gets no more answers.
const MOST_CONTROLS: usize = 1024;

/// How long a connection of the peer's waits to be told which path it is for, in milliseconds.
const HOLD_MS: u32 = 1000;

/// Messages of a path.
pub struct TxQueue {
    /// Not sent yet.
    pub send: HomeList<Message, 1>,
    /// Sent, or being sent, and not acknowledged.
    pub unacked: HomeList<Message, 1>,
    /// Number that the next message gets.
    pub next_sequence: u64,
    /// When to ask for an acknowledgement.
    pub ack_policy: AckPolicy,
    /// Protocol messages in the two lists.
    controls: usize,
    /// The path is destroyed: nothing is queued any more.
    closed: bool,
}

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
                queue <- new_spinlock_bh!(TxQueue {
                    send: HomeList::new(),
                    unacked: HomeList::new(),
                    next_sequence: 1,
                    ack_policy: AckPolicy::new(),
                    controls: 0,
                    closed: false,
                }, "rds_path_queue"),
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
        if !self.transition(PathState::Connecting, PathState::Up) {
            // Somebody dropped the path meanwhile; make sure that what was just connected is taken down.
            self.drop_path();
            return;
        }
        self.reconnect.lock().connected();
        self.closed_by_peer.store(false, Relaxed);
        self.conn.note_up();
        self.up_since.store(time::jiffies(), Relaxed);
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

    /// Queues a message of the protocol itself: ping, pong, probe. Up to softirq.
    ///
    /// `ENOMEM`, `ENOBUFS` if the port is congested or a peer that does not read has [`MOST_CONTROLS`] of them coming,
    /// `ENETUNREACH` if the path is destroyed.
    pub fn send_control(self: &Arc<Self>, sport: u16, dport: u16) -> Result {
        self.queue_control(sport, dport).inspect_err(|_| {
            self.drop_datagram(Reason::ControlRefused, || Datagram {
                local_port: sport,
                peer_port: dport,
                ..Datagram::default()
            });
        })
    }

    fn queue_control(self: &Arc<Self>, sport: u16, dport: u16) -> Result {
        let mut extensions = [0; 16];
        if handshake::is_probe(sport, dport) || handshake::is_probe_reply(sport, dport) {
            handshake::write_probe(
                &mut extensions,
                u16::from(self.conn.transport.max_paths()),
                self.conn.net.life,
            );
        }
        let envelope = Envelope {
            sport,
            dport,
            flags: 0,
            extensions,
        };
        self.connect_if_down();
        if self.conn.peer_map.test(dport) || self.queue.lock().controls >= MOST_CONTROLS {
            return Err(ENOBUFS);
        }
        let message = Message::new(
            self.clone(),
            None,
            envelope,
            Payload::EMPTY,
            None,
            GFP_ATOMIC,
        )?;
        if !self.enqueue(&message) {
            return Err(ENETUNREACH);
        }
        self.conn.rds.count(Core::SendQueued);
        self.conn.rds.count(Core::SendPong);
        self.kick(Event::Send);
        Ok(())
    }

    /// Appends a message to what is to be sent, and numbers it. Up to softirq. `false` if the path is destroyed.
    #[inline]
    pub(crate) fn enqueue(&self, message: &Arc<Message>) -> bool {
        let mut queue = self.queue.lock();
        if queue.closed {
            return false;
        }
        message.set_sequence(queue.next_sequence);
        queue.next_sequence += 1;
        queue.controls += usize::from(message.is_control());
        // Before anybody can send it.
        trace::event::send(|| (self.place(), trace::outgoing(message)));
        // A new message is on no list.
        queue.send.push_back(message.clone()).is_ok()
    }

    /// Whether somebody transmits now.
    pub fn is_transmitting(&self) -> bool {
        // ORDERING: A hint.
        self.transmitting.load(Relaxed)
    }

    /// Whether anything waits to be sent.
    #[inline]
    pub fn has_work(&self) -> bool {
        !self.queue.lock().send.is_empty() || (self.index == 0 && self.conn.map_is_queued())
    }

    /// The lowest number of a message that the peer may not have.
    pub(crate) fn oldest_pending(&self) -> Option<u64> {
        let queue = self.queue.lock();
        let sent = queue.unacked.front().map(|first| first.sequence());
        let unsent = queue.send.front().map(|first| first.sequence());
        // What was taken back to be sent again is older than what was never sent.
        match (sent, unsent) {
            (Some(sent), Some(unsent)) => Some(sent.min(unsent)),
            (sent, unsent) => sent.or(unsent),
        }
    }

    /// Notes whether the transport holds something that has arrived and could not be taken. Up to softirq.
    #[inline]
    pub fn set_receiver_stopped(&self, stopped: bool) {
        // ORDERING: Read by `Conn::is_settling` on another path, whose data were sent after this path's.
        if self.is_receiver_stopped() != stopped {
            self.receiver_stopped.store(stopped, Release);
        }
    }

    /// Whether the transport holds something that has arrived and could not be taken.
    pub(crate) fn is_receiver_stopped(&self) -> bool {
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

    /// Whether the two ends have agreed on fewer paths than would include this one. Any context.
    pub fn is_surplus(&self) -> bool {
        let paths = self.conn.paths_in_use();
        self.index > 0 && paths != 0 && self.index >= paths
    }

    /// Whether the path may carry a connection that the peer opened: path 0 always, others once they are agreed on.
    pub fn is_agreed(&self) -> bool {
        self.index == 0 || self.index < self.conn.paths_in_use()
    }

    /// Drops what waits on a path that the peer does not have any more.
    pub(crate) fn drop_surplus(&self) {
        let mut dropped = 0;
        loop {
            let message = {
                let mut queue = self.queue.lock();
                let message = queue.unacked.pop_front().or_else(|| queue.send.pop_front());
                if message.as_ref().is_some_and(|message| message.is_control()) {
                    queue.controls -= 1;
                }
                message
            };
            let Some(message) = message else {
                break;
            };
            message.finish();
            self.drop_datagram(Reason::SurplusPath, || trace::outgoing(&message));
            dropped += 1;
        }
        if dropped > 0 {
            weft::pr_ratelimited!(
                pr_warn,
                "RDS: {} has fewer paths than before, {} messages to its former self are dropped\n",
                weft::fmt::Plain(self.conn.key.peer),
                dropped
            );
        }
    }

    /// Whether messages of sockets are on the path, sent or not.
    pub(crate) fn holds_user_messages(&self) -> bool {
        let queue = self.queue.lock();
        queue.send.iter().any(|message| !message.is_control())
            || queue.unacked.iter().any(|message| !message.is_control())
    }

    /// Whether messages of sockets wait to be sent.
    pub(crate) fn has_user_messages(&self) -> bool {
        self.queue
            .lock()
            .send
            .iter()
            .any(|message| !message.is_control())
    }

    /// Takes off everything that the peer has, as told by `acked` for the end of a message. Up to softirq.
    ///
    /// Returns whether messages wait to be sent.
    #[inline]
    pub fn drop_acked(&self, acked: impl Fn(u32) -> bool) -> bool {
        let mut done = List::new();
        let waiting = {
            let mut queue = self.queue.lock();
            while let Some(first) = queue.unacked.front() {
                if !first.end().is_some_and(&acked) {
                    break;
                }
                if let Some(first) = queue.unacked.pop_front() {
                    queue.controls -= usize::from(first.is_control());
                    done.push_back(first);
                }
            }
            !queue.send.is_empty()
        };
        while let Some(message) = done.pop_front() {
            message.finish();
        }
        // ORDERING: The transport's own lock orders this after the transmitter's store.
        waiting || self.partial.load(Relaxed) || (self.index == 0 && self.conn.map_is_queued())
    }

    /// Takes one message off the path, wherever it is. Up to softirq. `false` if it had left already.
    pub(crate) fn remove(&self, message: &Message) -> bool {
        let removed = {
            let mut queue = self.queue.lock();
            let removed = queue
                .send
                .remove(message)
                .or_else(|| queue.unacked.remove(message));
            if removed.is_some() {
                queue.controls -= usize::from(message.is_control());
            }
            removed
        };
        removed.is_some()
    }

    /// After the transport is gone: what was not acknowledged is to be sent again, before everything else.
    ///
    /// The caller holds `xmit`, so that nobody transmits.
    pub(crate) fn reset_transmit(&self, xmit: &mut Xmit) {
        *xmit = Xmit::default();
        // ORDERING: The transport is gone; nobody reads this until the next connection.
        self.partial.store(false, Relaxed);
        let mut queue = self.queue.lock();
        queue.ack_policy.reset();
        while let Some(message) = queue.unacked.pop_back() {
            message.reset_for_retransmission();
            if !self.conn.is_destroying() {
                trace::event::retransmit(|| (self.place(), trace::outgoing(&message)));
            }
            queue.send.push_front_list_arc(message);
        }
    }

    /// Drops everything queued; the path is destroyed.
    pub(crate) fn purge(&self) {
        self.xmit.lock().current = None;
        loop {
            let message = {
                let mut queue = self.queue.lock();
                queue.closed = true;
                queue.unacked.pop_front().or_else(|| queue.send.pop_front())
            };
            let Some(message) = message else {
                break;
            };
            message.finish();
            self.drop_datagram(Reason::ConnDestroyed, || trace::outgoing(&message));
        }
    }

    /// Answers a ping: an empty message to the port that sent it.
    pub(crate) fn pong(self: &Arc<Self>, port: u16) {
        // Without memory the peer pings again; a probe is repeated with the next message.
        let _ = self.send_control(PORT_PING, port);
    }
}
