// SPDX-License-Identifier: GPL-2.0

//! The calls, and the errors that each of them may give.

use libc::*;
use std::ffi::c_long;

/// Makes of a table of calls the type that names them and the table to look them up in.
macro_rules! calls {
    ($($name:ident $number:ident $works:literal [$($error:ident)*])*) => {
        /// A call, or a group of uses of one.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Call { $(#[allow(missing_docs)] $name),* }

        const TABLE: &[Spec] = &[$(Spec {
            call: Call::$name, number: $number, works: $works, errors: &[$($error),*],
        }),*];
    };
}

struct Spec {
    call: Call,
    number: c_long,
    works: bool,
    errors: &'static [i32],
}

// What it is called, its number, whether it ever works with RDS sockets, and its errors.
calls! {
    Socket SYS_socket true [ESOCKTNOSUPPORT EINVAL]
    Bind SYS_bind true [EINVAL EADDRNOTAVAIL EADDRINUSE ENOPROTOOPT EOPNOTSUPP EFAULT]
    Connect SYS_connect true [EINVAL EDESTADDRREQ EPROTOTYPE EAFNOSUPPORT EOPNOTSUPP EFAULT]
    Getsockname SYS_getsockname true [EFAULT EINVAL]
    Getpeername SYS_getpeername true [EFAULT EINVAL ENOTCONN]
    Sendmsg SYS_sendmsg true [
        EOPNOTSUPP EINVAL ENOTCONN EMSGSIZE EFAULT ENOMEM ENETDOWN EAGAIN ENOBUFS ETIMEDOUT EINTR ENETUNREACH
    ]
    Write SYS_write true [EINVAL ENOTCONN EMSGSIZE EFAULT ENETDOWN EAGAIN ENOBUFS ETIMEDOUT EINTR ENETUNREACH]
    Recvmsg SYS_recvmsg true [EAGAIN ETIMEDOUT EINTR EFAULT EINVAL EMSGSIZE]
    Read SYS_read true [EAGAIN ETIMEDOUT EINTR EFAULT]
    Poll SYS_poll true [EINTR EFAULT]
    EpollCtl SYS_epoll_ctl true [EEXIST ENOENT EFAULT]
    EpollWait SYS_epoll_wait true [EINTR EFAULT EINVAL]
    SetRds SYS_setsockopt true [EINVAL ENOPROTOOPT ENOTCONN EFAULT EOPNOTSUPP EPROTOTYPE EINTR]
    SetSocket SYS_setsockopt true [EINVAL ENOPROTOOPT EFAULT EDOM EPERM ENODEV EOPNOTSUPP ENOMEM EBUSY]
    GetRds SYS_getsockopt true [EINVAL ENOPROTOOPT EFAULT]
    GetInfo SYS_getsockopt true [EINVAL ENOPROTOOPT EFAULT ENOSPC EAGAIN]
    GetSocket SYS_getsockopt true [EINVAL ENOPROTOOPT EFAULT EOPNOTSUPP EPERM ENODATA ENOTCONN ERANGE]
    SetOther SYS_setsockopt false [EINVAL ENOPROTOOPT EFAULT EOPNOTSUPP]
    Ioctl SYS_ioctl true [ENOTTY EFAULT EINVAL]
    Fcntl SYS_fcntl true [EINVAL ESRCH EPERM]
    Listen SYS_listen false [EOPNOTSUPP]
    Accept SYS_accept4 false [EOPNOTSUPP EINVAL]
    Socketpair SYS_socketpair false [EOPNOTSUPP ESOCKTNOSUPPORT EINVAL EFAULT]
    Shutdown SYS_shutdown false [EOPNOTSUPP]
    Mmap SYS_mmap false [ENODEV EINVAL]
    Splice SYS_splice false [EOPNOTSUPP EINVAL ENOTCONN EAGAIN EINTR]
    PipeWrite SYS_write true [EAGAIN]
    PipeRead SYS_read true [EAGAIN]
    Dup SYS_dup true []
    Close SYS_close true []
    Setns SYS_setns true [EINVAL]
    Wait SYS_wait4 true [EINTR]
    Kill SYS_kill true []
}

impl Call {
    /// How many there are.
    pub(crate) const COUNT: usize = TABLE.len();

    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|spec| spec.call)
    }

    fn spec(self) -> &'static Spec {
        // CAST: The number of the variant.
        &TABLE[self as usize]
    }

    /// The number of the system call.
    pub(crate) fn number(self) -> c_long {
        self.spec().number
    }

    /// Whether there is a way for it to succeed.
    pub(crate) fn works(self) -> bool {
        self.spec().works
    }

    /// Whether it may fail like this.
    pub(crate) fn may_give(self, errno: i32) -> bool {
        self.spec().errors.contains(&errno)
    }
}
