// SPDX-License-Identifier: GPL-2.0

//! The info exchange: the last step of setting up a path.

use super::Setup;
use crate::{
    chunks::Chunks,
    lane::Lane,
    line::{
        Letter,
        Line, //
    },
    link::Lanes, //
};
use kernel::{
    error::code::{
        EBUSY,
        ECONNABORTED,
        ECONNRESET,
        ETIMEDOUT, //
    },
    prelude::*,
    sync::Arc, //
};
use weft::{
    fmt::Plain,
    sync::wait::{
        Mode,
        WaitResult, //
    },
    time::msecs_to_jiffies, //
};
use weft_proto::rtrs::{
    conn::Accepted,
    info::{
        self,
        InfoResponse, //
    },
    reconnect::STEP_TIMEOUT_MS,
    state::ClientState,
    wire::InfoReq, //
};
use weft_rdma::{
    dma::DmaBuf,
    qp::Signal, //
};

impl Setup<'_> {
    /// Makes a lane for each chunk.
    pub(super) fn make_lanes(&self, accepted: &Accepted) -> Result {
        let (pd, pages) = (self.pd()?, u32::from(self.segments()?) + 1);
        let geometry = &accepted.geometry;
        let desks = crate::call::desks(geometry.queue_depth());
        let (mut calls, mut blocks) = (KVec::new(), KVec::new());
        for chunk in geometry.chunks() {
            if chunk.number() < desks {
                calls.push(Lane::new(self.path, pd, chunk, pages)?, GFP_KERNEL)?;
            } else {
                blocks.push(Lane::new(self.path, pd, chunk, pages)?, GFP_KERNEL)?;
            }
        }
        self.core.set_lanes(Lanes::new(calls, blocks)?);
        Ok(())
    }

    /// Tells the server the session's name and learns where its chunks are.
    pub(super) fn exchange_info(&self, accepted: &Accepted) -> Result {
        self.core
            .inbox
            .open(info::max_response_len(&accepted.geometry))?;
        self.post_receives(accepted)?;
        self.send_name()?;
        let message = self.wait_for_letter()?;
        let response = InfoResponse::parse(&accepted.geometry, &message).map_err(|error| {
            pr_err!("{}: {}\n", self.path.label(), Plain(error));
            ECONNRESET
        })?;
        let chunks = Chunks::new(&response, accepted.geometry.queue_depth())?;
        self.core.chunks.populate(chunks);
        Ok(())
    }

    /// Posts all receives. Until the server knows the name it sends nothing, so that they are in time.
    fn post_receives(&self, accepted: &Accepted) -> Result {
        let max_qp_wr = self.pd()?.device().limits().max_qp_wr;
        for (cid, line) in (0u16..).zip(&self.lines) {
            let receives = self.sizes(cid, max_qp_wr).receives;
            match (cid, accepted.new_rkey) {
                (0, true) => line.qp().post_slab_recv(self.letters.count)?,
                (0, false) => {
                    // The one for the answer comes first; all that follows has no bytes.
                    line.qp().post_slab_recv(1)?;
                    line.qp().post_recv(receives.saturating_sub(1))?;
                }
                (_, true) => line.qp().post_slab_recv(receives)?,
                (_, false) => line.qp().post_recv(receives)?,
            }
        }
        Ok(())
    }

    fn send_name(&self) -> Result {
        let line = self.lines.first().ok_or(ECONNABORTED)?;
        let request = InfoReq::new(self.path.session.name.to_wire());
        let bytes = request.as_bytes();
        let buffer = DmaBuf::new(self.pd()?.device(), bytes.len())?;
        buffer.write(0, bytes)?;
        let letter = Arc::new(Letter(buffer), GFP_KERNEL)?;
        line.qp().post(letter, Signal::Auto, |letter, chain| {
            chain.send(letter.0.sge(0, letter.0.len())?)
        })?;
        Ok(())
    }

    fn wait_for_letter(&self) -> Result<KVec<u8>> {
        let settled = || self.core.inbox.is_full() || !self.path.is_connecting(self.serial);
        let timeout = i64::try_from(msecs_to_jiffies(STEP_TIMEOUT_MS))?;
        match self.path.changed.wait(Mode::Killable, timeout, settled) {
            WaitResult::Ready(_) => self.core.inbox.take().ok_or_else(|| self.silence()),
            WaitResult::TimedOut => Err(ETIMEDOUT),
            WaitResult::Signal(error) => Err(error),
        }
    }

    /// Why there is no answer: `EBUSY` if the server has hung up without a word.
    ///
    /// That is how it answers to the name of a session that it has already.
    fn silence(&self) -> Error {
        let first = self.lines.first();
        if self.path.state() != ClientState::ConnectingErr || !first.is_some_and(Line::is_over) {
            return ECONNRESET;
        }
        pr_warn!(
            "{}: the server has hung up; it may still have another session of this name\n",
            self.path.label()
        );
        EBUSY
    }
}
