// SPDX-License-Identifier: GPL-2.0

//! What messages consist of: a header that says who sent it as what, and a part of the pattern.
//!
//! Messages shorter than a header consist of [`FILLER`] alone.

use crate::memory::pattern;
use crate::name::Name;
use std::net::Ipv6Addr;

/// Bytes of a header.
pub(crate) const HEADER: usize = 64;
/// The only byte of messages without a header.
pub(crate) const FILLER: u8 = 0xa5;

const MAGIC: u64 = 0x5745_4654_4341_4c4c;
/// Where in the pattern bodies may start.
pub(crate) const STARTS: usize = 65536;

/// Who sent a message as what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    /// The socket.
    pub(crate) sender: u32,
    /// The thread that sent it; all of one thread and socket are in order.
    pub(crate) thread: u32,
    /// Its number among those of this thread and socket.
    pub(crate) number: u32,
    /// The bytes of the message, with the header.
    pub(crate) len: u32,
    /// Where in the pattern its body starts.
    pub(crate) start: u32,
    /// Where it was sent to; None: to where the socket was connected to.
    pub(crate) to: Option<Name>,
}

impl Header {
    /// As it is sent.
    pub(crate) fn bytes(&self) -> [u8; HEADER] {
        let mut raw = [0; HEADER];
        raw[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        let port = self.to.map_or(u32::MAX, |to| u32::from(to.port));
        let words = [
            self.sender,
            self.thread,
            self.number,
            self.len,
            self.start,
            port,
            self.to.map_or(0, |to| to.scope),
        ];
        for (at, word) in raw[8..36].chunks_exact_mut(4).zip(words) {
            at.copy_from_slice(&word.to_ne_bytes());
        }
        raw[36..52].copy_from_slice(&self.to.map_or([0; 16], |to| to.ip.octets()));
        let sum = sum(&raw[..56]);
        raw[56..].copy_from_slice(&sum.to_ne_bytes());
        raw
    }

    fn parse(raw: &[u8]) -> Option<Self> {
        let word = |at: usize| raw.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let ip: [u8; 16] = raw.get(36..52)?.try_into().ok()?;
        if raw.get(..8)? != MAGIC.to_ne_bytes()
            || raw.get(56..HEADER)? != sum(&raw[..56]).to_ne_bytes()
        {
            return None;
        }
        let to = u16::try_from(word(28)?).ok().zip(word(32));
        Some(Self {
            sender: word(8)?,
            thread: word(12)?,
            number: word(16)?,
            len: word(20)?,
            start: word(24)?,
            to: to.map(|(port, scope)| Name {
                ip: Ipv6Addr::from(ip),
                port,
                scope,
            }),
        })
    }
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What was received.
pub(crate) enum Content {
    /// A message with a header.
    Known(Header),
    /// One without, or of which too little was read to tell.
    Filler,
}

/// Makes out what the first bytes of a message are; `whole` if they are all of it.
pub(crate) fn parse(data: &[u8], whole: bool) -> Result<Content, String> {
    if data.iter().all(|byte| *byte == FILLER) && data.len() < HEADER {
        return Ok(Content::Filler);
    }
    if data.len() < HEADER && !whole {
        let known = data.len().min(8);
        return match data[..known] == MAGIC.to_ne_bytes()[..known] {
            true => Ok(Content::Filler),
            false => Err(format!("begins with {:02x?}", &data[..known])),
        };
    }
    let header = Header::parse(data).ok_or_else(|| {
        format!(
            "{} bytes, no header: {:02x?}",
            data.len(),
            &data[..data.len().min(72)]
        )
    })?;
    // CAST: To a wider type.
    let (len, start) = (header.len as usize, header.start as usize);
    if data.len() > len || (whole && data.len() != len) {
        return Err(format!("{} bytes of a message of {len}", data.len()));
    }
    let body = &data[HEADER..];
    match pattern().get(start..start + body.len()) == Some(body) {
        true => Ok(Content::Known(header)),
        false => Err(format!("{header:?} has another body")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(to: Option<Name>) -> Header {
        Header {
            sender: 1,
            thread: 2,
            number: 3,
            len: 164,
            start: 4,
            to,
        }
    }

    fn message(header: Header) -> Vec<u8> {
        [&header.bytes()[..], &pattern()[4..104]].concat()
    }

    #[test]
    fn what_is_written_can_be_read() {
        for to in [
            None,
            Some(Name {
                ip: Ipv6Addr::LOCALHOST,
                port: 4000,
                scope: 7,
            }),
        ] {
            let Ok(Content::Known(got)) = parse(&message(header(to)), true) else {
                panic!("not known");
            };
            assert_eq!(got, header(to));
        }
    }

    #[test]
    fn parts_are_fine_if_the_rest_was_cut_off() {
        let whole = message(header(None));
        for len in [0, 5, 63, 64, 100] {
            assert!(parse(&whole[..len], false).is_ok());
            assert_eq!(parse(&whole[..len], true).is_ok(), len == 0);
        }
    }

    #[test]
    fn a_wrong_byte_is_noticed() {
        for at in [0, 9, 30, 63, 64, 163] {
            let mut whole = message(header(None));
            whole[at] ^= 1;
            assert!(parse(&whole, true).is_err());
        }
        assert!(parse(&[FILLER, FILLER, 0], true).is_err());
        assert!(parse(&[FILLER; 20], true).is_ok());
    }
}
