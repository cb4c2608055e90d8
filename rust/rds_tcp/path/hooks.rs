// SPDX-License-Identifier: GPL-2.0

//! What TCP tells a path.

use super::Hooks;
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        ArcBorrow, //
    },
};
use rds::worker::Event;
use weft::net::tcp::{
    CallbackSk,
    TcpCallbacks,
    TcpState, //
};
use weft_proto::rds::{
    arbitration::{
        self,
        Established, //
    },
    counters::Tcp, //
};

impl TcpCallbacks for Hooks {
    fn data_ready(this: ArcBorrow<'_, Self>, sk: &mut CallbackSk<'_>) {
        let (path, inner) = (&this.path, &this.inner);
        inner.shared.count(Tcp::DataReadyCalls);
        // ORDERING: TCP's lock is held.
        let first = !inner.heard.load(Relaxed);
        let result = sk.read_sock(|chunk| inner.read(path, chunk));
        if first {
            inner.acknowledged(path, sk.snd_una());
            // The task may have been planned for the time when a silent peer is believed.
            path.kick(Event::Receive);
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
                Established::Up => {
                    inner.note_connected();
                    path.complete();
                }
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
