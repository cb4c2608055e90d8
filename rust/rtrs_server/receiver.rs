// SPDX-License-Identifier: GPL-2.0

//! What arrives on a connection.
//!
//! C counterpart: `rtrs_srv_rdma_done`, `rtrs_srv_info_req_done`. Whatever a client may not send closes the path; nothing
//! of it is ignored, so that a client never waits for an answer that does not come.

use crate::{
    conn::Conn,
    request, //
};
use kernel::{
    prelude::*,
    sync::ArcBorrow, //
};
use weft::fmt::Plain;
use weft_proto::rtrs::{
    imm::ToServer,
    info, //
};
use weft_rdma::qp::{
    Handler,
    Message,
    QueuePair,
    Received,
    WcStatus, //
};

impl Handler for Conn {
    fn received(this: ArcBorrow<'_, Self>, _qp: &QueuePair, message: Received<'_>) {
        let path = &this.path;
        path.pulse.heard();
        match (message.message(), message.payload()) {
            (Message::WriteImm(imm), _) => match message.repost() {
                Ok(()) => Self::announced(this, imm),
                Err(error) => path.close(fmt!("cannot receive: {:?}", Error::from(error))),
            },
            (Message::Send, Some(bytes)) => match info::parse_request(bytes) {
                Ok(name) => path.asked(name),
                Err(error) => path.close(Plain(error)),
            },
            _ => path.close(fmt!("an unexpected message on connection {}", this.cid)),
        }
    }

    fn error(this: ArcBorrow<'_, Self>, status: WcStatus) {
        this.path.close(fmt!("connection {}: {status}", this.cid));
    }

    fn writable(this: ArcBorrow<'_, Self>, _qp: &QueuePair) {
        this.room();
    }
}

impl Conn {
    /// The client announced something. Process context.
    fn announced(this: ArcBorrow<'_, Self>, imm: u32) {
        let geometry = &this.path.session.server().config().geometry;
        match ToServer::parse(geometry, imm) {
            Ok(ToServer::Request { chunk, off }) => request::arrived(this, chunk, off),
            Ok(ToServer::Heartbeat | ToServer::HeartbeatAck) if this.cid != 0 => {
                this.path
                    .close(fmt!("a heartbeat on connection {}", this.cid));
            }
            Ok(ToServer::Heartbeat) => this.acknowledge(),
            Ok(ToServer::HeartbeatAck) => {}
            Err(error) => this.path.close(Plain(error)),
        }
    }
}
