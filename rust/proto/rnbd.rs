// SPDX-License-Identifier: GPL-2.0

//! RNBD: block devices of another host, over RTRS.
//!
//! A client opens a device by its path on the server ([`path`]) and learns what the device can do ([`limits`]); from then
//! on it sends what its block layer wants ([`message`], [`op`]). The server decides who may open a device how
//! ([`access`]). What users type to map a device is in [`options`] and [`control`].
//!
//! C counterpart: `drivers/block/rnbd/`.

pub mod access;
pub mod control;
pub mod limits;
pub mod message;
pub mod op;
pub mod options;
pub mod path;
pub mod wire;
