// SPDX-License-Identifier: GPL-2.0

//! A receiver of the stream, as the kernel module is one: pieces in, messages out.

use weft_proto::rds::{
    stream::{
        Reassembly,
        Refusal, //
    },
    wire::Header, //
};

/// Messages of a stream so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    stream: Reassembly,
    current: Option<(Header, Vec<u8>)>,
    /// Complete messages.
    pub(crate) messages: Vec<(Header, Vec<u8>)>,
}

impl PartialEq for Receiver {
    fn eq(&self, other: &Self) -> bool {
        self.messages == other.messages && self.rest() == other.rest()
    }
}

impl Receiver {
    /// Takes one piece of the stream.
    pub(crate) fn receive(&mut self, mut piece: &[u8]) -> Result<(), Refusal> {
        while !piece.is_empty() {
            if self.current.is_none() {
                piece = &piece[self.stream.push_header(piece)..];
            }
            if let Some(header) = self.stream.take_header() {
                self.current = Some((header?, Vec::new()));
            }
            if let Some((_, data)) = &mut self.current {
                let n = piece.len().min(self.stream.data_remaining());
                data.extend(&piece[..n]);
                self.stream.consume_data(n);
                piece = &piece[n..];
            }
            if self.stream.message_complete() {
                self.messages.extend(self.current.take());
                self.stream.reset();
            }
        }
        Ok(())
    }

    /// What the stream stopped in: the message begun, header and payload bytes missing.
    pub(crate) fn rest(&self) -> (Option<&(Header, Vec<u8>)>, usize, usize) {
        let stream = &self.stream;
        (
            self.current.as_ref(),
            stream.header_needed(),
            stream.data_remaining(),
        )
    }
}
