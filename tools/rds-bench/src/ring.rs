// SPDX-License-Identifier: GPL-2.0

//! Memory to send from without a copy: buffers that are lent to the kernel in turn.
//!
//! A buffer is lent again when it has come back, but it is not written to. Between two network namespaces of one host a
//! message that was not read yet is the sender's memory still, though that has come back already. So each buffer has its
//! number for ever, and the numbers of messages begin again after the last one.

use crate::stamp;
use anyhow::{Context, Result};

/// Buffers of a ring. More than the kernel tells about at once, which is eight, so that it can.
pub(crate) const BUFFERS: u64 = 16;
/// Messages begin at a page, as they would if it matters that they are not copied.
const PAGE: usize = 4096;

/// The buffers. The name of a message is the index of its buffer.
pub(crate) struct Ring(Vec<Buffer>);

struct Buffer {
    name: u32,
    memory: Vec<u8>,
    start: usize,
    lent: bool,
}

impl Ring {
    /// A ring for messages of `size` bytes.
    pub(crate) fn new(size: usize) -> Self {
        Self(
            (0..)
                .take(BUFFERS as usize)
                .map(|name| Buffer::new(name, size))
                .collect(),
        )
    }

    /// The name and the content of a message, unless its buffer is lent.
    pub(crate) fn free(&self, number: u64) -> Option<(u32, &[u8])> {
        // CAST: less than BUFFERS.
        let buffer = self.0.get((number % BUFFERS) as usize)?;
        (!buffer.lent).then(|| (buffer.name, &buffer.memory[buffer.start..]))
    }

    /// The message of this name is lent.
    pub(crate) fn lend(&mut self, name: u32) {
        if let Some(buffer) = self.0.get_mut(name as usize) {
            buffer.lent = true;
        }
    }

    /// The message of this name came back.
    pub(crate) fn take_back(&mut self, name: u32) -> Result<()> {
        let buffer = self.0.get_mut(name as usize);
        let buffer = buffer.filter(|buffer| buffer.lent).with_context(|| {
            format!("zero-copy message {name} came back twice or was never sent")
        })?;
        buffer.lent = false;
        Ok(())
    }

    /// Whether all messages have come back.
    pub(crate) fn is_whole(&self) -> bool {
        !self.0.iter().any(|buffer| buffer.lent)
    }
}

impl Buffer {
    fn new(name: u32, size: usize) -> Self {
        let mut memory = stamp::message(size + PAGE);
        let start = memory.as_ptr().align_offset(PAGE).min(PAGE);
        memory.truncate(start + size);
        stamp::put(&mut memory[start..], name.into());
        Self {
            name,
            memory,
            start,
            lent: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(ring: &Ring, number: u64) -> Option<u32> {
        ring.free(number).map(|(name, _)| name)
    }

    #[test]
    fn buffers_are_used_again_when_they_are_back() {
        let mut ring = Ring::new(10);
        for number in 0..BUFFERS {
            let (name, message) = ring.free(number).unwrap();
            assert!(stamp::matches(message, 10, number) && u64::from(name) == number);
            ring.lend(name);
        }
        assert!(name(&ring, BUFFERS).is_none());
        ring.take_back(1).unwrap();
        assert!(name(&ring, BUFFERS).is_none(), "another one is back");
        ring.take_back(0).unwrap();
        assert!(name(&ring, BUFFERS) == Some(0) && !ring.is_whole());
        (2..16).for_each(|name| ring.take_back(name).unwrap());
        assert!(ring.is_whole());
    }

    #[test]
    fn a_message_comes_back_once() {
        let mut ring = Ring::new(1);
        ring.lend(0);
        assert!(ring.take_back(1).is_err() && ring.take_back(16).is_err());
        assert!(ring.take_back(0).is_ok() && ring.take_back(0).is_err());
    }

    #[test]
    fn messages_begin_at_a_page() {
        for size in [1, PAGE, 1 << 20] {
            let ring = Ring::new(size);
            let (_, message) = ring.free(0).unwrap();
            assert_eq!(
                (message.len(), message.as_ptr().align_offset(PAGE)),
                (size, 0)
            );
        }
    }
}
