// SPDX-License-Identifier: GPL-2.0

//! Error numbers, for code that has no kernel to take them from.
//!
//! A parser's error is an enum that says what was wrong; [`Failure`] adds the number that the caller returns or sends.
//!
//! C counterpart: `include/uapi/asm-generic/errno-base.h`, `include/uapi/asm-generic/errno.h`.

use core::fmt;

/// What is wrong, as text for a log line (`Display`) and as a number for a caller or a peer.
pub trait Failure: fmt::Display {
    /// Number that stands for this failure.
    fn errno(&self) -> Errno;
}

/// Error number of the kernel, from 1 to 4095.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(u16);

/// Largest error number (`MAX_ERRNO`).
const MAX_ERRNO: u16 = 4095;
/// Largest number that programs know; those above are the kernel's own, from `ERESTARTSYS` on.
const MAX_PUBLIC: u16 = 511;

impl Errno {
    /// Not permitted.
    pub const EPERM: Self = Self(1);
    /// There is no such thing.
    pub const ENOENT: Self = Self(2);
    /// The device failed.
    pub const EIO: Self = Self(5);
    /// There is no such device or address.
    pub const ENXIO: Self = Self(6);
    /// Out of memory; also too many of something, where C says so.
    pub const ENOMEM: Self = Self(12);
    /// In use.
    pub const EBUSY: Self = Self(16);
    /// Exists already.
    pub const EEXIST: Self = Self(17);
    /// There is no such device.
    pub const ENODEV: Self = Self(19);
    /// Invalid argument.
    pub const EINVAL: Self = Self(22);
    /// Read-only.
    pub const EROFS: Self = Self(30);
    /// A name is too long.
    pub const ENAMETOOLONG: Self = Self(36);
    /// The peer broke the protocol.
    pub const EPROTO: Self = Self(71);
    /// A message is too long.
    pub const EMSGSIZE: Self = Self(90);
    /// There is no such kind of address.
    pub const EPROTONOSUPPORT: Self = Self(93);
    /// The operation is not supported.
    pub const EOPNOTSUPP: Self = Self(95);
    /// The connection was given up.
    pub const ECONNABORTED: Self = Self(103);
    /// The connection was refused or broken off.
    pub const ECONNRESET: Self = Self(104);
    /// Not connected; of a device: not open.
    pub const ENOTCONN: Self = Self(107);
    /// No answer in time.
    pub const ETIMEDOUT: Self = Self(110);
    /// There is no way to the host.
    pub const EHOSTUNREACH: Self = Self(113);

    /// The error that a kernel function reports as `code`, from -1 to -4095.
    #[inline]
    pub const fn from_code(code: i32) -> Option<Self> {
        let number = code.unsigned_abs();
        if code < 0 && number <= MAX_ERRNO as u32 {
            // CAST: At most 4095.
            Some(Self(number as u16))
        } else {
            None
        }
    }

    /// The error with this positive number, from 1 to 4095.
    #[inline]
    pub const fn from_number(number: u16) -> Option<Self> {
        match number {
            1..=MAX_ERRNO => Some(Self(number)),
            _ => None,
        }
    }

    /// Positive number.
    #[inline]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Negative number, as kernel functions return it.
    #[inline]
    pub const fn code(self) -> i32 {
        // CAST: Widening, `From` is not const.
        -(self.0 as i32)
    }

    /// Whether a program may see it.
    #[inline]
    pub const fn is_public(self) -> bool {
        self.0 <= MAX_PUBLIC
    }

    /// Name of the number, if it has one here.
    const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::EPERM => "EPERM",
            Self::ENOENT => "ENOENT",
            Self::EIO => "EIO",
            Self::ENXIO => "ENXIO",
            Self::ENOMEM => "ENOMEM",
            Self::EBUSY => "EBUSY",
            Self::EEXIST => "EEXIST",
            Self::ENODEV => "ENODEV",
            Self::EINVAL => "EINVAL",
            Self::EROFS => "EROFS",
            Self::ENAMETOOLONG => "ENAMETOOLONG",
            Self::EPROTO => "EPROTO",
            Self::EMSGSIZE => "EMSGSIZE",
            Self::EPROTONOSUPPORT => "EPROTONOSUPPORT",
            Self::EOPNOTSUPP => "EOPNOTSUPP",
            Self::ECONNABORTED => "ECONNABORTED",
            Self::ECONNRESET => "ECONNRESET",
            Self::ENOTCONN => "ENOTCONN",
            Self::ETIMEDOUT => "ETIMEDOUT",
            Self::EHOSTUNREACH => "EHOSTUNREACH",
            _ => return None,
        })
    }
}

impl fmt::Display for Errno {
    /// The name, or the negative number of one that has none here.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.code()),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn numbers_both_ways() {
        for code in [-1, -22, -104, -4095] {
            let errno = Errno::from_code(code).unwrap();
            assert_eq!(errno.code(), code);
            assert_eq!(Errno::from_number(errno.number()), Some(errno));
        }
        for code in [0, 1, 22, -4096, i32::MIN, i32::MAX] {
            assert_eq!(Errno::from_code(code), None, "{code}");
        }
        assert_eq!(Errno::from_number(0), None);
        assert_eq!(Errno::from_number(4096), None);
    }

    #[test]
    fn numbers_of_the_kernel() {
        assert!(Errno::EHOSTUNREACH.is_public());
        assert!(Errno::from_number(511).unwrap().is_public());
        assert!(!Errno::from_number(512).unwrap().is_public());
    }

    #[test]
    fn text() {
        assert_eq!(Errno::ECONNRESET.to_string(), "ECONNRESET");
        assert_eq!(Errno::from_code(-7).unwrap().to_string(), "-7");
    }
}
