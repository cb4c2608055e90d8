// SPDX-License-Identifier: GPL-2.0

//! The control messages of `sendmsg`.
//!
//! C counterpart: `rds_rm_size` and `rds_cmsg_send` in `net/rds/send.c`. No transport of this version has RDMA; the
//! messages that ask for it are checked as far as that decides on the error.

use crate::{
    sendmsg::transport,
    sock::UserSock,
    transport::Kind, //
};
use kernel::{
    prelude::*,
    uaccess::{
        UserPtr,
        UserSlice, //
    },
};
use weft::net::msg::{
    MsgSource,
    MSG_ZEROCOPY, //
};
use weft_proto::rds::uapi::{
    self,
    cmsg, //
};

/// Bytes of `struct rds_rdma_args`, and where in it the fields are that decide on errors.
const RDMA_ARGS_LEN: usize = 56;
const RDMA_ARGS_REMOTE_BYTES: usize = 16;
const RDMA_ARGS_LOCAL: usize = 24;
const RDMA_ARGS_NR_LOCAL: usize = 32;
/// Bytes of `struct rds_iovec`: an address and a length.
const IOVEC_LEN: u64 = 16;
/// Bytes of `struct rds_get_mr_args`.
const RDMA_MAP_LEN: usize = 32;
/// Bytes of `struct rds_atomic_args`.
const ATOMIC_LEN: usize = 72;
/// Local vectors of one RDMA operation (`UIO_MAXIOV`).
const RDMA_ARGS_MAX_LOCAL: u64 = 1024;

/// Looks at the local vectors of an RDMA operation, which the user has at `address`. Sleeps.
///
/// `EFAULT` if they cannot be read, `EINVAL` if one is empty, wraps around, or is longer than 4 GiB.
fn check_vectors(address: u64, count: u64) -> Result {
    let len = usize::try_from(count * IOVEC_LEN)?;
    let address = usize::try_from(address)?;
    let mut reader = UserSlice::new(UserPtr::from_addr(address), len).reader();
    for _ in 0..count {
        let (start, bytes): (u64, u64) = (reader.read()?, reader.read()?);
        let end = start.wrapping_add(bytes);
        if end <= start || bytes > u64::from(u32::MAX) {
            return Err(EINVAL);
        }
    }
    Ok(())
}

/// What the control messages of RDS ask for.
#[derive(Default)]
pub(crate) struct Operations {
    /// Bytes that an RDMA operation says to move.
    pub(crate) remote_bytes: usize,
    wants_rdma: bool,
    /// What the sender wants to be told when the memory of a zero-copy message is free again.
    pub(crate) zerocopy_cookie: Option<u32>,
    error: Option<Error>,
    /// An error that comes once the connection is known.
    late_error: Option<Error>,
}

impl Operations {
    /// Parses the control messages. `EINVAL` if one is malformed.
    #[inline]
    pub(crate) fn parse(msg: &MsgSource<'_>) -> Result<Self> {
        let mut this = Self::default();
        let (mut first_group, mut second_group) = (false, false);
        for control in msg.cmsgs() {
            let control = control?;
            if control.level != uapi::SOL_RDS {
                continue;
            }
            match control.ty {
                cmsg::RDMA_ARGS => {
                    first_group = true;
                    this.rdma_args(control.data)?;
                }
                cmsg::ATOMIC_CSWP
                | cmsg::ATOMIC_FADD
                | cmsg::MASKED_ATOMIC_CSWP
                | cmsg::MASKED_ATOMIC_FADD => {
                    first_group = true;
                    this.operation(control.data, ATOMIC_LEN);
                }
                cmsg::RDMA_DEST => {
                    second_group = true;
                    // It names a memory region, and this socket has none.
                    this.late_error = Some(EINVAL);
                }
                cmsg::RDMA_MAP => {
                    second_group = true;
                    this.operation(control.data, RDMA_MAP_LEN);
                }
                cmsg::ZCOPY_COOKIE => {
                    second_group = true;
                    match control.data.first_chunk() {
                        Some(cookie) => this.zerocopy_cookie = Some(u32::from_ne_bytes(*cookie)),
                        None => this.error = Some(EINVAL),
                    }
                }
                _ => this.error = Some(EINVAL),
            }
        }
        if first_group && second_group {
            this.error = Some(EINVAL);
        }
        Ok(this)
    }

    /// Notes an operation that no transport of this version has; a second or malformed one is an error of its own.
    fn operation(&mut self, data: &[u8], len: usize) {
        if self.wants_rdma || data.len() < len {
            self.late_error = Some(EINVAL);
        }
        self.wants_rdma = true;
    }

    /// Looks into the arguments of an RDMA operation, as far as they decide on errors.
    fn rdma_args(&mut self, data: &[u8]) -> Result {
        let field = |offset: usize| -> Result<u64> {
            let bytes = data.get(offset..offset + 8).ok_or(EINVAL)?;
            Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| EINVAL)?))
        };
        if data.len() < RDMA_ARGS_LEN {
            return Err(EINVAL);
        }
        self.operation(data, RDMA_ARGS_LEN);
        let bytes = usize::try_from(field(RDMA_ARGS_REMOTE_BYTES)?)?;
        self.remote_bytes = self.remote_bytes.saturating_add(bytes);
        let checked = match field(RDMA_ARGS_NR_LOCAL)? {
            0 => Err(EINVAL),
            count if count > RDMA_ARGS_MAX_LOCAL => Err(EMSGSIZE),
            count => check_vectors(field(RDMA_ARGS_LOCAL)?, count),
        };
        if let Err(error) = checked {
            self.error = self.error.or(Some(error));
        }
        Ok(())
    }

    /// Errors that come after those of the size and before those of memory.
    #[inline]
    pub(crate) fn check(&self, sk: &UserSock, msg: &MsgSource<'_>) -> Result {
        if msg.flags() & MSG_ZEROCOPY != 0 {
            if sk.zerocopy_flag() && transport(sk)?.kind() != Kind::Tcp {
                return Err(EOPNOTSUPP);
            }
            if self.zerocopy_cookie.is_none() {
                return Err(EINVAL);
            }
        }
        self.error.map_or(Ok(()), Err)
    }

    /// Errors that come once the connection is known: no transport of this version has RDMA, and only a `zerocopy`
    /// message has a cookie.
    #[inline]
    pub(crate) fn refuse(&self, zerocopy: bool) -> Result {
        if let Some(error) = self.late_error {
            return Err(error);
        }
        if self.zerocopy_cookie.is_some() && !zerocopy {
            return Err(EINVAL);
        }
        if self.wants_rdma {
            return Err(EOPNOTSUPP);
        }
        Ok(())
    }
}
