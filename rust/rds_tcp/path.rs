// SPDX-License-Identifier: GPL-2.0

//! One path over TCP: connecting, sending, being told by TCP, taking down.
//!
//! C counterpart: `net/rds/tcp.c`, `tcp_connect.c`, `tcp_send.c`.

mod hooks;
mod ops;
mod parked;

use crate::{
    stream::Rx,
    Shared, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
};
use parked::Parked;
use rds::{
    path::Path,
    trace::Reason,
    worker::Event, //
};
use weft::{
    net::tcp::{
        Attached,
        KernelSocket,
        SkbChunk,
        SocketAddr6,
        TcpState, //
    },
    new_spinlock_bh,
    sync::{
        bh::SpinLockBh,
        wait::{
            Mode,
            WaitQueue,
            WaitResult, //
        },
    },
    time, //
};
use weft_proto::rds::{
    path::SourcePorts,
    state::PathState,
    window,
    wire::HEADER_LEN, //
};

/// Seconds of silence before the first keepalive probe, and between two.
const KEEPALIVE_SECONDS: i32 = 5;
/// Unanswered probes before the connection counts as lost.
const KEEPALIVE_COUNT: i32 = 5;

/// How long a path that is taken down waits for what the peer still sends, in steps.
const DRAIN_STEP_MS: u32 = 100;
const DRAIN_STEPS: usize = 50;

/// How long TCP tries to get through what is unconfirmed when a path is taken down, in milliseconds. All of it is sent
/// again on the next connection, and a socket that tried on would keep its namespace for minutes.
const CLOSE_MS: u16 = 5000;

/// A peer that accepts a connection and has no place for it closes it unread, when its TCP has acknowledged what was in
/// it; and one that is busy takes its time to accept it. So path 0, on which each end speaks first, believes in
/// acknowledgements when the peer has spoken. One that has been silent for so many milliseconds without closing must be
/// of a kind that does not speak.
const TRUST_MS: u32 = 30_000;
/// How often it is looked whether the time is over, in milliseconds.
const TRUST_STEP_MS: u32 = 1000;

/// The socket of a path.
struct Slot {
    attached: Option<Attached<Hooks>>,
    /// The path is destroyed: no socket is attached any more.
    closed: bool,
}

/// What TCP tells about: the callbacks' owner.
struct Hooks {
    path: Arc<Path>,
    inner: Arc<Inner>,
}

/// The addresses of a connection, for information.
#[derive(Clone, Copy)]
struct Ends {
    local: SocketAddr6,
    peer: SocketAddr6,
}

/// The state of a path that its socket's callbacks share.
#[pin_data]
struct Inner {
    shared: Arc<Shared>,
    #[pin]
    socket: Mutex<Slot>,
    /// Connections that the peer opened while the path was not free, oldest first.
    #[pin]
    parked: Mutex<KVec<Parked>>,
    #[pin]
    rx: SpinLockBh<Rx>,
    #[pin]
    ends: SpinLockBh<Option<Ends>>,
    /// Woken when everything was read, or the peer will send no more.
    #[pin]
    drained: WaitQueue,
    /// The peer has sent something on this connection.
    heard: Atomic<bool>,
    /// Jiffies when the path got its connection, or began to make one.
    connected_at: Atomic<usize>,
    /// Group of source ports tried last.
    port_group: Atomic<u32>,
    /// Bytes missing of the message being received: of its header, of its payload.
    header_missing: Atomic<usize>,
    data_missing: Atomic<usize>,
    last_sent_next: Atomic<u32>,
    last_expected_una: Atomic<u32>,
    last_seen_una: Atomic<u32>,
}

/// The transport's side of a path.
pub(crate) struct TcpPath(Arc<Inner>);

impl TcpPath {
    pub(crate) fn new(shared: &Arc<Shared>) -> Result<Arc<Self>> {
        // Room for one: its data may be acknowledged, so that it must not be refused for lack of memory.
        let parked = KVec::with_capacity(1, GFP_KERNEL)?;
        let inner = Arc::pin_init(
            pin_init!(Inner {
                shared: shared.clone(),
                socket <- new_mutex!(Slot { attached: None, closed: false }, "rds_tcp_socket"),
                parked <- new_mutex!(parked, "rds_tcp_parked"),
                rx <- new_spinlock_bh!(Rx::default(), "rds_tcp_rx"),
                ends <- new_spinlock_bh!(None, "rds_tcp_ends"),
                drained <- weft::new_wait_queue!("rds_tcp_drained"),
                heard: Atomic::new(false),
                connected_at: Atomic::new(0),
                port_group: Atomic::new(0),
                header_missing: Atomic::new(HEADER_LEN),
                data_missing: Atomic::new(0),
                last_sent_next: Atomic::new(0),
                last_expected_una: Atomic::new(0),
                last_seen_una: Atomic::new(0),
            }),
            GFP_KERNEL,
        )?;
        Ok(Arc::new(Self(inner), GFP_KERNEL)?)
    }

