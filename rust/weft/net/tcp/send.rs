// SPDX-License-Identifier: GPL-2.0

//! Sending on a TCP connection.
//!
//! C: `tcp_sendmsg_locked` in [`net/ipv4/tcp.c`](srctree/net/ipv4/tcp.c)
//!
//! Small things are copied. Payload in a [`PageList`] is not: TCP takes references of the pages and sends from them until
//! the peer has acknowledged the bytes. If a user changes them meanwhile, the peer gets the one or the other.
//!
//! Nothing here waits for room in the send buffer: what does not fit is not taken, and `EAGAIN` means that nothing fit.

use super::{
    KernelSocket,
    LockedSk, //
};
use crate::{
    bindings,
    mm::pages::PageList, //
};
use kernel::{
    ffi::c_ulong,
    prelude::*, //
};

/// Never wait, never raise a signal.
const FLAGS: u32 = bindings::MSG_DONTWAIT | bindings::MSG_NOSIGNAL;

/// The bytes of one message that are still to be sent: the rest of a header and of the payload behind it.
pub struct Unsent<'a> {
    /// What is left of the header; copied.
    pub head: &'a [u8],
    /// What is left of a payload that is copied, too.
    pub copied: &'a [u8],
    /// The payload; sent from where it is.
    pub body: Option<PageList<'a>>,
    /// How much of the payload was sent before.
    pub body_offset: usize,
    /// Whether more follows at once, so that a partial segment may wait for it.
    pub more: bool,
}

impl LockedSk<'_> {
    /// Copies `first` and then `second` into the send buffer, as far as they fit, and returns how many bytes did.
    #[inline]
    pub fn send_copy(&mut self, first: &[u8], second: &[u8], more: bool) -> Result<usize> {
        let len = first.len() + second.len();
        if len == 0 {
            return Ok(0);
        }
        let vecs = [first, second].map(|bytes| bindings::kvec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        });
        let mut msg = message(if more { bindings::MSG_MORE } else { 0 });
        // SAFETY: `vecs` describes the two slices, which the iterator only reads, during the call below.
        unsafe {
            bindings::iov_iter_kvec(
                &mut msg.msg_iter,
                bindings::ITER_SOURCE,
                vecs.as_ptr(),
                // CAST: Two.
                vecs.len() as c_ulong,
                len,
            )
        };
        // SAFETY: The iterator has this many bytes.
        unsafe { self.send(&mut msg, len) }
    }

    /// Sends the bytes of `pages` from `offset` on without copying, as far as they fit, and returns how many did.
    #[inline]
    pub fn send_pages(&mut self, pages: PageList<'_>, offset: usize, more: bool) -> Result<usize> {
        let Some(left @ 1..) = pages.len().checked_sub(offset) else {
            return Ok(0);
        };
        let vecs = pages.bvecs();
        let more = if more { bindings::MSG_MORE } else { 0 };
        let mut msg = message(bindings::MSG_SPLICE_PAGES | more);
        // SAFETY: The iterator goes over the fragments, which have `pages.len()` bytes and are borrowed during the call
        // below, and skips `offset` of them, which is less. The pages are referenced and no slab pages.
        unsafe {
            bindings::iov_iter_bvec(
                &mut msg.msg_iter,
                bindings::ITER_SOURCE,
                vecs.as_ptr(),
                // CAST: Both have the size of a machine word.
                vecs.len() as c_ulong,
                pages.len(),
            );
            if offset > 0 {
                bindings::iov_iter_advance(&mut msg.msg_iter, offset);
            }
        }
        // SAFETY: The iterator has this many bytes left.
        unsafe { self.send(&mut msg, left) }
    }

    /// Sends a message or what is left of it, as far as it fits, and returns how many bytes did.
    ///
    /// After an error some bytes may have been taken; the error comes back with the next call.
    #[inline]
    pub fn send_message(&mut self, message: &Unsent<'_>) -> Result<usize> {
        let body = message.body.filter(|body| message.body_offset < body.len());
        let head = self.send_copy(message.head, message.copied, message.more || body.is_some())?;
        if head < message.head.len() + message.copied.len() {
            return Ok(head);
        }
        let Some(body) = body else {
            return Ok(head);
        };
        match self.send_pages(body, message.body_offset, message.more) {
            Ok(sent) => Ok(head + sent),
            // The header is on its way.
            Err(_) if head > 0 => Ok(head),
            Err(error) => Err(error),
        }
    }

    /// # Safety
    ///
    /// The iterator of `msg` must be readable during the call and have `len` bytes.
    #[inline]
    unsafe fn send(&mut self, msg: &mut bindings::msghdr, len: usize) -> Result<usize> {
        // SAFETY: The socket is a valid TCP socket, locked by us; the caller vouches for the message.
        let sent = unsafe {
            bindings::weft_helper_sock_rps_record_flow(self.as_raw());
            bindings::tcp_sendmsg_locked(self.as_raw(), msg, len)
        };
        usize::try_from(sent).map_err(|_| Error::from_errno(sent))
    }
}

impl KernelSocket {
    /// Locks the socket and sends a message or what is left of it, as [`LockedSk::send_message`] does.
    #[inline]
    pub fn send_message(&self, message: &Unsent<'_>) -> Result<usize> {
        self.lock().send_message(message)
    }
}

/// A message header with the given flags and no data yet.
#[inline]
fn message(flags: u32) -> bindings::msghdr {
    bindings::msghdr {
        msg_flags: FLAGS | flags,
        ..Default::default()
    }
}
