// SPDX-License-Identifier: GPL-2.0

//! Putting messages together from the TCP stream.
//!
//! C counterpart: `net/rds/tcp_recv.c`. Unlike C a message that is longer than any sender may make it is refused when
//! its header arrives, so what a peer can make this host keep is bounded.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rds::{
    incoming::{
        Data,
        Slot,
        Trace, //
    },
    path::Path,
    recv,
    trace::Reason, //
};
use weft::{
    mm::bytes::Bytes,
    net::{
        skb::SkbQueue,
        tcp::{
            GatherSkb,
            SkbChunk, //
        },
    },
    time, //
};
use weft_proto::rds::{
    stream::Reassembly,
    wire::{
        Header,
        CONG_MAP_BYTES,
        HEADER_LEN, //
    },
};

/// Payloads up to this many bytes are copied out of the network buffers: that costs less than keeping those.
const COPY_LIMIT: usize = 512;

/// Pieces of a longer payload up to this many bytes are gathered, so that a peer that sends a message in tiny segments
/// cannot make this host keep a network buffer for each.
const GATHER_LIMIT: usize = 1024;

/// The payload of the message that is being received.
enum Partial {
    /// Copied: the bytes, and how many of them have arrived.
    Copied(Bytes, usize),
    /// Kept as it came.
    Kept(SkbQueue, Option<GatherSkb>),
}

/// What is being received.
#[derive(Default)]
pub(crate) struct Rx {
    reassembly: Reassembly,
    slot: Option<Slot>,
    header: Option<Header>,
    partial: Option<Partial>,
    trace: Trace,
    /// A message whose socket had no room for it; nothing is read before it is delivered.
    pending: Option<recv::Arrival>,
    /// A message was given back, and what came behind it was not all read yet.
    has_waited: bool,
    /// The peer broke the protocol: nothing more of this connection is read.
    refused: bool,
    /// What is left is delivered now, whoever would have to wait for what.
    in_haste: bool,
}

impl Rx {
    /// Begins anew, for another connection; what has not arrived whole is dropped.
    pub(crate) fn reset(&mut self, path: &Path) {
        if let Some(arrival) = &self.pending {
            path.drop_arriving(Reason::Undelivered, Some(&arrival.header));
        } else if !self.refused && self.is_inside() {
            path.drop_arriving(Reason::CutOff, self.header.as_ref());
        }
        *self = Self::default();
    }

    /// Whether the stream is in the middle of a message.
    fn is_inside(&self) -> bool {
        self.header.is_some() || self.reassembly.header_needed() < HEADER_LEN
    }

