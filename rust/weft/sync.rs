// SPDX-License-Identifier: GPL-2.0

//! Locks and waiting.

pub mod bh;
pub mod snapshot;
pub mod take;
pub mod wait;
