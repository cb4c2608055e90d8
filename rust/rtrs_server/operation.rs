// SPDX-License-Identifier: GPL-2.0

//! A request as its user sees it: the right to use a chunk, and the duty to answer.
//!
//! C counterpart: `struct rtrs_srv_op` and `rtrs_srv_resp_rdma`. There an operation is looked up by the number in the
//! message, here it is an object that is answered once by its nature: [`Operation::reply`] consumes it, and dropping it
//! answers `EIO`.

use crate::{
    chunks::Claim,
    pool::Memory,
    session::Session, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weft_proto::{
    errno::Errno,
    rtrs::request::Request, //
};
use weft_rdma::pages::Pages;

/// Which way the data of a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the server to the client.
    Read,
    /// From the client to the server.
    Write,
}

/// What the client wants to be told.
pub(crate) struct Question {
    /// The chunk, until the answer is posted.
    pub(crate) claim: Claim,
    /// What it asks for.
    pub(crate) request: Request,
}

/// A request being executed.
///
/// It may be sent anywhere and kept for as long as the work takes. Its chunk belongs to it alone: a client that sends a
/// request again after a path failed has it executed after this one is over.
pub struct Operation {
    question: Option<Question>,
    memory: Arc<Memory>,
    direction: Direction,
    data_len: u32,
}

impl Operation {
    pub(crate) fn new(
        question: Question,
        memory: Arc<Memory>,
        direction: Direction,
        data_len: u32,
    ) -> Self {
        Self {
            question: Some(question),
            memory,
            direction,
            data_len,
        }
    }

    /// Which way the data goes.
    #[inline]
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Bytes of data: those that the client sent, or those that it has room for.
    #[inline]
    pub fn data_len(&self) -> u32 {
        self.data_len
    }

    /// The memory of the chunk; the data is the first [`Self::data_len`] bytes of it.
    ///
    /// Without `always_invalidate` the client may write to it at any time.
    #[inline]
    pub fn pages(&self) -> &Arc<Pages> {
        &self.memory.pages
    }

    /// The session that the request belongs to.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.question
            .as_ref()
            .map(|question| &question.claim.conn().path.session)
    }

    /// Tells the path that the request came over from all others of its session, of earlier and later times.
    pub fn path(&self) -> Option<u64> {
        let question = self.question.as_ref()?;
        Some(question.claim.conn().path.id)
    }

    /// Closes the paths of the session that were up before the one that the request came over was begun. Process context.
    ///
    /// For a client that says it has lost all its paths: this server has not noticed of some of them. Requests that have
    /// arrived there may still be handed out for a moment.
    pub fn close_older_paths(&self) {
        if let Some(question) = &self.question {
            let path = &question.claim.conn().path;
            let registry = &path.session.server().registry;
            registry.close_older(&path.session, path.id);
        }
    }

    /// Copies a short result to the beginning of the data. `EMSGSIZE` if the client has no room for it. Any context.
    pub fn write(&self, bytes: &[u8]) -> Result {
        if self.direction != Direction::Read || bytes.len() > usize::try_from(self.data_len)? {
            return Err(EMSGSIZE);
        }
        self.pages().copy_in(0, bytes)
    }

    /// Answers the request. Any context.
    ///
    /// `result` tells how many bytes at the beginning of the data were written for a read, which are sent to the client
    /// and no more; for a write it means nothing. If the path is gone, the answer goes nowhere.
    pub fn reply(mut self, result: Result<u32>) {
        self.answer(result);
    }

    fn answer(&mut self, result: Result<u32>) {
        if let Some(question) = self.question.take() {
            let status = match result {
                Ok(written) => Ok(written.min(self.data_len)),
                Err(error) => Err(Errno::from_code(error.to_errno()).unwrap_or(Errno::EIO)),
            };
            crate::reply::send(question, status);
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        self.answer(Err(EIO));
    }
}
