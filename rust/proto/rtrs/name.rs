// SPDX-License-Identifier: GPL-2.0

//! Names of sessions.
//!
//! The client chooses the name and nothing vouches for it. On both sides it becomes the name of a directory in sysfs and
//! a part of log lines, on the server also of paths of devices, so it must not be able to leave or disturb any of them.
//!
//! C counterpart: `rtrs_clt_open()` in `rtrs-clt.c`, `process_info_req()` in `rtrs-srv.c`.

use core::fmt;

use super::wire::NAME_SPACE;
use crate::errno::{
    Errno,
    Failure, //
};

/// Longest name in bytes; on the wire a zero follows it.
pub const MAX_NAME: usize = NAME_SPACE - 1;

/// Name of a session.
///
/// # Invariants
///
/// The first `len` bytes, 1 to [`MAX_NAME`], are printable ASCII other than `/` and `.`; the others are 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionName {
    /// The name and zeros behind it.
    bytes: [u8; NAME_SPACE],
    /// Its length.
    len: u8,
}

impl SessionName {
    /// Checks a name.
    pub fn new(name: &[u8]) -> Result<Self, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        let too_long = NameError::TooLong { len: name.len() };
        let len = u8::try_from(name.len()).map_err(|_| too_long)?;
        let mut bytes = [0; NAME_SPACE];
        match bytes.get_mut(..name.len()) {
            Some(space) if name.len() <= MAX_NAME => space.copy_from_slice(name),
            _ => return Err(too_long),
        }
        match name
            .iter()
            .find(|byte| !matches!(byte, b' '..=b'~') || matches!(byte, b'/' | b'.'))
        {
            Some(byte) => Err(NameError::Character { byte: *byte }),
            // INVARIANT: Just checked.
            None => Ok(Self { bytes, len }),
        }
    }

    /// Reads a name from the wire, where a zero ends it and whatever follows is ignored.
    pub fn from_wire(field: &[u8; NAME_SPACE]) -> Result<Self, NameError> {
        match field.split(|byte| *byte == 0).next() {
            Some(name) if name.len() < field.len() => Self::new(name),
            _ => Err(NameError::NotEnded),
        }
    }

    /// The name as it stands on the wire.
    pub fn to_wire(&self) -> [u8; NAME_SPACE] {
        self.bytes
    }

    /// The bytes of the name.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len.into()).unwrap_or_default()
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        // By the invariants it is ASCII.
        core::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for SessionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// What is wrong with the name of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// Nothing.
    Empty,
    /// More than [`MAX_NAME`] bytes.
    TooLong {
        /// Number of bytes.
        len: usize,
    },
    /// On the wire: no zero in the whole field.
    NotEnded,
    /// Not printable, or `/` or `.`.
    Character {
        /// The first such byte.
        byte: u8,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty => f.write_str("session name is empty"),
            Self::TooLong { len } => write!(
                f,
                "session name has {len} bytes, at most {MAX_NAME} are allowed"
            ),
            Self::NotEnded => write!(f, "session name does not end within {NAME_SPACE} bytes"),
            Self::Character { byte } => write!(
                f,
                "session name contains '{}', it must be printable ASCII without '/' and '.'",
                byte.escape_ascii()
            ),
        }
    }
}

impl Failure for NameError {
    fn errno(&self) -> Errno {
        Errno::EINVAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn good_names() {
        for name in [
            "vec",
            "blktest",
            "a",
            "%s",
            "host-1_x y!@",
            &"n".repeat(254),
        ] {
            let parsed = SessionName::new(name.as_bytes()).unwrap();
            assert_eq!(parsed.as_str(), name);
            assert_eq!(parsed.to_string(), name);
            assert_eq!(SessionName::from_wire(&parsed.to_wire()), Ok(parsed));
        }
    }

    #[test]
    fn bad_names() {
        let error = |name: &[u8]| SessionName::new(name).unwrap_err();
        assert_eq!(error(b""), NameError::Empty);
        assert_eq!(error(&[b'n'; 255]), NameError::TooLong { len: 255 });
        assert_eq!(error(&[b'n'; 70000]), NameError::TooLong { len: 70000 });
        for byte in [0, 1, b'\n', b'\t', b'/', b'.', 0x1f, 0x7f, 0x80, 0xff] {
            assert_eq!(error(&[b'a', byte]), NameError::Character { byte });
        }
        assert_eq!(error(b"a\nb").to_string().matches('\n').count(), 0);
    }

    #[test]
    fn names_on_the_wire() {
        assert_eq!(
            SessionName::from_wire(&[b'A'; 255]),
            Err(NameError::NotEnded)
        );
        assert_eq!(SessionName::from_wire(&[0; 255]), Err(NameError::Empty));
        let mut garbage = [0xff; 255];
        garbage[..4].copy_from_slice(b"vec\0");
        assert_eq!(SessionName::from_wire(&garbage).unwrap().as_str(), "vec");
    }
}
