// SPDX-License-Identifier: GPL-2.0

//! RDS: reliable datagrams between sockets, carried over a few shared connections per host pair.
//!
//! A sending socket's datagram gets a 48-byte header ([`wire`]) and travels over one of up to eight
//! paths ([`path`]) of the connection between two addresses ([`addr`]). The receiver of a path puts
//! the TCP stream back into messages ([`stream`]), drops what it has seen before ([`window`]) and
//! tells the sender's host which of its ports are congested ([`cong`]). Two hosts agree on who
//! connects to whom by comparing addresses ([`arbitration`]), and on the number of paths with a probe
//! ([`handshake`], [`ext`]). A path's life is a small state machine ([`state`]) with random back-off
//! between attempts ([`backoff`]).
//!
//! What user programs see - numbers, record layouts, counter names - is in [`uapi`], [`info`] and
//! [`counters`].
//!
//! C counterpart: `net/rds/`.

pub mod addr;
pub mod arbitration;
pub mod backoff;
pub mod cong;
pub mod counters;
pub mod ext;
pub mod handshake;
pub mod info;
pub mod path;
pub mod sockaddr;
pub mod state;
pub mod stream;
pub mod uapi;
pub mod window;
pub mod wire;
