// SPDX-License-Identifier: GPL-2.0

//! Networking: sockets of an own protocol family, kernel TCP sockets, namespaces, sysctl tables.

mod family;
mod life;
pub mod msg;
pub mod ns;
mod ops;
pub mod poll;
pub mod proto;
pub mod route;
pub mod skb;
pub mod sock;
pub mod socket;
pub mod sockopt;
pub mod sysctl;
pub mod tcp;
