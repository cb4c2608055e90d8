// SPDX-License-Identifier: GPL-2.0

//! Kernel-free protocol logic: bytes in, decisions out.
//!
//! Everything a peer or a user program can hand to the modules is parsed here, and everything the
//! protocols leave to policy (who connects, which path, when to acknowledge) is decided here. The
//! kernel modules own the sockets, queues and locks and do what this crate says.
//!
//! * No allocation, no locks, no input or output, nothing the compiler cannot check, and no panic on any input.
//! * The same files build twice: into the kernel (`--cfg MODULE`, where kbuild adds `no_std`) and on
//!   the host with cargo, where their unit, property and fuzz tests run.

#![cfg_attr(not(MODULE), no_std)]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod errno;
pub mod rds;
pub mod rnbd;
pub mod rtrs;
pub mod text;
