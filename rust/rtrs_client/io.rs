// SPDX-License-Identifier: GPL-2.0

//! A request of the session's user.
//!
//! C counterpart: the arguments of `rtrs_clt_request`.

use kernel::prelude::*;
use weft::block::mq::Request;

/// Longest message of a user in a request, in bytes: short, because a request is passed on by value.
pub const MAX_MESSAGE: usize = 32;

/// Which way the data of a request goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the server.
    Read,
    /// To the server.
    Write,
}

/// Which connection carries a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queue {
    /// The connection of this CPU.
    Cpu(u32),
    /// This poll connection; its answers are seen by `Session::poll` only.
    Poll(u32),
    /// The connection for messages; `Session::call` is what uses it.
    Admin,
}

/// A message of a user, by value.
#[derive(Clone, Copy)]
pub struct Message {
    bytes: [u8; MAX_MESSAGE],
    len: u8,
}

impl Message {
    /// No message.
    pub const EMPTY: Self = Self {
        bytes: [0; MAX_MESSAGE],
        len: 0,
    };

    /// A copy of `bytes`; `EMSGSIZE` if there are more than [`MAX_MESSAGE`].
    pub fn new(bytes: &[u8]) -> Result<Self> {
        let mut message = Self {
            bytes: [0; MAX_MESSAGE],
            len: u8::try_from(bytes.len()).map_err(|_| EMSGSIZE)?,
        };
        let to = message.bytes.get_mut(..bytes.len()).ok_or(EMSGSIZE)?;
        to.copy_from_slice(bytes);
        Ok(message)
    }

    /// The message.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// A request: a block request with the message that tells the server what to do.
///
/// The block request is completed by the session, or goes back to its user with the error of `Session::submit`.
pub struct Io {
    /// The chunk of the server that the request uses: the block layer's tag plus [`Attrs::admin`].
    ///
    /// Two requests with one slot must not be in flight at a time; `EBUSY` says that they are.
    ///
    /// [`Attrs::admin`]: crate::session::Attrs::admin
    pub slot: u16,
    /// Which way the data goes. A request without data is a read or a write as its user's protocol says.
    pub direction: Direction,
    /// Whether the data of the block request travels. `false` for flush, discard and their like.
    pub has_data: bool,
    /// Which connection to use.
    pub queue: Queue,
    /// For the server.
    pub message: Message,
    /// `Session::life` at the time when what is in the message was learned from the server.
    ///
    /// A request whose life is over is never sent: `submit` puts it back to its queue, so that it is made anew.
    pub life: u32,
    /// What to complete.
    pub request: Request,
}
