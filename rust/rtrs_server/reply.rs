// SPDX-License-Identifier: GPL-2.0

//! Answers on their way to the client.
//!
//! C counterpart: `rdma_write_sg`, `send_io_resp_imm`. What an answer consists of is in `weft_proto::rtrs::answer`; here
//! it becomes one chain of work requests.

use crate::{
    conn::Conn,
    operation::Question,
    slot::{
        Reply,
        Slot, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weft_proto::{
    errno::Errno,
    rtrs::answer::Answer, //
};
use weft_rdma::{
    mr::Access,
    qp::{
        Chain,
        Owner,
        PostError,
        QueuePair,
        Remote,
        Signal, //
    },
};

/// Answers a request, with the bytes written for the client or an error. Any context.
pub(crate) fn send(question: Question, status: Result<u32, Errno>) {
    question.claim.answering();
    Conn::answer(Reply { question, status });
}

/// Posts an answer. Any context.
pub(crate) fn post(qp: &QueuePair, slot: &Arc<Slot>, reply: &Reply) -> Result<(), PostError> {
    if let Some(key) = &slot.key {
        key.registered_by(reply.question.claim.conn().cid);
    }
    qp.post(slot.clone(), Signal::Auto, |slot, chain| {
        build(slot, reply, chain)
    })
}

/// Puts the work requests of an answer together.
fn build<'o>(slot: &'o Slot, reply: &Reply, chain: &mut Chain<'o>) -> Result {
    let written = reply.status.unwrap_or(0);
    let status = reply.status.map(|_| ());
    let answer = |key| Answer::new(slot.chunk, &reply.question.request, status, written, key);
    let parts = answer(None);
    if let Some(data) = parts.data {
        let remote = Remote {
            addr: data.addr,
            rkey: data.rkey,
        };
        let length = usize::try_from(data.len)?;
        slot.mapped.sync_for_device(0, length)?;
        chain.write(slot.mapped.sge(0, length)?, remote)?;
    }
    if let Some(key) = parts.invalidate {
        chain.send_inv((), key)?;
    }
    let Some(key) = &slot.key else {
        return chain.write_imm((), Remote::NONE, parts.imm);
    };
    let registered = chain.register(&key.region, Access::RemoteWrite)?;
    let message = answer(Some(registered.remote().rkey))
        .message
        .ok_or(EINVAL)?;
    key.message.write(0, &message)?;
    chain.send_imm(key.message.sge(0, message.len())?, parts.imm)
}

impl Owner for Slot {}
