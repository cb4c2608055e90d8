// SPDX-License-Identifier: GPL-2.0

//! System calls behind safe signatures; nothing else in this workspace is `unsafe`.
//!
//! Every buffer that the kernel reads or writes is passed as a Rust slice or reference, so the
//! pointer and length given to the kernel always describe memory this process may use that way.

use crate::addr::RawAddr;
use crate::control::ControlBuffer;
use std::ffi::{c_int, c_ulong, c_void};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

/// Turns a negative return value into the error `errno` tells.
fn check(ret: c_int) -> io::Result<c_int> {
    if ret < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(ret)
    }
}

/// The same for calls that return a length.
fn check_len(ret: isize) -> io::Result<usize> {
    usize::try_from(ret).map_err(|_| io::Error::last_os_error())
}

/// `socket(2)`.
pub(crate) fn socket(family: c_int, kind: c_int) -> io::Result<OwnedFd> {
    // SAFETY: The call takes no pointers.
    let fd = check(unsafe { libc::socket(family, kind, 0) })?;
    // SAFETY: The kernel just returned this descriptor and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `bind(2)`.
pub(crate) fn bind(fd: BorrowedFd<'_>, addr: &RawAddr) -> io::Result<()> {
    let at = addr.bytes.as_ptr().cast();
    // SAFETY: `at` points to 128 readable bytes and `len` is never more than that.
    check(unsafe { libc::bind(fd.as_raw_fd(), at, addr.len) }).map(drop)
}

/// `connect(2)`.
pub(crate) fn connect(fd: BorrowedFd<'_>, addr: &RawAddr) -> io::Result<()> {
    let at = addr.bytes.as_ptr().cast();
    // SAFETY: `at` points to 128 readable bytes and `len` is never more than that.
    check(unsafe { libc::connect(fd.as_raw_fd(), at, addr.len) }).map(drop)
}

/// `getsockname(2)`.
pub(crate) fn local_addr(fd: BorrowedFd<'_>) -> io::Result<RawAddr> {
    let mut addr = RawAddr::room();
    let at = addr.bytes.as_mut_ptr().cast();
    // SAFETY: `at` points to 128 writable bytes, `len` says so, and both live until the call returns.
    check(unsafe { libc::getsockname(fd.as_raw_fd(), at, &mut addr.len) })?;
    Ok(addr)
}

/// `sendmsg(2)` of one buffer; `control` is a finished sequence of control messages.
pub(crate) fn sendmsg(
    fd: BorrowedFd<'_>,
    data: &[u8],
    to: Option<&RawAddr>,
    control: &[u8],
    flags: c_int,
) -> io::Result<usize> {
    let mut iov = libc::iovec {
        iov_base: data.as_ptr().cast_mut().cast(),
        iov_len: data.len(),
    };
    // SAFETY: A `msghdr` consists of integers and pointers, for which zero is a value.
    let mut msg: libc::msghdr = unsafe { mem::zeroed() };
    msg.msg_iov = &mut iov;
    msg.msg_iovlen = 1;
    if let Some(to) = to {
        msg.msg_name = to.bytes.as_ptr().cast_mut().cast();
        msg.msg_namelen = to.len;
    }
    if !control.is_empty() {
        msg.msg_control = control.as_ptr().cast_mut().cast();
        msg.msg_controllen = control.len();
    }
    // SAFETY: All pointers in `msg` come from references that outlive the call, with their lengths,
    // and the kernel only reads what they point to.
    check_len(unsafe { libc::sendmsg(fd.as_raw_fd(), &msg, flags) })
}

/// `recvmsg(2)` into one buffer; returns the length and the message flags.
pub(crate) fn recvmsg(
    fd: BorrowedFd<'_>,
    data: &mut [u8],
    from: &mut RawAddr,
    control: &mut ControlBuffer,
    flags: c_int,
) -> io::Result<(usize, c_int)> {
    control.len = 0;
    let mut iov = libc::iovec {
        iov_base: data.as_mut_ptr().cast(),
        iov_len: data.len(),
    };
    // SAFETY: A `msghdr` consists of integers and pointers, for which zero is a value.
    let mut msg: libc::msghdr = unsafe { mem::zeroed() };
    msg.msg_name = from.bytes.as_mut_ptr().cast();
    msg.msg_namelen = 128;
    msg.msg_iov = &mut iov;
    msg.msg_iovlen = 1;
    msg.msg_control = control.bytes.as_mut_ptr().cast();
    msg.msg_controllen = control.bytes.len();
    // SAFETY: All pointers in `msg` come from exclusive references that outlive the call, with their
    // lengths.
    let len = check_len(unsafe { libc::recvmsg(fd.as_raw_fd(), &mut msg, flags) })?;
    from.len = msg.msg_namelen;
    control.len = msg.msg_controllen;
    Ok((len, msg.msg_flags))
}

/// `setsockopt(2)`.
pub(crate) fn setsockopt(
    fd: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: &[u8],
) -> io::Result<()> {
    let len = libc::socklen_t::try_from(value.len()).map_err(io::Error::other)?;
    let at: *const c_void = value.as_ptr().cast();
    // SAFETY: `at` points to `len` readable bytes.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, at, len) }).map(drop)
}

/// `getsockopt(2)`: the call's own result and the length it reports, which is set on errors too.
///
/// An empty `value` is passed as a null pointer.
pub(crate) fn getsockopt(
    fd: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: &mut [u8],
) -> (io::Result<c_int>, usize) {
    let Ok(mut len) = libc::socklen_t::try_from(value.len()) else {
        return (Err(io::Error::from_raw_os_error(libc::EINVAL)), 0);
    };
    let at: *mut c_void = match value {
        [] => ptr::null_mut(),
        some => some.as_mut_ptr().cast(),
    };
    // SAFETY: `at` points to `len` writable bytes, or is null with a length of zero.
    let ret = check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, at, &mut len) });
    // CAST: to a wider type on every Linux.
    (ret, len as usize)
}

