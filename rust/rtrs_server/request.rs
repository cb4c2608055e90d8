// SPDX-License-Identifier: GPL-2.0

//! From an immediate to the user: what is done with a request that arrived.
//!
//! C counterpart: `rtrs_srv_rdma_done`, `rtrs_srv_inv_rkey_done`, `process_io_req`. Header and message are copied out of
//! the chunk once, and everything else works on the copies: the client may be able to write to the chunk at any time.

use crate::{
    chunks::{
        Admission,
        Claim, //
    },
    conn::{
        Conn,
        Serving, //
    },
    operation::{
        Direction,
        Operation,
        Question, //
    },
};
use kernel::{
    prelude::*,
    sync::ArcBorrow, //
};
use weft_proto::rtrs::{
    geometry::{
        ChunkId,
        Geometry, //
    },
    request::{
        Request,
        RequestError,
        MAX_HEADER, //
    },
};
use weft_rdma::pages::Pages;

/// A request arrived on a connection. Process context.
pub(crate) fn arrived(conn: ArcBorrow<'_, Conn>, chunk: ChunkId, offset: u32) {
    let path = &conn.path;
    if !path.is_connected() {
        return path.close("a request before the path is set up");
    }
    match Claim::ask(conn, chunk, offset) {
        Admission::Execute(claim) => execute(claim),
        Admission::Waits => {}
        Admission::Refused => path.close("a second request in one chunk"),
    }
}

/// Executes a request that owns its chunk. Process context.
pub(crate) fn execute(claim: Claim) {
    if claim
        .conn()
        .path
        .session
        .server()
        .config()
        .always_invalidate
    {
        Conn::invalidate(claim);
    } else {
        run(claim);
    }
}

/// Hands a request to the user, who owns what is in its chunk from now on. Process context.
pub(crate) fn run(claim: Claim) {
    let conn = claim.conn().clone();
    let mut serving = conn.serving.lock();
    let Some(serving) = &mut *serving else {
        return;
    };
    // It may have waited here for a disk. Meanwhile the client may have given the path up and sent its requests again.
    if !conn.path.is_connected() {
        return;
    }
    match read(claim, serving) {
        Ok((operation, message)) => serving.user.request(
            operation,
            serving.message.get(..message).unwrap_or_default(),
        ),
        Err(problem) => conn.path.close(&problem),
    }
}

/// What is wrong with a request.
enum Problem {
    Malformed(RequestError),
    Unreadable,
}

impl kernel::fmt::Display for Problem {
    fn fmt(&self, f: &mut kernel::fmt::Formatter<'_>) -> kernel::fmt::Result {
        match self {
            Self::Malformed(error) => write!(f, "malformed request: {error}"),
            Self::Unreadable => f.write_str("a request that cannot be read"),
        }
    }
}

/// Takes a request out of its chunk; also the length of the user's message, which is in `serving` then.
fn read(claim: Claim, serving: &mut Serving) -> Result<(Operation, usize), Problem> {
    let geometry = claim.conn().path.session.server().config().geometry;
    let slot = serving
        .slots
        .get(claim.chunk())
        .ok_or(Problem::Unreadable)?;
    slot.mapped
        .sync_for_cpu(0, header_end(&geometry, claim.offset()))
        .map_err(|_| Problem::Unreadable)?;
    let request = read_header(&geometry, claim.offset(), &slot.memory.pages)?;
    let range = request.usr_range();
    let length = range.len();
    let message = serving
        .message
        .get_mut(..length)
        .ok_or(Problem::Unreadable)?;
    copy_out(&slot.memory.pages, range.start, message)?;
    claim
        .conn()
        .path
        .stats
        .count(request.is_write(), request.counted_bytes());
    let direction = match request.is_write() {
        true => Direction::Write,
        false => Direction::Read,
    };
    let data_len = request.data_len();
    let question = Question { claim, request };
    Ok((
        Operation::new(question, slot.memory.clone(), direction, data_len),
        length,
    ))
}

/// How much of a chunk a request with its header at `offset` may use.
fn header_end(geometry: &Geometry, offset: u32) -> usize {
    usize::try_from(Request::header_range(geometry, offset).end).unwrap_or(0)
}

fn read_header(geometry: &Geometry, offset: u32, pages: &Pages) -> Result<Request, Problem> {
    let range = Request::header_range(geometry, offset);
    let mut header = [0; MAX_HEADER];
    let header = header.get_mut(..range.len()).ok_or(Problem::Unreadable)?;
    copy_out(pages, range.start, header)?;
    Request::parse(geometry, offset, header).map_err(Problem::Malformed)
}

fn copy_out(pages: &Pages, offset: u32, to: &mut [u8]) -> Result<(), Problem> {
    let offset = usize::try_from(offset).map_err(|_| Problem::Unreadable)?;
    pages.copy_out(offset, to).map_err(|_| Problem::Unreadable)
}
