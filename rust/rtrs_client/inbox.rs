// SPDX-License-Identifier: GPL-2.0

//! The server's answer in the info exchange, between the completion that brings it and the task that waits for it.

use kernel::{
    error::code::EPROTO,
    prelude::*, //
};
use weft::{
    new_spinlock_bh,
    sync::bh::SpinLockBh, //
};

/// Takes in one message.
enum Letter {
    /// None is expected.
    Closed,
    /// One is expected; the room for it.
    Open(KVec<u8>),
    /// It is there.
    Full(KVec<u8>),
}

/// Where the answer is put.
#[pin_data]
pub(crate) struct Inbox {
    #[pin]
    letter: SpinLockBh<Letter>,
}

impl Inbox {
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            letter <- new_spinlock_bh!(Letter::Closed, "rtrs_inbox"),
        })
    }

    /// Expects a message of at most `room` bytes. May sleep.
    pub(crate) fn open(&self, room: usize) -> Result {
        let buffer = KVec::with_capacity(room, GFP_KERNEL)?;
        *self.letter.lock() = Letter::Open(buffer);
        Ok(())
    }

    /// Takes a message in; `EPROTO` if none is expected, or not such a long one. Any context up to softirq.
    pub(crate) fn put(&self, message: &[u8]) -> Result {
        let mut letter = self.letter.lock();
        let mut buffer = match core::mem::replace(&mut *letter, Letter::Closed) {
            Letter::Open(buffer) => buffer,
            other => {
                *letter = other;
                return Err(EPROTO);
            }
        };
        if message.len() > buffer.capacity() {
            return Err(EPROTO);
        }
        for byte in message {
            buffer.push_within_capacity(*byte).map_err(|_| EPROTO)?;
        }
        *letter = Letter::Full(buffer);
        Ok(())
    }

    /// Whether a message is there.
    pub(crate) fn is_full(&self) -> bool {
        matches!(*self.letter.lock(), Letter::Full(_))
    }

    /// Takes the message out.
    pub(crate) fn take(&self) -> Option<KVec<u8>> {
        match core::mem::replace(&mut *self.letter.lock(), Letter::Closed) {
            Letter::Full(buffer) => Some(buffer),
            _ => None,
        }
    }
}
