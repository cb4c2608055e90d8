// SPDX-License-Identifier: GPL-2.0

//! Snapshots for `rds-info`: `getsockopt` with the options from 10000 on.
//!
//! C counterpart: `net/rds/info.c`. A snapshot is made twice: first only counted, then, with memory for what was
//! counted, filled. So nothing is allocated under the locks of what is listed, and no user page is pinned.

use crate::{
    info_lists,
    sock::UserSock, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};
use weft::net::sockopt::OptOut;

/// Records that may come into being between counting and filling, besides a quarter of those that were counted.
const SLACK: usize = 16;

/// How often a list that grows meanwhile is tried.
const TRIES: usize = 8;

/// The largest buffer, as in C: one page less than an `int` can say.
const MOST_ROOM: usize = i32::MAX as usize - PAGE_SIZE + 1;

/// Takes the records of a snapshot.
pub struct Sink {
    bytes: KVVec<u8>,
    record: usize,
    count: usize,
}

impl Sink {
    fn with_capacity(bytes: usize) -> Result<Self> {
        Ok(Self {
            bytes: KVVec::with_capacity(bytes, GFP_KERNEL)?,
            record: 0,
            count: 0,
        })
    }

    /// Says how long one record is; every list does, also an empty one.
    pub fn begin<T>(&mut self) {
        self.record = size_of::<T>();
    }

    /// Adds a record: counts it, and keeps it if there is memory. Any context.
    pub fn push<T: zerocopy::IntoBytes + zerocopy::Immutable>(&mut self, record: &T) {
        self.count += 1;
        let bytes = record.as_bytes();
        if self.bytes.capacity() - self.bytes.len() < bytes.len() {
            return;
        }
        // There is capacity, as was just checked, so this does not allocate.
        let _ = self.bytes.extend_from_slice(bytes, GFP_ATOMIC);
    }

    fn total(&self) -> usize {
        self.record.saturating_mul(self.count)
    }

    fn is_complete(&self) -> bool {
        self.bytes.len() == self.total()
    }
}

/// Answers an information option; returns the size of one record. Sleeps.
///
/// `ENOSPC` if the buffer is too small; the length needed is told in any case. `ENOPROTOOPT` for an unknown option.
pub(crate) fn get(sk: &UserSock, option: i32, val: &mut OptOut<'_>) -> Result<i32> {
    let room = usize::try_from(val.len()).map_err(|_| EINVAL)?;
    if room > MOST_ROOM {
        return Err(EINVAL);
    }
    if !val.is_user_backed() {
        return Err(EOPNOTSUPP);
    }
    let mut sink = Sink::with_capacity(0)?;
    info_lists::fill(sk, option, &mut sink).ok_or(ENOPROTOOPT)?;
    for _ in 0..TRIES {
        if sink.total() > room || sink.is_complete() {
            break;
        }
        let records = sink
            .count
            .saturating_add(sink.count / 4)
            .saturating_add(SLACK);
        let wanted = records.saturating_mul(sink.record);
        sink = Sink::with_capacity(wanted)?;
        info_lists::fill(sk, option, &mut sink).ok_or(ENOPROTOOPT)?;
    }
    val.set_len(i32::try_from(sink.total())?);
    if sink.total() > room {
        return Err(ENOSPC);
    }
    if !sink.is_complete() {
        return Err(EAGAIN);
    }
    val.write(&sink.bytes)?;
    Ok(i32::try_from(sink.record)?)
}
