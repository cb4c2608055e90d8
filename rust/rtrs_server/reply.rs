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
    rtrs::answer::{
        Answer,
        DataWrite, //
    }, //
};
use weft_rdma::{
    dma::Sge,
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
    let parts = Answer::new(slot.chunk, &reply.question.request, status, written, None);
    let (data, remote) = match parts.data {
        Some(data) => (Some(data_of(slot, &data)?), remote_of(&data)),
        None => (None, Remote::NONE),
    };
    if slot.key.is_none() && parts.invalidate.is_none() {
        return chain.write_imm(data, remote, parts.imm);
    }
    if data.is_some() {
        chain.write(data, remote)?;
    }
    if let Some(key) = parts.invalidate {
        chain.send_inv((), key)?;
    }
    let Some(key) = &slot.key else {
        return chain.write_imm((), Remote::NONE, parts.imm);
    };
    let registered = chain.register(&key.region, Access::RemoteWrite)?;
    let message = Answer::key_message(slot.chunk, registered.remote().rkey);
    key.message.write(0, &message)?;
    chain.send_imm(key.message.sge(0, message.len())?, parts.imm)
}

/// The data of an answer, for the device to read.
fn data_of<'o>(slot: &'o Slot, data: &DataWrite) -> Result<Sge<'o>> {
    let length = usize::try_from(data.len)?;
    slot.mapped.sync_for_device(0, length)?;
    slot.mapped.sge(0, length)
}

/// Where the client wants its data.
fn remote_of(data: &DataWrite) -> Remote {
    Remote {
        addr: data.addr,
        rkey: data.rkey,
    }
}

impl Owner for Slot {}