    /// The transport's side of a path of TCP.
    pub(crate) fn of(path: &Arc<Path>) -> Option<(&Arc<Path>, &Self)> {
        Some((path, path.ops.as_any().downcast_ref()?))
    }
}

impl Inner {
    /// Makes a socket the path's own; gives it back if that fails.
    fn attach(
        self: &Arc<Self>,
        slot: &mut Slot,
        path: &Arc<Path>,
        socket: KernelSocket,
    ) -> Result<(), (Error, KernelSocket)> {
        if slot.closed {
            return Err((ENETDOWN, socket));
        }
        let keepalive = socket.set_keepalive(KEEPALIVE_SECONDS, KEEPALIVE_SECONDS, KEEPALIVE_COUNT);
        let hooks = Arc::new(
            Hooks {
                path: path.clone(),
                inner: self.clone(),
            },
            GFP_KERNEL,
        );
        let hooks = match keepalive.and(hooks.map_err(Error::from)) {
            Ok(hooks) => hooks,
            Err(error) => return Err((error, socket)),
        };
        self.reset_rx(path);
        // ORDERING: The callbacks that look at these come to be with the next step.
        self.heard.store(false, Relaxed);
        self.note_connected();
        slot.attached = Some(socket.attach(hooks)?);
        Ok(())
    }

    /// Begins to count how long the peer is silent.
    fn note_connected(&self) {
        // ORDERING: The caller holds TCP's lock, or nobody else knows the socket yet.
        self.connected_at.store(time::jiffies(), Relaxed);
    }

    /// Begins a new stream.
    fn reset_rx(&self, path: &Path) {
        let mut rx = self.rx.lock();
        rx.reset(path);
        self.note_missing(&rx);
    }

    /// Keeps what is missing of the current message, for information.
    #[inline]
    fn note_missing(&self, rx: &Rx) {
        let (header, data) = rx.missing();
        // ORDERING: For information only.
        self.header_missing.store(header, Relaxed);
        self.data_missing.store(data, Relaxed);
    }

    /// Takes in what has arrived.
    #[inline]
    fn read(&self, path: &Arc<Path>, chunk: &mut SkbChunk<'_>) -> Result {
        let mut rx = self.rx.lock();
        let result = rx.read(path, chunk);
        self.note_missing(&rx);
        // ORDERING: TCP's lock is held.
        if !self.heard.load(Relaxed) {
            self.heard.store(true, Relaxed);
        }
        result
    }

    /// Jiffies until acknowledgements can be believed; 0 if they can. The caller holds TCP's lock.
    #[inline]
    fn time_to_trust(&self, path: &Path) -> usize {
        if path.index > 0 || self.heard.load(Relaxed) {
            return 0;
        }
        let passed = time::jiffies().wrapping_sub(self.connected_at.load(Relaxed));
        time::msecs_to_jiffies(TRUST_MS).saturating_sub(passed)
    }

    /// Drops what TCP says that the peer has, if that can be believed; returns whether messages wait to be sent.
    #[inline]
    fn acknowledged(&self, path: &Arc<Path>, una: u32) -> bool {
        // ORDERING: For information only.
        self.last_seen_una.store(una, Relaxed);
        let wait = self.time_to_trust(path);
        if wait > 0 {
            path.receive_after(wait.min(time::msecs_to_jiffies(TRUST_STEP_MS)));
        }
        path.drop_acked(|end| wait == 0 && window::tcp_acked(end, una))
    }

    /// Sets the options that every socket of this transport has.
    fn tune(&self, path: &Path, socket: &KernelSocket) {
        socket.set_nodelay();
        if let Some(space) = self.shared.space_of(&path.conn.net) {
            let (send, receive) = space.buffer_sizes();
            if send.is_some() || receive.is_some() {
                socket.set_buffers(send, receive);
            }
        }
    }

