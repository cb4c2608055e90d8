// SPDX-License-Identifier: GPL-2.0

//! The transport between sockets of one namespace: the receiver gets the sender's message itself.
//!
//! C counterpart: `net/rds/loop.c`.

use crate::{
    incoming::{
        Data,
        Slot,
        Trace, //
    },
    info::Sink,
    message::Message,
    netns::NetState,
    path::Path,
    recv,
    state::Rds,
    transport::{
        self,
        Kind,
        PathOps,
        Registration,
        Transport, //
    },
};
use core::any::Any;
use kernel::{
    module::this_module,
    prelude::*,
    sync::Arc, //
};
use weft::{
    net::ns::Net,
    time, //
};
use weft_proto::rds::{
    addr::Addr,
    wire::HEADER_LEN, //
};

/// The loopback transport.
struct Loopback;

/// Its side of a path: it has no state.
struct LoopPath;

/// Registers the loopback transport.
pub(crate) fn register(rds: &Arc<Rds>) -> Result<Registration> {
    let transport = Arc::new(Loopback, GFP_KERNEL)?;
    transport::register(rds, transport, this_module::<crate::LocalModule>())
}

impl Transport for Loopback {
    fn kind(&self) -> Kind {
        Kind::Loop
    }

    fn name(&self) -> &'static str {
        "loopback"
    }

    fn prefers_loopback(&self) -> bool {
        false
    }

    fn max_paths(&self) -> u8 {
        1
    }

    fn map_tos(&self, _tos: u8) -> Option<u8> {
        None
    }

    fn is_local(&self, _net: &Net, address: &Addr, _scope_id: u32) -> bool {
        address.is_loopback()
    }

    fn new_path(&self) -> Result<Arc<dyn PathOps>> {
        let path: Arc<dyn PathOps> = Arc::new(LoopPath, GFP_KERNEL)?;
        Ok(path)
    }

    fn counters(&self, _report: &mut dyn FnMut(&'static str, u64)) {}

    fn info(&self, _net: &NetState, _option: i32, _sink: &mut Sink) -> Option<()> {
        None
    }
}

impl PathOps for LoopPath {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn connect(&self, path: &Arc<Path>) -> Result {
        path.complete();
        Ok(())
    }

    fn shutdown(&self, _path: &Arc<Path>, _destroy: bool) {}

    fn send(
        &self,
        path: &Arc<Path>,
        message: &Arc<Message>,
        _offset: usize,
        _more: bool,
    ) -> Result<usize> {
        let header = message.header();
        let conn = &path.conn;
        let total = HEADER_LEN + message.len();
        if header.flags() & weft_proto::rds::wire::FLAG_CONG_BITMAP != 0 {
            // Both ends look at the same map.
            return Ok(total);
        }
        let now = time::local_clock();
        let arrival = recv::Arrival {
            slot: Slot::new(GFP_KERNEL)?,
            source: conn.key.local,
            destination: conn.key.peer,
            header,
            trace: Trace {
                header: now,
                start: now,
                queued: 0,
            },
            data: Data::Message(message.clone()),
        };
        // The sender's own limit bounds what it can have on its way.
        let _taken = recv::deliver(path, &conn.peer_map, arrival, recv::Overload::Take);
        // It has arrived: take it off the path and tell the sender.
        if path.remove(message) {
            message.finish();
        }
        Ok(total)
    }

    fn flush(&self) {}

    fn meant_for(&self, _paths: u8) -> usize {
        0
    }

    fn has_parked(&self) -> bool {
        false
    }

    fn receive(&self, _path: &Arc<Path>) -> Result {
        Ok(())
    }

    fn info(&self, _path: &Path, _option: i32, _sink: &mut Sink) {}

    fn slot_available(&self, _path: &Arc<Path>) {}
}
