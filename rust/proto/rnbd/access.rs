// SPDX-License-Identifier: GPL-2.0

//! Who may open a device how.
//!
//! Any number of clients may read a device. One may write it; a second writer is let in only for a migration, where a
//! machine moves from one client to another and both have the device open for a while.
//!
//! C counterpart: `rnbd_srv_check_or_set_access()` and `enum rnbd_access_mode` in `drivers/block/rnbd/`.

use core::fmt;

use crate::errno::{
    Errno,
    Failure, //
};

/// How a client opens a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Reads only.
    ReadOnly,
    /// Reads and writes, alone.
    #[default]
    ReadWrite,
    /// Reads and writes, with one other.
    Migration,
}

impl Access {
    /// Mode with this name, which must be exact.
    pub const fn from_name(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"ro" => Self::ReadOnly,
            b"rw" => Self::ReadWrite,
            b"migration" => Self::Migration,
            _ => return None,
        })
    }

    /// Name of the mode, as users type and read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "ro",
            Self::ReadWrite => "rw",
            Self::Migration => "migration",
        }
    }

    /// Mode with this number on the wire, if there is one (`RNBD_ACCESS_*`).
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::ReadOnly,
            1 => Self::ReadWrite,
            2 => Self::Migration,
            _ => return None,
        })
    }

    /// Number of the mode on the wire.
    pub const fn number(self) -> u8 {
        match self {
            Self::ReadOnly => 0,
            Self::ReadWrite => 1,
            Self::Migration => 2,
        }
    }

    /// Whether the client may change what is on the device.
    pub const fn may_write(self) -> bool {
        !matches!(self, Self::ReadOnly)
    }

    /// Most writers a device may have before this one.
    const fn most_writers(self) -> u32 {
        match self {
            Self::ReadOnly => u32::MAX,
            Self::ReadWrite => 0,
            Self::Migration => 1,
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Counts the writers of a device; one per device, under its lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writers(u32);

impl Writers {
    /// Nobody writes.
    pub const fn new() -> Self {
        Self(0)
    }

    /// Lets somebody open the device, if the others allow it.
    pub fn open(&mut self, access: Access) -> Result<(), AccessError> {
        let writers = self.0;
        if writers > access.most_writers() {
            return Err(AccessError { access, writers });
        }
        if access.may_write() {
            self.0 = writers.saturating_add(1);
        }
        Ok(())
    }

    /// Takes back a successful [`open`](Self::open) with the same mode.
    pub fn close(&mut self, access: Access) {
        if access.may_write() {
            self.0 = self.0.saturating_sub(1);
        }
    }
}

/// The writers of a device do not allow another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError {
    /// What was asked for.
    pub access: Access,
    /// Number of writers there are.
    pub writers: u32,
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { access, writers } = self;
        let most = access.most_writers();
        write!(
            f,
            "device has {writers} writers, access mode '{access}' needs at most {most}"
        )
    }
}

impl Failure for AccessError {
    fn errno(&self) -> Errno {
        Errno::EPERM
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Access::*;

    #[test]
    fn names_and_numbers() {
        for (number, access) in (0..).zip([ReadOnly, ReadWrite, Migration]) {
            assert_eq!(
                (access.number(), Access::from_number(number)),
                (number, Some(access))
            );
            assert_eq!(Access::from_name(access.name().as_bytes()), Some(access));
        }
        assert_eq!(Access::from_number(3), None);
        for name in ["", "r", "RO", "RW", "rw ", "migrate", "migrations"] {
            assert_eq!(Access::from_name(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn arbitration() {
        let mut writers = Writers::new();
        assert_eq!(writers.open(ReadOnly), Ok(()));
        assert_eq!(writers.open(ReadWrite), Ok(()));
        assert_eq!(writers.open(ReadOnly), Ok(()));
        assert_eq!(
            writers.open(ReadWrite),
            Err(AccessError {
                access: ReadWrite,
                writers: 1
            })
        );
        assert_eq!(writers.open(Migration), Ok(()));
        assert_eq!(
            writers.open(Migration),
            Err(AccessError {
                access: Migration,
                writers: 2
            })
        );
        writers.close(ReadWrite);
        assert_eq!(writers.open(ReadWrite).unwrap_err().errno(), Errno::EPERM);
        assert_eq!(writers.open(Migration), Ok(()));
        writers.close(Migration);
        writers.close(Migration);
        writers.close(ReadOnly);
        assert_eq!(writers, Writers::new());
        assert_eq!(writers.open(Migration), Ok(()));
    }

    #[test]
    fn a_close_too_many_changes_nothing() {
        let mut writers = Writers::new();
        writers.close(ReadWrite);
        assert_eq!(writers, Writers::new());
    }
}
