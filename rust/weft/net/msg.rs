// SPDX-License-Identifier: GPL-2.0

//! What `sendmsg` brings and what `recvmsg` fills in.
//!
//! C header: [`include/linux/socket.h`](srctree/include/linux/socket.h) (`struct msghdr`)
//!
//! [`MsgSource`] and [`MsgDest`] are views of the caller's `struct msghdr` for the duration of the
//! call. Name and control messages of a sender are in kernel memory already; payload and
//! everything a receiver gets are copied to and from user memory, which may sleep.

use crate::bindings;
use core::{
    marker::PhantomData,
    mem::size_of,
    ptr,
    slice, //
};
use kernel::{
    error::to_result,
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    prelude::*, //
};

/// Out-of-band data.
pub const MSG_OOB: u32 = bindings::MSG_OOB;
/// Leave the message in the queue.
pub const MSG_PEEK: u32 = bindings::MSG_PEEK;
/// The message ends here; `write` on a socket of type `SOCK_SEQPACKET` implies it.
pub const MSG_EOR: u32 = bindings::MSG_EOR;
/// No `SIGPIPE` if the connection is gone.
pub const MSG_NOSIGNAL: u32 = bindings::MSG_NOSIGNAL;
/// Control messages were cut off.
pub const MSG_CTRUNC: u32 = bindings::MSG_CTRUNC;
/// The payload was cut off; asked for by the caller, return its full length.
pub const MSG_TRUNC: u32 = bindings::MSG_TRUNC;
/// Do not block.
pub const MSG_DONTWAIT: u32 = bindings::MSG_DONTWAIT;
/// The error queue is meant.
pub const MSG_ERRQUEUE: u32 = bindings::MSG_ERRQUEUE;
/// Send without copying.
pub const MSG_ZEROCOPY: u32 = bindings::MSG_ZEROCOPY;
/// Set in [`MsgSource::flags`] for a caller with the layouts of a 32-bit system; not for protocols.
pub const MSG_CMSG_COMPAT: u32 = bindings::MSG_CMSG_COMPAT;

/// Size of a `struct sockaddr_storage`, the longest address there is.
pub const SOCKADDR_MAX: usize = size_of::<bindings::__kernel_sockaddr_storage>();

/// The message of a `sendmsg` call.
///
/// # Invariants
///
/// `msg` is valid for reads and writes and only used through this view during `'a`. Its iterator
/// is a source. Its name and control memory, if any, are kernel memory that does not change during
/// `'a`, unless `msg_control_is_user` is set.
pub struct MsgSource<'a> {
    msg: *mut bindings::msghdr,
    _msg: PhantomData<&'a mut bindings::msghdr>,
}

impl MsgSource<'_> {
    /// Wraps the message of a `sendmsg` call.
    ///
    /// # Safety
    ///
    /// The type invariants must hold for the lifetime that the caller chooses.
    #[inline]
    pub(super) unsafe fn from_raw(msg: *mut bindings::msghdr) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            msg,
            _msg: PhantomData,
        }
    }

    /// `msg_flags`: what the caller asked for, with [`MSG_DONTWAIT`] set for `O_NONBLOCK`.
    #[inline]
    pub fn flags(&self) -> u32 {
        // SAFETY: Valid for reads by the type invariants.
        unsafe { (*self.msg).msg_flags }
    }

    /// The destination address, if the caller gave one.
    #[inline]
    pub fn name(&self) -> Option<&[u8]> {
        // SAFETY: Valid for reads by the type invariants.
        let (name, len) = unsafe { ((*self.msg).msg_name, (*self.msg).msg_namelen) };
        let len = usize::try_from(len).unwrap_or(0);
        if name.is_null() || len == 0 {
            return None;
        }
        // SAFETY: By the type invariants this is the memory of the address, which does not change.
        Some(unsafe { slice::from_raw_parts(name.cast::<u8>(), len) })
    }

    /// The payload.
    #[inline]
    pub fn iter(&mut self) -> &mut IovIterSource<'_> {
        // SAFETY: By the type invariants the iterator is a valid source during this borrow, and
        // only used through the reference we return.
        unsafe { IovIterSource::from_raw(&raw mut (*self.msg).msg_iter) }
    }

    /// The control messages.
    #[inline]
    pub fn cmsgs(&self) -> Cmsgs<'_> {
        // SAFETY: Valid for reads by the type invariants; both members of the union are pointers.
        let (control, len, user) = unsafe {
            (
                (*self.msg).__bindgen_anon_1.msg_control,
                (*self.msg).msg_controllen,
                (*self.msg).msg_control_is_user(),
            )
        };
        if control.is_null() || user {
            return Cmsgs { rest: &[] };
        }
        Cmsgs {
            // SAFETY: By the type invariants this is kernel memory that does not change.
            rest: unsafe { slice::from_raw_parts(control.cast::<u8>(), len) },
        }
    }
}

