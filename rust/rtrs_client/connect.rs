// SPDX-License-Identifier: GPL-2.0

//! Setting up the connections of a path.
//!
//! C counterpart: `init_conns`, `create_con_cq_qp`, `rtrs_send_path_info`, `process_info_rsp`. The first connection comes
//! first, because only its answer tells how large everything is; the others are set up together, each step for all of
//! them at a time. Then the server is told the name of the session, and tells where its chunks are.
//!
//! All of this happens in the task that calls [`connect`], top to bottom; whatever exists when it fails is dropped.

mod info;

use crate::{
    line::Line,
    link::{
        Core,
        Link, //
    },
    path::Path,
    receiver::Receiver,
    session::MOST_SEGMENTS,
    usher::{
        Progress,
        Usher, //
    }, //
};
use core::ops::RangeInclusive;
use kernel::{
    cpu::nr_cpu_ids,
    error::code::{ECONNRESET, EOPNOTSUPP, EPROTO},
    prelude::*,
    sync::Arc, //
};
use weft::{fmt::Plain, net::ns::ActiveNet};
use weft_proto::rtrs::{
    answer::RKEY_RSP_LEN,
    cid::{
        Connections,
        Use, //
    },
    conn::{
        Accepted,
        ConnectRequest,
        PathUuid,
        SessionUuid, //
    },
    info::response_len,
    reconnect::STEP_TIMEOUT_MS,
    sizes::{
        Needs,
        QueueSizes, //
    },
};
use weft_rdma::{
    addr::Addr,
    cm::{
        CmId,
        ConnParam,
        PortSpace,
        Token, //
    },
    cq::{
        Context,
        Cq, //
    },
    device::Device,
    pd::Pd,
    qp::{
        Qp,
        QpInit,
        SlabSize, //
    }, //
};

/// Scatter-gather entries of one work request, if the device has so many: a write of up to 60 KiB needs no memory region.
const MOST_SGES: u32 = 16;
/// Bytes of the receives of the connection for messages that have a buffer, all together. Each has room for the longest
/// answer of the info exchange.
const LETTERS_SIZE: u32 = 128 << 10;
/// How many they are: so many, or as many as fit. The server waits if there are none.
const LETTERS: RangeInclusive<u32> = 2..=8;
/// Requests that the queues of the connection for messages are made for: more than can be under way at a time.
const CALLS: u16 = 16;
/// Bytes of the message that brings a new key.
const KEY_LEN: u32 = RKEY_RSP_LEN as u32;
/// Chunks that the answer of the info exchange may describe, before the number of them is known.
const UNKNOWN_DEPTH: u16 = 1024;

/// A link that is being set up.
struct Setup<'a> {
    path: &'a Arc<Path>,
    serial: u32,
    /// May the server create the session?
    first: bool,
    plan: Connections,
    core: Arc<Core>,
    /// Buffers of the connection for messages.
    letters: SlabSize,
    pd: Option<Arc<Pd>>,
    lines: KVec<Line>,
}

/// A connection without queue pair.
struct Opening {
    cm: CmId,
    usher: Arc<Usher>,
    cid: u16,
}

/// Sets up link number `serial` of a path. Sleeps, up to several times 30 s; ends early if the path is closed.
///
/// `first` says whether the server may create the session for it.
pub(crate) fn connect(path: &Arc<Path>, serial: u32, first: bool) -> Result<Arc<Link>> {
    let known = path
        .session
        .limits()
        .map(|limits| limits.agreed.queue_depth);
    let mut setup = Setup {
        path,
        serial,
        first,
        plan: Connections::new(nr_cpu_ids(), path.poll_connections),
        core: Core::new(path, serial)?,
        letters: letters(known.unwrap_or(UNKNOWN_DEPTH)),
        pd: None,
        lines: KVec::new(),
    };
    let accepted = setup.open_first()?;
    setup.open_others()?;
    setup.make_lanes(&accepted)?;
    setup.exchange_info(&accepted)?;
    Link::new(setup.core, setup.lines, setup.plan)
}

