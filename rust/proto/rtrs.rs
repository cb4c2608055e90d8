// SPDX-License-Identifier: GPL-2.0

//! RTRS: requests with data between two hosts over RDMA, on several paths at once.
//!
//! A server lends each client a number of equal buffers, the chunks ([`geometry`]), over which the client holds the
//! only say: a request is written into a free one ([`request`]) and announced by an immediate of 32 bits ([`imm`]); the
//! answer comes back as an immediate for the same chunk ([`answer`]). The server sees to it that no two requests use a
//! chunk at a time ([`ownership`]).
//!
//! A session has one or more paths and a path several connections ([`conn`], [`cid`], [`sizes`]); at the beginning of a
//! path the server tells where the chunks are ([`info`]). Heartbeats find a silent peer ([`hb`]), a path's life is a
//! small state machine ([`state`]) with pauses between attempts ([`reconnect`]), and a policy chooses the path of a
//! request ([`policy`]).
//!
//! What users type and read - addresses, names, policies - is in [`addr`], [`name`] and [`policy`].
//!
//! C counterpart: `drivers/infiniband/ulp/rtrs/`.

pub mod addr;
pub mod answer;
pub mod cid;
pub mod conn;
pub mod geometry;
pub mod hb;
pub mod imm;
pub mod info;
pub mod name;
pub mod ownership;
pub mod policy;
pub mod reconnect;
pub mod request;
pub mod sizes;
pub mod state;
pub mod wire;