/// One control message of a sender.
#[derive(Clone, Copy)]
pub struct Cmsg<'a> {
    /// The protocol it is for.
    pub level: i32,
    /// What it is, among those of its level.
    pub ty: i32,
    /// Its payload.
    pub data: &'a [u8],
}

/// Iterates over control messages as `for_each_cmsghdr` does.
///
/// A message whose length does not fit (not `CMSG_OK`) is an `EINVAL` and the end.
#[derive(Clone)]
pub struct Cmsgs<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Cmsgs<'a> {
    type Item = Result<Cmsg<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        const HEADER: usize = size_of::<bindings::cmsghdr>();

        // The fields of `struct cmsghdr`; less than that is no message any more.
        let (len, fields) = self.rest.split_first_chunk::<{ size_of::<usize>() }>()?;
        let (level, fields) = fields.split_first_chunk::<{ size_of::<i32>() }>()?;
        let (ty, _) = fields.split_first_chunk::<{ size_of::<i32>() }>()?;
        let len = usize::from_ne_bytes(*len);

        let Some(data) = self.rest.get(HEADER..len) else {
            self.rest = &[];
            return Some(Err(EINVAL));
        };
        let next = len.next_multiple_of(size_of::<usize>());
        self.rest = self.rest.get(next..).unwrap_or(&[]);
        Some(Ok(Cmsg {
            level: i32::from_ne_bytes(*level),
            ty: i32::from_ne_bytes(*ty),
            data,
        }))
    }
}

/// The message that a `recvmsg` call fills in.
///
/// # Invariants
///
/// `msg` is valid for reads and writes and only used through this view during `'a`. Its iterator
/// is a destination that had `start` bytes left when this view was made. `msg_name`, if not null,
/// has room for [`SOCKADDR_MAX`] bytes.
pub struct MsgDest<'a> {
    msg: *mut bindings::msghdr,
    start: usize,
    _msg: PhantomData<&'a mut bindings::msghdr>,
}

