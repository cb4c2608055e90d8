// SPDX-License-Identifier: GPL-2.0

//! Waiting for sockets.

use crate::{sys, Socket};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// One socket to wait for, and what happened to it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct PollFd<'a> {
    raw: libc::pollfd,
    socket: PhantomData<&'a Socket>,
}

impl<'a> PollFd<'a> {
    /// Waits for `socket` to have something to read (data or notifications) or room for a send.
    pub fn new(socket: &'a Socket, read: bool, write: bool) -> Self {
        let mut events = 0;
        if read {
            events |= libc::POLLIN;
        }
        if write {
            events |= libc::POLLOUT;
        }
        let fd = socket.as_fd().as_raw_fd();
        Self {
            raw: libc::pollfd {
                fd,
                events,
                revents: 0,
            },
            socket: PhantomData,
        }
    }

    /// There is something to read. RDS may say so without reason.
    pub fn readable(&self) -> bool {
        self.raw.revents & (libc::POLLIN | libc::POLLERR | libc::POLLHUP) != 0
    }

    /// There is room for a send, which can fail all the same if the destination is congested.
    pub fn writable(&self) -> bool {
        self.raw.revents & libc::POLLOUT != 0
    }
}

/// Waits until something happens to one of `fds`, a signal arrives (`EINTR`) or the time is over (0).
pub fn poll(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    let mut raw: Vec<libc::pollfd> = fds.iter().map(|fd| fd.raw).collect();
    let count = sys::poll(&mut raw, timeout)?;
    for (fd, raw) in fds.iter_mut().zip(raw) {
        fd.raw = raw;
    }
    Ok(count)
}
