// SPDX-License-Identifier: GPL-2.0

//! TCP sockets of the kernel.
//!
//! C headers: [`include/linux/net.h`](srctree/include/linux/net.h), [`include/net/sock.h`](srctree/include/net/sock.h),
//! [`include/net/tcp.h`](srctree/include/net/tcp.h)
//!
//! * A [`KernelSocket`] is the unique owner of a connection's socket. It does not keep its namespace alive but must
//!   be gone before the namespace is; it is dropped in process context.
//! * [`KernelSocket::attach`] makes it an [`Attached`] one, whose owner hears from TCP ([`TcpCallbacks`]).
//! * A [`Listener`] accepts connections. It lives in a namespace without keeping it alive.
//! * The state of a connection is read through [`TcpSk`]. What needs TCP's lock on the socket is a method of a token
//!   that implies the lock: [`LockedSk`] in process context, [`CallbackSk`] in a callback.

mod addr;
mod callbacks;
mod gather;
mod hook;
mod listener;
mod read;
mod send;
mod sk;
mod socket;

pub use addr::{
    Family,
    SocketAddr6, //
};
pub use callbacks::{
    Attached,
    CallbackSk,
    TcpCallbacks, //
};
pub use gather::GatherSkb;
pub use listener::{
    ListenCallbacks,
    Listener, //
};
pub use read::SkbChunk;
pub use send::Unsent;
pub use sk::{
    TcpSk,
    TcpState, //
};
pub use socket::{
    KernelSocket,
    LockedSk,
    Shutdown, //
};

use crate::bindings;

/// The smallest send buffer that can be asked for, in bytes.
pub const MIN_SNDBUF: i32 = bindings::WEFT_SOCK_MIN_SNDBUF;

/// The smallest receive buffer that can be asked for, in bytes.
pub const MIN_RCVBUF: i32 = bindings::WEFT_SOCK_MIN_RCVBUF;