impl MsgDest<'_> {
    /// Wraps the message of a `recvmsg` call.
    ///
    /// # Safety
    ///
    /// The type invariants must hold for the lifetime that the caller chooses.
    #[inline]
    pub(super) unsafe fn from_raw(msg: *mut bindings::msghdr) -> Self {
        // SAFETY: The caller gives a message whose iterator is a valid destination.
        let start = unsafe { IovIterDest::from_raw(&raw mut (*msg).msg_iter) }.len();
        // INVARIANT: By the safety requirements.
        Self {
            msg,
            start,
            _msg: PhantomData,
        }
    }

    /// The C object.
    #[inline]
    pub(super) fn as_raw(&mut self) -> *mut bindings::msghdr {
        self.msg
    }

    /// The room for the payload.
    #[inline]
    pub fn iter(&mut self) -> &mut IovIterDest<'_> {
        // SAFETY: By the type invariants the iterator is a valid destination during this borrow,
        // and only used through the reference we return.
        unsafe { IovIterDest::from_raw(&raw mut (*self.msg).msg_iter) }
    }

    /// Goes back to where the payload started, so that another message can be copied there.
    pub fn rewind(&mut self) {
        let start = self.start;
        let iter = self.iter();
        let used = start.saturating_sub(iter.len());
        // SAFETY: By the type invariants the iterator had `start` bytes left once and has only
        // been moved forward since, so `used` goes back exactly there.
        unsafe { iter.revert(used) };
    }

    /// Whether the caller wants to know the sender's address.
    #[inline]
    pub fn wants_name(&self) -> bool {
        // SAFETY: Valid for reads by the type invariants.
        !unsafe { (*self.msg).msg_name }.is_null()
    }

    /// Tells the caller the sender's address, if it wants to know. At most [`SOCKADDR_MAX`] bytes.
    #[inline]
    pub fn set_name(&mut self, name: &[u8]) {
        let len = name.len().min(SOCKADDR_MAX);
        if !self.wants_name() {
            return;
        }
        // SAFETY: By the type invariants there is room for `SOCKADDR_MAX` bytes, in memory that
        // `name`, which safe code made, cannot be part of.
        unsafe { ptr::copy_nonoverlapping(name.as_ptr(), (*self.msg).msg_name.cast::<u8>(), len) };
        // CAST: At most `SOCKADDR_MAX`.
        // SAFETY: Valid for writes by the type invariants.
        unsafe { (*self.msg).msg_namelen = len as i32 };
    }

    /// Sets flags in `msg_flags`: of those in the parameter, [`MSG_TRUNC`], [`MSG_CTRUNC`],
    /// [`MSG_OOB`] and [`MSG_ERRQUEUE`], which is all that a protocol reports.
    #[inline]
    pub fn flags_or(&mut self, flags: u32) {
        let flags = flags & (MSG_TRUNC | MSG_CTRUNC | MSG_OOB | MSG_ERRQUEUE);
        // SAFETY: Valid for writes by the type invariants.
        unsafe { (*self.msg).msg_flags |= flags };
    }

    /// Whether the caller gave room for control messages.
    #[inline]
    pub fn has_control(&self) -> bool {
        // SAFETY: Valid for reads by the type invariants; both members of the union are pointers.
        !unsafe { (*self.msg).__bindgen_anon_1.msg_control }.is_null()
    }

    /// The room left for control messages, headers included.
    #[inline]
    pub fn controllen(&self) -> usize {
        // SAFETY: Valid for reads by the type invariants.
        unsafe { (*self.msg).msg_controllen }
    }

    /// Adds a control message. May sleep.
    ///
    /// One that does not fit is cut off or left out, and [`MSG_CTRUNC`] is set: that is no error.
    /// `EFAULT` if the caller's memory is not writable. `data` must not lie in a socket's state,
    /// from which hardened kernels refuse to copy to user memory.
    pub fn put_cmsg(&mut self, level: i32, ty: i32, data: &[u8]) -> Result {
        let len = i32::try_from(data.len())?;
        // SAFETY: `msg` is valid by the type invariants; `data` is only read.
        to_result(unsafe {
            bindings::put_cmsg(self.msg, level, ty, len, data.as_ptr().cast_mut().cast())
        })
    }

    /// Adds a `SO_TIMESTAMP` control message for `nanoseconds` since 1970, in the format of
    /// `SO_TIMESTAMP_NEW` if `new_format` (see [`Sock::tstamp_new_flag`]). May sleep.
    ///
    /// [`Sock::tstamp_new_flag`]: super::sock::Sock::tstamp_new_flag
    pub fn put_timestamp(&mut self, nanoseconds: i64, new_format: bool) -> Result {
        const NSEC_PER_SEC: i64 = 1_000_000_000;
        const NSEC_PER_USEC: i64 = 1_000;

        let seconds = nanoseconds.div_euclid(NSEC_PER_SEC);
        let micros = nanoseconds.rem_euclid(NSEC_PER_SEC) / NSEC_PER_USEC;
        let level = bindings::SOL_SOCKET as i32;
        if new_format {
            let data = [seconds.to_ne_bytes(), micros.to_ne_bytes()];
            self.put_cmsg(
                level,
                bindings::SO_TIMESTAMP_NEW as i32,
                data.as_flattened(),
            )
        } else {
            // CAST: The old format has `long`s, which may be too short for the seconds.
            let data = [
                (seconds as isize).to_ne_bytes(),
                (micros as isize).to_ne_bytes(),
            ];
            self.put_cmsg(
                level,
                bindings::SO_TIMESTAMP_OLD as i32,
                data.as_flattened(),
            )
        }
    }
}