impl Setup<'_> {
    fn open_first(&mut self) -> Result<Accepted> {
        let opening = self.begin(0)?;
        opening.wait_address()?;
        self.choose_device(&opening)?;
        let line = self.equip(opening)?;
        line.wait_route()?;
        self.request(&line, 0)?;
        let accepted = line.wait_accepted()?.ok_or(EPROTO)?;
        self.note_place(&line)?;
        self.lines.push(line, GFP_KERNEL)?;
        let segments = self.segments()?;
        if let Err(error) = self.path.session.fit(&accepted, segments) {
            pr_err!("{}: {}\n", self.path.label(), Plain(error));
            if error.is_final() {
                pr_err!(
                    "{}: not connected again by itself; do that by hand when it is mended\n",
                    self.path.label()
                );
                self.path.give_up();
            }
            return Err(ECONNRESET);
        }
        let needed = letters(accepted.geometry.queue_depth());
        if needed.entry > self.letters.entry {
            // Now that the number is known, the next attempt makes room.
            pr_info!(
                "{}: the server has more chunks than expected\n",
                self.path.label()
            );
            return Err(EBUSY);
        }
        self.core.set_accepted(accepted);
        Ok(accepted)
    }

    /// Sets up all connections but the first, each step for all at a time.
    fn open_others(&mut self) -> Result {
        let mut openings = KVec::new();
        for cid in 1..self.plan.cid_num() {
            openings.push(self.begin(cid)?, GFP_KERNEL)?;
        }
        for opening in openings {
            opening.wait_address()?;
            let line = self.equip(opening)?;
            self.lines.push(line, GFP_KERNEL)?;
        }
        for (cid, line) in (0..).zip(&self.lines).skip(1) {
            line.wait_route()?;
            self.request(line, cid)?;
        }
        for line in self.lines.iter().skip(1) {
            line.wait_accepted()?;
        }
        Ok(())
    }

    /// Begins a connection: looks for the server.
    fn begin(&self, cid: u16) -> Result<Opening> {
        let usher = Usher::new(self.path, self.serial, cid)?;
        let addrs = *self.path.addrs.lock();
        let space = match addrs.dst {
            Addr::Gid(_) => PortSpace::Ib,
            Addr::Ip(_) => PortSpace::Tcp,
        };
        let queue = &self.path.session.module.patient;
        let cm = CmId::new(ActiveNet::init(), queue, space, usher.clone())?;
        cm.set_reuse_addr(true)?;
        cm.resolve_addr(addrs.src.as_ref(), &addrs.dst, STEP_TIMEOUT_MS)?;
        Ok(Opening { cm, usher, cid })
    }

    /// Takes the device that leads to the server, which all connections of the path use.
    fn choose_device(&mut self, opening: &Opening) -> Result {
        let device = opening.cm.lock()?.device()?;
        let limits = device.limits();
        if !limits.fast_reg {
            pr_err!(
                "{}: {} cannot register memory by work requests\n",
                self.path.label(),
                device.name()
            );
            return Err(EOPNOTSUPP);
        }
        // From here on the end of the device reaches the path.
        self.path.hca.lock().device = Some(device.clone());
        self.pd = Some(Pd::new(&device)?);
        Ok(())
    }

    fn pd(&self) -> Result<&Arc<Pd>> {
        self.pd.as_ref().ok_or(ENODEV)
    }

    /// Segments of a page that memory may have here. A region has one page more: memory that does not begin with one
    /// also has a part of the last.
    fn segments(&self) -> Result<u16> {
        let most = self.pd()?.device().limits().max_fast_reg_pages;
        let most = u16::try_from(most.saturating_sub(1)).unwrap_or(u16::MAX);
        Ok(most.min(MOST_SEGMENTS))
    }

    /// Makes the queue pair of a connection, and looks for the route.
    fn equip(&self, opening: Opening) -> Result<Line> {
        let pd = self.pd()?;
        let Opening { cm, usher, cid } = opening;
        let limits = pd.device().limits();
        let sizes = self.sizes(cid, limits.max_qp_wr);
        let cpu = u32::from(cid.saturating_sub(1)) % nr_cpu_ids().max(1);
        let cq = self.completion_queue(pd.device(), cid, &sizes)?;
        let receiver = Receiver::new(&self.core, cid, cpu)?;
        let most_sges = limits.max_send_sge.min(MOST_SGES);
        let init = QpInit {
            pd,
            send_cq: &cq,
            recv_cq: &cq,
            max_send_wr: sizes.max_send_wr,
            max_recv_wr: sizes.max_recv_wr,
            // The connection for messages has few receives, and few messages.
            recv_batch: if cid == 0 { 1 } else { sizes.batch() },
            max_send_sge: most_sges,
            slab: self.slab(cid, &sizes),
        };
        let token = cm.lock()?;
        let qp = Qp::new(&token, &init, receiver)?;
        token.resolve_route(STEP_TIMEOUT_MS)?;
        drop(token);
        Ok(Line::new(qp, cq, cm, usher, most_sges))
    }

    fn sizes(&self, cid: u16, max_qp_wr: u32) -> QueueSizes {
        let connection = self.plan.use_of(cid).unwrap_or(Use::Io);
        let depth = match connection {
            Use::Admin => CALLS,
            Use::Io | Use::Polled => self
                .core
                .accepted()
                .map_or(UNKNOWN_DEPTH, |accepted| accepted.geometry.queue_depth()),
        };
        // Draining takes one work request on each side.
        QueueSizes::new(
            Needs::CLIENT,
            connection,
            depth,
            max_qp_wr.saturating_sub(1),
        )
    }

    fn completion_queue(
        &self,
        device: &Arc<Device>,
        cid: u16,
        sizes: &QueueSizes,
    ) -> Result<Arc<Cq>> {
        let vector = self
            .plan
            .completion_vector(cid, nr_cpu_ids(), device.limits().comp_vectors);
        // Draining takes one more on each side.
        let entries = sizes.completions().saturating_add(2);
        match self.plan.use_of(cid) {
            Some(Use::Polled) => Cq::private(device, Context::Direct, entries, vector),
            _ => Cq::pooled(device, Context::Softirq, entries, Some(vector)),
        }
    }

    /// Buffers for what the server sends.
    fn slab(&self, cid: u16, sizes: &QueueSizes) -> Option<SlabSize> {
        match self.core.accepted() {
            // The first connection: the server has not said yet whether its answers have bytes.
            None => Some(self.letters),
            Some(accepted) if accepted.new_rkey && cid != 0 => Some(SlabSize {
                entry: KEY_LEN,
                count: sizes.receives,
            }),
            Some(_) => None,
        }
    }

    /// Asks the server for a connection.
    fn request(&self, line: &Line, cid: u16) -> Result {
        let request = ConnectRequest {
            cid,
            cid_num: self.plan.cid_num(),
            // CAST: The count wraps; nobody compares it.
            recon_cnt: self.serial as u16,
            path: PathUuid(self.path.uuid),
            session: SessionUuid(self.path.session.uuid),
            first_conn: self.first,
        };
        let token: &Token<'_> = &*line.cm().lock()?;
        token.connect(&ConnParam::default(), request.to_wire().as_bytes())
    }

    /// Notes what the connection manager chose, for those who read the files of the path.
    fn note_place(&self, line: &Line) -> Result {
        let token = line.cm().lock()?;
        let (port, src) = (token.port_num(), token.local_addr());
        drop(token);
        self.path.hca.lock().port = port;
        self.path.addrs.lock().src = src;
        Ok(())
    }
}

/// Buffers for the connection for messages of a path with `depth` chunks.
fn letters(depth: u16) -> SlabSize {
    let entry = u32::try_from(response_len(depth))
        .unwrap_or(u32::MAX)
        .max(1);
    SlabSize {
        entry,
        count: (LETTERS_SIZE / entry).clamp(*LETTERS.start(), *LETTERS.end()),
    }
}

impl Opening {
    fn wait_address(&self) -> Result {
        self.usher.wait(|progress| match progress {
            Progress::Begun => None,
            _ => Some(()),
        })
    }
}

impl Line {
    fn wait_route(&self) -> Result {
        self.usher().wait(|progress| match progress {
            Progress::Begun | Progress::Address => None,
            _ => Some(()),
        })
    }

    fn wait_accepted(&self) -> Result<Option<Accepted>> {
        self.usher().wait(|progress| match progress {
            Progress::Accepted(accepted) => Some(accepted),
            _ => None,
        })
    }
}
