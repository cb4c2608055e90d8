// SPDX-License-Identifier: GPL-2.0

//! Memory that the network stack can hold on to.

pub mod bytes;
pub mod frags;