    /// Makes an accepted connection the path's own, if it is free; else gives it back.
    fn adopt(
        self: &Arc<Self>,
        path: &Arc<Path>,
        socket: KernelSocket,
    ) -> Result<(), (Error, KernelSocket)> {
        let mut slot = self.socket.lock();
        if !path.transition(PathState::Down, PathState::Connecting) {
            return Err((EBUSY, socket));
        }
        self.tune(path, &socket);
        self.note_ends(&socket);
        if path.index == 0 && path.conn.paths_in_use() == 0 {
            // The probe comes on path 0 before any other message. If this is another path's, the peer has known this
            // host before.
            path.stand_in_for(path.ops.meant_for(path.conn.transport.max_paths()));
        }
        if let Err(failed) = self.attach(&mut slot, path, socket) {
            path.hand_over_numbers();
            path.transition(PathState::Connecting, PathState::Down);
            return Err(failed);
        }
        path.complete();
        if let Some(attached) = &slot.attached {
            // What happened before the callbacks were in place was told to nobody.
            if matches!(
                attached.state(),
                TcpState::CloseWait | TcpState::LastAck | TcpState::Close
            ) {
                path.drop_path();
            } else {
                path.kick(Event::Receive);
            }
        }
        // Even a peer that has nothing to say answers it, and is believed then.
        if path.stands_for_another() {
            path.probe_as_stand_in();
        } else if path.index == 0 {
            path.conn.probe(path);
        }
        Ok(())
    }

    fn note_ends(&self, socket: &KernelSocket) {
        *self.ends.lock() = Some(Ends {
            local: socket.local(),
            peer: socket.peer(),
        });
    }

    /// Binds to a source port that tells the peer which path this is.
    fn bind_source(&self, path: &Path, socket: &KernelSocket, range: (u16, u16)) -> Result {
        let key = &path.conn.key;
        let mut ports = SourcePorts::new(
            range.0,
            range.1,
            usize::from(path.index),
            // ORDERING: Only the path's task connects.
            self.port_group.load(Relaxed),
        );
        let mut result = Err(EADDRINUSE);
        for port in ports.by_ref() {
            result = socket.bind(&SocketAddr6 {
                addr: key.local.0,
                port,
                scope_id: key.interface,
            });
            if !matches!(result, Err(EADDRINUSE)) {
                break;
            }
        }
        self.port_group.store(ports.group(), Relaxed);
        result
    }

    /// Reads what has arrived, in process context.
    fn receive_from(&self, path: &Arc<Path>, attached: &Attached<Hooks>) -> Result {
        let turn = path.begin_turn();
        let result = self.read_all(path, attached);
        if result.is_ok() && self.parked.lock().is_empty() {
            path.end_turn(turn);
        }
        result
    }

    fn read_all(&self, path: &Arc<Path>, attached: &Attached<Hooks>) -> Result {
        let mut locked = attached.lock();
        self.rx.lock().retry(path)?;
        let result = locked.read_sock(|chunk| self.read(path, chunk));
        self.acknowledged(path, locked.snd_una());
        self.after_read(path, result.map(|_| ()))
    }

    /// What follows from the end of a read.
    #[inline]
    fn after_read(&self, path: &Arc<Path>, result: Result) -> Result {
        if matches!(result, Err(EPROTO)) && path.is_up() {
            path.drop_path();
        }
        if result.is_ok() && path.is_receiver_stopped() {
            self.rx.lock().note_all_read();
        }
        path.set_receiver_stopped(matches!(result, Err(ENOMEM | EBUSY)));
        result
    }

    /// Waits until the peer has sent its last byte and all is delivered, or the time is up.
    ///
    /// What TCP has acknowledged must not be thrown away: the peer has forgotten it.
    fn drain(&self, path: &Arc<Path>, attached: &Attached<Hooks>) {
        let step = i64::try_from(time::msecs_to_jiffies(DRAIN_STEP_MS)).unwrap_or(1);
        for _ in 0..DRAIN_STEPS {
            // A lack of memory is met by trying again, and so is a message that has to wait for path 0.
            let _ = self.receive_from(path, attached);
            let done = || {
                attached.state().peer_is_done()
                    && attached.receive_queue_empty()
                    && !self.rx.lock().has_pending()
            };
            if self.rx.lock().is_refused() || path.conn.is_destroying() {
                attached.no_linger();
                return;
            }
            if let WaitResult::Ready(_) = self.drained.wait(Mode::Uninterruptible, step, done) {
                return;
            }
        }
        self.rx.lock().make_haste();
        if self.receive_from(path, attached).is_ok() && attached.state().peer_is_done() {
            return;
        }
        // The peer keeps its end open: to close in order would mean to wait on for it.
        attached.no_linger();
        path.drop_connection(Reason::NotDrained);
    }
}
