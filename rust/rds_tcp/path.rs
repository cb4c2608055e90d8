// SPDX-License-Identifier: GPL-2.0

//! One path over TCP: connecting, sending, being told by TCP, taking down.
//!
//! C counterpart: `net/rds/tcp.c`, `tcp_connect.c`, `tcp_send.c`.

use crate::{
    accept,
    stream::Rx,
    Shared, //
};
use core::any::Any;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        ArcBorrow,
        Mutex, //
    },
};
use rds::{
    info::Sink,
    message::{
        Message,
        Payload, //
    },
    path::Path,
    trace::Reason,
    transport::PathOps,
    worker::Event, //
};
use weft::{
    net::tcp::{
        Attached,
        CallbackSk,
        Family,
        KernelSocket,
        Shutdown,
        SkbChunk,
        SocketAddr6,
        TcpCallbacks,
        TcpState,
        Unsent, //
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
    addr::Addr,
    arbitration::{
        self,
        Established, //
    },
    counters::Tcp,
    info as record,
    path::{
        path_of_source_port,
        SourcePorts, //
    },
    state::PathState,
    uapi, window,
    wire::{
        HEADER_LEN,
        TCP_PORT, //
    },
};
use zerocopy::IntoBytes;

/// Seconds of silence before the first keepalive probe, and between two.
const KEEPALIVE_SECONDS: i32 = 5;
/// Unanswered probes before the connection counts as lost.
const KEEPALIVE_COUNT: i32 = 5;

/// How long a path that is taken down waits for what the peer still sends, in steps.
const DRAIN_STEP_MS: u32 = 100;
const DRAIN_STEPS: usize = 50;

/// Connections of one peer that may wait for its path to be free.
const MOST_PARKED: usize = 8;

/// A peer that accepts a connection and has no place for it closes it unread, when its TCP has acknowledged what was in
/// it. So path 0, on which each end speaks first, believes in acknowledgements when the peer has spoken, or has been
/// silent for so many milliseconds without closing.
const TRUST_MS: u32 = 1000;

/// A connection that the peer opened.
struct Parked {
    socket: KernelSocket,
    /// Jiffies when it came.
    since: usize,
}

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
    /// Jiffies when the path got its socket.
    attached_at: Atomic<usize>,
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
        let inner = Arc::pin_init(
            pin_init!(Inner {
                shared: shared.clone(),
                socket <- new_mutex!(Slot { attached: None, closed: false }, "rds_tcp_socket"),
                parked <- new_mutex!(KVec::new(), "rds_tcp_parked"),
                rx <- new_spinlock_bh!(Rx::default(), "rds_tcp_rx"),
                ends <- new_spinlock_bh!(None, "rds_tcp_ends"),
                drained <- weft::new_wait_queue!("rds_tcp_drained"),
                heard: Atomic::new(false),
                attached_at: Atomic::new(0),
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

    /// Takes a connection that the peer opened. Sleeps, but waits for no peer.
    ///
    /// The peer opens one only if it has no other, so a connection that the path has now is stale: it is taken down,
    /// and what the peer knows to have arrived on it is delivered before anything of the new one.
    pub(crate) fn offer(&self, path: &Arc<Path>, socket: KernelSocket) {
        let since = time::jiffies();
        {
            let mut parked = self.0.parked.lock();
            let refusal = if path.conn.is_destroying() {
                Some(Reason::Parked)
            } else if parked.len() >= MOST_PARKED {
                Some(Reason::Crowded)
            } else {
                let room = parked.reserve(1, GFP_KERNEL);
                room.is_err().then_some(Reason::NotAccepted)
            };
            if let Some(reason) = refusal {
                drop(parked);
                path.drop_connection(reason);
                accept::refuse(socket);
                return;
            }
            // There is room, as was just made sure.
            let _ = parked.push_within_capacity(Parked { socket, since });
        }
        path.kick(Event::Accept);
    }

    fn next_parked(&self) -> Option<Parked> {
        let mut parked = self.0.parked.lock();
        if parked.is_empty() {
            return None;
        }
        parked.remove(0).ok()
    }

    /// Puts a connection back that could not be taken, before all others.
    fn park_again(&self, path: &Path, entry: Parked) {
        let mut parked = self.0.parked.lock();
        if parked.insert_within_capacity(0, entry).is_err() {
            // It came from here, so there is room unless others came meanwhile.
            path.drop_connection(Reason::Crowded);
        }
    }

    /// Passes on what is for other paths, now that this is known; path 0 gets what is for a path that there is not, and
    /// what the peer says nothing of. Sleeps.
    fn sort_parked(&self, path: &Arc<Path>) {
        while let Some((entry, target)) = self.next_stray(path) {
            let other = path.conn.path(target);
            match other.as_ref().and_then(Self::of) {
                Some((other, tcp)) => tcp.offer(other, entry.socket),
                None => {
                    path.drop_connection(Reason::Parked);
                    accept::refuse(entry.socket);
                }
            }
        }
        if !path.is_agreed() {
            let first = self.0.parked.lock().first().map(|entry| entry.since);
            if let Some(jiffies) = first.and_then(|since| path.time_to_tell(since)) {
                path.accept_after(jiffies);
            }
        }
    }

    /// A connection that waits here and is for another path, and for which.
    fn next_stray(&self, path: &Path) -> Option<(Parked, usize)> {
        let conn = &path.conn;
        let own = usize::from(path.index);
        let (paths, encoded) = (conn.paths_in_use(), conn.sport_encodes_path());
        let target = |entry: &Parked| match paths {
            0 if path.time_to_tell(entry.since).is_some() => own,
            0 => 0,
            _ if encoded => path_of_source_port(entry.socket.peer().port, paths),
            _ if path.is_agreed() => own,
            _ => 0,
        };
        let mut parked = self.0.parked.lock();
        let index = parked.iter().position(|entry| target(entry) != own)?;
        let entry = parked.remove(index).ok()?;
        drop(parked);
        let target = target(&entry);
        Some((entry, target))
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
        self.attached_at.store(time::jiffies(), Relaxed);
        slot.attached = Some(socket.attach(hooks)?);
        Ok(())
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
        let passed = time::jiffies().wrapping_sub(self.attached_at.load(Relaxed));
        time::msecs_to_jiffies(TRUST_MS).saturating_sub(passed)
    }

    /// Drops what TCP says that the peer has, if that can be believed; returns whether messages wait to be sent.
    #[inline]
    fn acknowledged(&self, path: &Arc<Path>, una: u32) -> bool {
        // ORDERING: For information only.
        self.last_seen_una.store(una, Relaxed);
        let wait = self.time_to_trust(path);
        if wait > 0 {
            path.receive_after(wait);
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
        if let Err(failed) = self.attach(&mut slot, path, socket) {
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
        if path.index == 0 && path.conn.paths_in_use() == 0 {
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
        path.set_receiver_stopped(matches!(result, Err(ENOMEM | EBUSY)));
        result
    }

    /// Waits until the peer has sent its last byte and all is delivered, or the time is up.
    ///
    /// What TCP has acknowledged must not be thrown away: the peer has forgotten it.
    fn drain(&self, path: &Arc<Path>, attached: &Attached<Hooks>) {
        let step = i64::try_from(time::msecs_to_jiffies(DRAIN_STEP_MS)).unwrap_or(1);
        for _ in 0..DRAIN_STEPS {
            // A lack of memory is met by trying again.
            let _ = self.receive_from(path, attached);
            let done = || attached.state().peer_is_done() && attached.receive_queue_empty();
            if self.rx.lock().is_refused() || path.conn.is_destroying() {
                attached.no_linger();
                return;
            }
            if let WaitResult::Ready(_) = self.drained.wait(Mode::Uninterruptible, step, done) {
                return;
            }
        }
        path.drop_connection(Reason::NotDrained);
    }
}

impl PathOps for TcpPath {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn connect(&self, path: &Arc<Path>) -> Result {
        let inner = &self.0;
        let conn = &path.conn;
        let mut slot = inner.socket.lock();
        let space = inner.shared.space_of(&conn.net).ok_or(ENETDOWN)?;
        let net = space.net.enter().ok_or(ENETDOWN)?;
        let family = if conn.key.local.is_v4_mapped() {
            Family::V4
        } else {
            Family::V6
        };
        let socket = KernelSocket::create(&space.net, family)?;
        inner.tune(path, &socket);
        inner.bind_source(path, &socket, net.local_port_range())?;
        let peer = SocketAddr6 {
            addr: conn.key.peer.0,
            port: TCP_PORT,
            scope_id: conn.key.interface,
        };
        *inner.ends.lock() = Some(Ends {
            local: socket.local(),
            peer,
        });
        // From the connect on, the callbacks decide what becomes of the path.
        inner
            .attach(&mut slot, path, socket)
            .map_err(|(error, _socket)| error)?;
        let result = match &slot.attached {
            Some(attached) => attached.connect(&peer),
            None => Err(ENETDOWN),
        };
        if result.is_err() {
            slot.attached = None;
        }
        result
    }

    fn shutdown(&self, path: &Arc<Path>, destroy: bool) {
        let inner = &self.0;
        let mut slot = inner.socket.lock();
        if destroy {
            slot.closed = true;
            let parked = core::mem::take(&mut *inner.parked.lock());
            for entry in parked {
                path.drop_connection(Reason::Parked);
                accept::refuse(entry.socket);
            }
        }
        if let Some(attached) = slot.attached.take() {
            if destroy {
                attached.no_linger();
            } else {
                // An error means that there is no connection any more.
                let _ = attached.shutdown(Shutdown::Send);
                inner.drain(path, &attached);
            }
            let locked = attached.lock();
            inner.acknowledged(path, locked.snd_una());
            drop(locked);
            attached.detach();
        }
        *inner.ends.lock() = None;
        inner.reset_rx(path);
        path.set_receiver_stopped(false);
    }

    #[inline]
    fn send(
        &self,
        path: &Arc<Path>,
        message: &Arc<Message>,
        offset: usize,
        more: bool,
    ) -> Result<usize> {
        let inner = &self.0;
        let slot = inner.socket.lock();
        let attached = slot.attached.as_ref().ok_or(ENOTCONN)?;
        if offset == 0 {
            let next = attached.write_seq();
            let end = window::tcp_end_sequence(next, u32::try_from(message.len())?);
            message.set_end(end);
            // ORDERING: For information only.
            inner.last_sent_next.store(next, Relaxed);
            inner.last_expected_una.store(end.wrapping_add(1), Relaxed);
        }
        // TCP tells of acknowledgements only while it believes that somebody waits for room.
        attached.set_nospace();
        let header = message.header();
        let head = header.as_bytes().get(offset..).unwrap_or(&[]);
        let body_offset = offset.saturating_sub(HEADER_LEN);
        let (copied, body) = match &message.payload {
            Payload::Inline(bytes) => (bytes.get(body_offset..).unwrap_or(&[]), None),
            Payload::Frags(frags) => (&[][..], Some(frags.pages())),
            Payload::User(pages) => (&[][..], Some(pages.pages())),
        };
        let result = attached.send_message(&Unsent {
            head,
            copied,
            body,
            body_offset,
            more,
        });
        match result {
            Err(EAGAIN) => {
                inner.shared.count(Tcp::SndbufFull);
                // With nothing on its way no acknowledgement will tell of room: TCP is short of memory.
                let idle = attached.write_seq() == attached.snd_una();
                Err(if idle { ENOMEM } else { EAGAIN })
            }
            Err(error) => {
                if path.is_up() {
                    weft::pr_ratelimited!(
                        pr_warn,
                        "RDS/tcp: send to {} on cp [{}]returned {}, disconnecting and reconnecting\n",
                        weft::fmt::Plain(path.conn.key.peer),
                        path.index,
                        error.to_errno()
                    );
                    path.drop_path();
                }
                Err(error)
            }
            sent => sent,
        }
    }

    fn flush(&self) {
        if let Some(attached) = &self.0.socket.lock().attached {
            attached.set_cork(false);
        }
    }

    fn meant_for(&self, paths: u8) -> usize {
        let ends = *self.0.ends.lock();
        ends.map_or(0, |ends| path_of_source_port(ends.peer.port, paths))
    }

    fn has_parked(&self) -> bool {
        !self.0.parked.lock().is_empty()
    }

    fn receive(&self, path: &Arc<Path>) -> Result {
        let slot = self.0.socket.lock();
        match &slot.attached {
            Some(attached) => self.0.receive_from(path, attached),
            None => Ok(()),
        }
    }

    fn info(&self, path: &Path, option: i32, sink: &mut Sink) {
        let inner = &self.0;
        let Some(ends) = *inner.ends.lock() else {
            return;
        };
        let full = record::TcpSocket6 {
            local_addr: Addr(ends.local.addr),
            local_port: ends.local.port.into(),
            peer_addr: Addr(ends.peer.addr),
            peer_port: ends.peer.port.into(),
            hdr_rem: (inner.header_missing.load(Relaxed) as u64).into(),
            data_rem: (inner.data_missing.load(Relaxed) as u64).into(),
            last_sent_nxt: inner.last_sent_next.load(Relaxed).into(),
            last_expected_una: inner.last_expected_una.load(Relaxed).into(),
            last_seen_una: inner.last_seen_una.load(Relaxed).into(),
        };
        if option == uapi::info::TCP_SOCKETS6 {
            sink.push(&full);
        } else if let Some(short) = full.to_v4(path.conn.key.tos) {
            sink.push(&short);
        }
    }

    fn slot_available(&self, path: &Arc<Path>) {
        self.sort_parked(path);
        if !path.is_agreed() {
            return;
        }
        if path.waits_for_first() {
            path.accept_later();
            return;
        }
        while path.state() == PathState::Down {
            let Some(Parked { socket, since }) = self.next_parked() else {
                return;
            };
            if let Err((error, socket)) = self.0.adopt(path, socket) {
                // Its data may be acknowledged already, so the connection must not be lost.
                self.park_again(path, Parked { socket, since });
                if error != EBUSY {
                    path.accept_later();
                }
                return;
            }
        }
    }
}

impl TcpCallbacks for Hooks {
    fn data_ready(this: ArcBorrow<'_, Self>, sk: &mut CallbackSk<'_>) {
        let (path, inner) = (&this.path, &this.inner);
        inner.shared.count(Tcp::DataReadyCalls);
        // ORDERING: TCP's lock is held.
        let first = !inner.heard.load(Relaxed);
        let result = sk.read_sock(|chunk| inner.read(path, chunk));
        if first {
            inner.acknowledged(path, sk.snd_una());
        }
        match inner.after_read(path, result.map(|_| ())) {
            Err(ENOMEM) => path.kick(Event::Receive),
            Err(EBUSY) => path.receive_later(),
            _ => {}
        }
        if !path.is_up() && sk.receive_queue_empty() {
            inner.drained.wake_all();
        }
    }

    fn write_space(this: ArcBorrow<'_, Self>, sk: &CallbackSk<'_>) {
        let (path, inner) = (&this.path, &this.inner);
        inner.shared.count(Tcp::WriteSpaceCalls);
        let waiting = inner.acknowledged(path, sk.snd_una());
        if waiting && sk.has_send_space() {
            path.kick(Event::Send);
        } else if waiting {
            // Packets that a queueing discipline still holds take up the room. If this was the last acknowledgement,
            // nobody tells when they are gone.
            path.send_later();
        }
    }

    fn state_change(this: ArcBorrow<'_, Self>, _sk: &CallbackSk<'_>, state: TcpState) {
        let (path, inner) = (&this.path, &this.inner);
        match state {
            TcpState::Established => match arbitration::established(path.conn.role()) {
                Established::Up => path.complete(),
                // The peer has taken notice; it connects the right way round.
                Established::Drop => path.drop_path(),
            },
            TcpState::Closing | TcpState::TimeWait => inner.drained.wake_all(),
            TcpState::CloseWait | TcpState::LastAck => {
                inner.drained.wake_all();
                path.closed_by_peer();
            }
            TcpState::Close => {
                inner.drained.wake_all();
                path.drop_path();
            }
            _ => {}
        }
    }
}
