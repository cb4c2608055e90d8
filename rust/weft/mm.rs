// SPDX-License-Identifier: GPL-2.0

//! Memory: what the network stack can hold on to, and how to ask for more.

pub mod bytes;
pub mod frags;
pub mod noio;