/// An `ioctl(2)` whose argument points to an unsigned long.
pub(crate) fn ioctl_ulong(
    fd: BorrowedFd<'_>,
    request: c_ulong,
    value: &mut c_ulong,
) -> io::Result<()> {
    let at: *mut c_ulong = value;
    // SAFETY: The requests of this crate read or write at most one byte at `at`.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), request, at) }).map(drop)
}

/// Switches `O_NONBLOCK`.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    // SAFETY: The call takes no pointers.
    let old = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    let new = if on {
        old | libc::O_NONBLOCK
    } else {
        old & !libc::O_NONBLOCK
    };
    // SAFETY: The call takes no pointers.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, new) }).map(drop)
}

/// `ppoll(2)` without a signal mask; no timeout means for ever.
pub(crate) fn poll(fds: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<usize> {
    let count = libc::nfds_t::try_from(fds.len()).map_err(io::Error::other)?;
    let limit = timeout.map(timespec);
    let at = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `fds` is exclusive and `count` long; `at` is null or points to `limit`; a null mask is
    // allowed.
    let ret = unsafe { libc::ppoll(fds.as_mut_ptr(), count, at, ptr::null()) };
    check(ret).map(|n| n.unsigned_abs() as usize)
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(time.subsec_nanos()),
    }
}

/// Makes `handler` run on `signal`, interrupting system calls.
pub(crate) fn sigaction(signal: c_int, handler: extern "C" fn(c_int)) -> io::Result<()> {
    // SAFETY: A `sigaction` consists of integers and pointers, for which zero is a value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    // SAFETY: `action` is a whole `sigaction` with a handler of the right type, no flags and an empty
    // mask. The only handler in this crate stores to an atomic, which is async-signal-safe.
    check(unsafe { libc::sigaction(signal, &action, ptr::null_mut()) }).map(drop)
}

/// Raises `SIGALRM` after `first` and then again every `again`.
pub(crate) fn set_alarm(first: Duration, again: Duration) -> io::Result<()> {
    let value = libc::itimerval {
        it_value: timeval(first),
        it_interval: timeval(again),
    };
    // SAFETY: `value` is a whole `itimerval`; the old value is not asked for.
    check(unsafe { libc::setitimer(libc::ITIMER_REAL, &value, ptr::null_mut()) }).map(drop)
}

/// A time as `timeval`; more seconds than it can hold become the most it can.
pub(crate) fn timeval(time: Duration) -> libc::timeval {
    libc::timeval {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_usec: libc::suseconds_t::from(time.subsec_micros()),
    }
}

/// `getrusage(2)` of this process.
pub(crate) fn rusage() -> io::Result<libc::rusage> {
    let mut usage = mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: The pointer is good for one whole `rusage`.
    check(unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) })?;
    // SAFETY: It consists of integers, for which zero is a value, and the kernel filled it.
    Ok(unsafe { usage.assume_init() })
}

/// `nice(2)`, which on Linux is about the calling thread.
pub(crate) fn nice(steps: c_int) -> io::Result<()> {
    // SAFETY: The call returns the place of this thread's `errno`.
    let errno = unsafe { libc::__errno_location() };
    // A result of -1 can be the new value; only then does `errno` tell.
    // SAFETY: It is this thread's own and writable.
    unsafe { *errno = 0 };
    // SAFETY: The call takes no pointers.
    match unsafe { libc::nice(steps) } {
        -1 => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(0) => Ok(()),
            error => Err(error),
        },
        _ => Ok(()),
    }
}

/// `sched_setscheduler(2)` of the calling thread to `SCHED_RR`.
pub(crate) fn set_round_robin(priority: c_int) -> io::Result<()> {
    let param = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `param` is a whole `sched_param`.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &param) }).map(drop)
}
