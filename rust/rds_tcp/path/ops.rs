// SPDX-License-Identifier: GPL-2.0

//! What RDS asks of a path: connecting, taking down, sending.

use super::{
    Ends,
    TcpPath,
    CLOSE_MS, //
};
use core::any::Any;
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
};
use rds::{
    info::Sink,
    message::{
        Message,
        Payload, //
    },
    path::Path,
    transport::PathOps, //
};
use weft::net::tcp::{
    Family,
    KernelSocket,
    Shutdown,
    SocketAddr6,
    Unsent, //
};
use weft_proto::rds::{
    addr::Addr,
    counters::Tcp,
    info as record,
    path::path_of_source_port,
    uapi, window,
    wire::{
        HEADER_LEN,
        TCP_PORT, //
    },
};
use zerocopy::IntoBytes;

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
            self.refuse_parked(path);
        }
        if let Some(attached) = slot.attached.take() {
            if destroy {
                attached.no_linger();
            } else {
                attached.set_user_timeout(CLOSE_MS);
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
        self.take_parked(path);
    }
}