    /// Whether the peer broke the protocol.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused
    }

    /// All that has come is read.
    pub(crate) fn note_all_read(&mut self) {
        self.has_waited = false;
    }

    /// Whether a message waits to be delivered.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Has what is left delivered even before older messages of another path.
    pub(crate) fn make_haste(&mut self) {
        self.in_haste = true;
    }

    /// A path that is taken down has to deliver what the peer knows to have arrived.
    fn overload(&self, path: &Path) -> recv::Overload {
        if path.is_up() {
            recv::Overload::GiveBack
        } else if self.in_haste {
            recv::Overload::Take
        } else {
            recv::Overload::TakeInOrder
        }
    }

    /// Bytes missing of the header and of the payload.
    pub(crate) fn missing(&self) -> (usize, usize) {
        if self.header.is_some() {
            (0, self.reassembly.data_remaining())
        } else {
            (self.reassembly.header_needed(), 0)
        }
    }

    /// Takes in what has arrived and delivers each message that is whole.
    ///
    /// `ENOMEM`, and `EBUSY` if a socket has no room, leave the rest to be read again. `EPROTO` if the peer broke the
    /// protocol.
    pub(crate) fn read(&mut self, path: &Arc<Path>, chunk: &mut SkbChunk<'_>) -> Result {
        self.retry(path)?;
        while !chunk.is_empty() {
            if self.refused {
                return Err(EPROTO);
            }
            if self.header.is_none() {
                self.read_header(path, chunk)?;
            }
            if self.header.is_some() {
                self.read_payload(chunk)?;
                if self.reassembly.message_complete() {
                    self.deliver(path)?;
                }
            }
        }
        Ok(())
    }

    /// Reads header bytes; sets `header` when it is complete.
    #[inline]
    fn read_header(&mut self, path: &Arc<Path>, chunk: &mut SkbChunk<'_>) -> Result {
        if self.slot.is_none() {
            self.slot = Some(Slot::new(chunk.gfp())?);
            self.trace.header = time::local_clock();
        }
        let mut bytes = [0; HEADER_LEN];
        let wanted = self.reassembly.header_needed().min(chunk.len());
        let bytes = bytes.get_mut(..wanted).ok_or(EINVAL)?;
        chunk.copy_to(bytes)?;
        self.reassembly.push_header(bytes);
        match self.reassembly.take_header() {
            None => Ok(()),
            Some(Ok(header)) => {
                self.header = Some(header);
                self.trace.start = time::local_clock();
                Ok(())
            }
            Some(Err(refusal)) => {
                self.refused = true;
                path.drop_connection(Reason::BadHeader);
                weft::pr_ratelimited!(
                    pr_warn,
                    "RDS/tcp: {} sent a bad header ({:?}), disconnecting\n",
                    weft::fmt::Plain(path.conn.key.peer),
                    refusal
                );
                Err(EPROTO)
            }
        }
    }

    /// Reads payload bytes as far as they have arrived.
    #[inline]
    fn read_payload(&mut self, chunk: &mut SkbChunk<'_>) -> Result {
        let remaining = self.reassembly.data_remaining();
        let len = remaining.min(chunk.len());
        if len == 0 {
            return Ok(());
        }
        let partial = match &mut self.partial {
            Some(partial) => partial,
            None => {
                let is_map = self.header.as_ref().is_some_and(Header::is_congestion_map);
                self.partial.insert(if remaining <= COPY_LIMIT || is_map {
                    Partial::Copied(Bytes::zeroed(remaining, chunk.gfp())?, 0)
                } else {
                    Partial::Kept(SkbQueue::new(), None)
                })
            }
        };
        match partial {
            Partial::Copied(bytes, filled) => {
                let space = bytes.get_mut(*filled..*filled + len).ok_or(EINVAL)?;
                chunk.copy_to(space)?;
                *filled += len;
            }
            Partial::Kept(skbs, gathered) => {
                return keep(skbs, gathered, chunk, len, &mut self.reassembly)
            }
        }
        self.reassembly.consume_data(len);
        Ok(())
    }

    /// Delivers the message that is whole.
    #[inline]
    fn deliver(&mut self, path: &Arc<Path>) -> Result {
        let (Some(header), Some(slot)) = (self.header.take(), self.slot.take()) else {
            return Ok(());
        };
        let partial = self.partial.take();
        self.reassembly.reset();
        let data = match partial {
            Some(Partial::Copied(bytes, _)) => Data::Inline(bytes),
            Some(Partial::Kept(mut skbs, gathered)) => {
                if let Some(gathered) = gathered {
                    skbs.push(gathered.into_skb());
                }
                Data::Skbs(skbs)
            }
            None => Data::Inline(Bytes::EMPTY),
        };
        if header.is_congestion_map() {
            if let Data::Inline(bytes) = &data {
                if bytes.len() == CONG_MAP_BYTES {
                    recv::congestion_map(path, bytes, self.has_waited);
                }
            }
            return Ok(());
        }
        let arrival = recv::Arrival {
            slot,
            source: path.conn.key.peer,
            destination: path.conn.key.local,
            header,
            trace: self.trace,
            data,
        };
        let result = recv::deliver(path, &path.conn.local_map, arrival, self.overload(path));
        self.keep_pending(result)
    }

    /// Offers the message again that its socket had no room for. `EBUSY` if it still has none.
    pub(crate) fn retry(&mut self, path: &Arc<Path>) -> Result {
        match self.pending.take() {
            None => Ok(()),
            Some(arrival) => {
                let overload = self.overload(path);
                let result = recv::redeliver(path, &path.conn.local_map, arrival, overload);
                self.keep_pending(result)
            }
        }
    }

    fn keep_pending(&mut self, result: Result<(), recv::Arrival>) -> Result {
        result.map_err(|arrival| {
            self.pending = Some(arrival);
            self.has_waited = true;
            EBUSY
        })
    }
}

/// Keeps the next `len` bytes: small pieces copied together, large ones and whole messages in the buffer they came in.
fn keep(
    skbs: &mut SkbQueue,
    gathered: &mut Option<GatherSkb>,
    chunk: &mut SkbChunk<'_>,
    len: usize,
    reassembly: &mut Reassembly,
) -> Result {
    let is_whole = skbs.is_empty() && gathered.is_none() && len == reassembly.data_remaining();
    if len > GATHER_LIMIT || is_whole {
        let skb = chunk.extract(len)?;
        if let Some(before) = gathered.take() {
            skbs.push(before.into_skb());
        }
        skbs.push(skb);
        reassembly.consume_data(len);
        return Ok(());
    }
    if gathered
        .as_ref()
        .is_some_and(|gathered| gathered.room() < len)
    {
        if let Some(full) = gathered.take() {
            skbs.push(full.into_skb());
        }
    }
    let target = match gathered {
        Some(target) => target,
        None => gathered.insert(GatherSkb::new(chunk, reassembly.data_remaining())?),
    };
    target.append(chunk, len)?;
    reassembly.consume_data(len);
    Ok(())
}
