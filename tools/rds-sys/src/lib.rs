// SPDX-License-Identifier: GPL-2.0

//! `AF_RDS` sockets and `RDS_INFO` snapshots as Rust types.
//!
//! RDS gives a program reliable, ordered datagrams to any number of peers over one unconnected
//! socket. This crate wraps the system calls a program needs for that, for IPv4 and IPv6, and parses
//! the tables the kernel exports about its sockets, connections and queues. It relies only on the
//! interface of mainline Linux and therefore works with every implementation of it.
//!
//! * [`Socket`] is the socket itself; [`Socket::recv`] returns data, [`Control`] messages or both.
//! * [`poll`] waits for several sockets.
//! * [`info`] takes and parses snapshots.
//! * [`signal`], [`cpu`], [`priority`] and [`connect_from`] are the few services the programs need besides.
//!
//! All `unsafe` code of the workspace is in the private module `sys`, one system call a function.

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("the layouts of times and control messages here are those of 64-bit Linux");

pub mod cpu;
pub mod info;
pub mod priority;
pub mod signal;

mod addr;
mod control;
mod option;
mod poll;
mod socket;
mod sys;
mod tcp;
mod uapi;

pub use addr::source_for;
pub use control::{Control, ControlBuffer, Status};
pub use option::Transport;
pub use poll::{poll, PollFd};
pub use socket::{is_congested, Received, SendFlags, Socket};
pub use tcp::connect_from;
pub use uapi::{MAX_MESSAGE, RESERVED_PORT};
