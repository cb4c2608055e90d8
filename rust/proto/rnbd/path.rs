// SPDX-License-Identifier: GPL-2.0

//! Where on the server a device is that a client asks for.
//!
//! The client names a path; the server puts a folder of its own in front (`dev_search_path`), so that a client reaches
//! what is below the folder and nothing else. `%SESSNAME%` in the folder stands for the name of the session, which
//! gives each session a name space of its own. That is bookkeeping, not protection: nothing vouches for the name.
//!
//! C counterpart: `rnbd_srv_get_full_path()` and `process_msg_open()` in `rnbd-srv.c`.

use core::{
    ffi::CStr,
    fmt, //
};

use super::wire::NAME_SPACE;
use crate::{
    errno::{
        Errno,
        Failure, //
    },
    rtrs::name::SessionName, //
};

/// Longest path of a device in bytes, as the client says it; on the wire a zero follows it.
pub const MAX_DEVICE_PATH: usize = NAME_SPACE - 1;

/// Longest path in bytes, with a zero behind it (`PATH_MAX`).
pub const PATH_SPACE: usize = 4096;

/// Longest name of a file in bytes (`NAME_MAX`).
const MAX_FILE_NAME: usize = 255;

/// Stands for the name of the session in `dev_search_path`.
pub const SESSION_TOKEN: &str = "%SESSNAME%";

/// Path of a device as the client says it.
///
/// # Invariants
///
/// 1 to [`MAX_DEVICE_PATH`] bytes without control characters, and no component is `..`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevicePath<'a>(&'a str);

impl<'a> DevicePath<'a> {
    /// Checks a path.
    pub fn new(path: &'a [u8]) -> Result<Self, DevicePathError> {
        match path.len() {
            0 => return Err(DevicePathError::Empty),
            1..=MAX_DEVICE_PATH => {}
            len => return Err(DevicePathError::TooLong { len }),
        }
        let text = core::str::from_utf8(path).map_err(|_| DevicePathError::Character)?;
        if text.chars().any(char::is_control) {
            return Err(DevicePathError::Character);
        }
        if text.split('/').any(|part| part == "..") {
            return Err(DevicePathError::Parent);
        }
        // INVARIANT: Just checked.
        Ok(Self(text))
    }

    /// Reads a path from the wire, where a zero ends it and whatever follows is ignored.
    pub fn from_wire(field: &'a [u8; NAME_SPACE]) -> Result<Self, DevicePathError> {
        match field.split(|byte| *byte == 0).next() {
            Some(path) if path.len() < field.len() => Self::new(path),
            _ => Err(DevicePathError::NotEnded),
        }
    }

    /// The path as it stands on the wire.
    pub fn to_wire(&self) -> [u8; NAME_SPACE] {
        let mut field = [0; NAME_SPACE];
        if let Some(space) = field.get_mut(..self.0.len()) {
            space.copy_from_slice(self.0.as_bytes());
        }
        field
    }

    /// The path.
    pub fn as_str(&self) -> &'a str {
        self.0
    }
}

impl fmt::Display for DevicePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Name of the link to a mapped device: its path with `!` for `/`, then `@` and the session.
#[derive(Clone, Copy, Debug)]
pub struct LinkName<'a> {
    /// Path of the device.
    device: DevicePath<'a>,
    /// Name of the session.
    session: SessionName,
}

impl<'a> LinkName<'a> {
    /// Makes the name, if it is short enough for one.
    pub fn new(device: DevicePath<'a>, session: &SessionName) -> Result<Self, DevicePathError> {
        let len = device
            .0
            .len()
            .saturating_add(session.as_bytes().len())
            .saturating_add(1);
        if len > MAX_FILE_NAME {
            return Err(DevicePathError::LinkTooLong { len });
        }
        Ok(Self {
            device,
            session: *session,
        })
    }
}

impl fmt::Display for LinkName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.device.0.split('/').enumerate() {
            if index > 0 {
                f.write_str("!")?;
            }
            f.write_str(part)?;
        }
        write!(f, "@{}", self.session)
    }
}

/// The folder that devices are looked for in (module parameter `dev_search_path`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchPath<'a> {
    /// What stands in front of [`SESSION_TOKEN`], or all of it.
    before: &'a str,
    /// What stands behind the token, if there is one.
    after: Option<&'a str>,
}

impl<'a> SearchPath<'a> {
    /// Checks the parameter: an absolute path, with the token at most once.
    pub fn new(parameter: &'a [u8]) -> Result<Self, SearchPathError> {
        let text = core::str::from_utf8(parameter).map_err(|_| SearchPathError::Character)?;
        if text.len() >= PATH_SPACE {
            return Err(SearchPathError::TooLong { len: text.len() });
        }
        if text.chars().any(char::is_control) {
            return Err(SearchPathError::Character);
        }
        if !text.starts_with('/') {
            return Err(SearchPathError::NotAbsolute);
        }
        let (before, after) = match text.split_once(SESSION_TOKEN) {
            None => (text, None),
            Some((before, after)) => (before, Some(after)),
        };
        match after {
            Some(after) if after.contains(SESSION_TOKEN) => Err(SearchPathError::Twice),
            _ => Ok(Self { before, after }),
        }
    }

    /// Path of a device of a session, written into `space`.
    ///
    /// The name of the session is a component that begins where the token is; what follows the token is kept.
    /// Repeated slashes become one.
    pub fn resolve<'b>(
        &self,
        session: &SessionName,
        device: DevicePath<'_>,
        space: &'b mut [u8; PATH_SPACE],
    ) -> Result<&'b CStr, DevicePathError> {
        let mut out = PathWriter { space, len: 0 };
        let written = out.push(self.before).and_then(|()| match self.after {
            None => Some(()),
            Some(after) => {
                out.push("/")?;
                out.push(session.as_str())?;
                out.push(after)
            }
        });
        written
            .and_then(|()| out.push("/"))
            .and_then(|()| out.push(device.0))
            .and_then(|()| out.finish())
            .ok_or(DevicePathError::FullTooLong)
    }
}

/// Writes a path without repeated slashes.
///
/// # Invariants
///
/// `len` is below the size of `space`.
struct PathWriter<'b> {
    /// Where to.
    space: &'b mut [u8; PATH_SPACE],
    /// Bytes written.
    len: usize,
}

impl<'b> PathWriter<'b> {
    /// Adds a part; `None` if there is no room for it and a zero.
    fn push(&mut self, part: &str) -> Option<()> {
        for byte in part.bytes() {
            let last = self
                .len
                .checked_sub(1)
                .and_then(|last| self.space.get(last));
            if byte == b'/' && last == Some(&b'/') {
                continue;
            }
            let next = self.len.checked_add(1)?;
            // INVARIANT: `next` is a place of `space`.
            let [place, _] = self.space.get_mut(self.len..)?.first_chunk_mut::<2>()?;
            *place = byte;
            self.len = next;
        }
        Some(())
    }

    /// Ends the path.
    fn finish(self) -> Option<&'b CStr> {
        let path = self.space.get_mut(..=self.len)?;
        *path.last_mut()? = 0;
        CStr::from_bytes_with_nul(path).ok()
    }
}

/// What is wrong with the path of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DevicePathError {
    /// Nothing.
    Empty,
    /// More than [`MAX_DEVICE_PATH`] bytes.
    TooLong {
        /// Number of bytes.
        len: usize,
    },
    /// On the wire: no zero in the whole field.
    NotEnded,
    /// Control characters, or no UTF-8.
    Character,
    /// A component is `..`.
    Parent,
    /// With the folder in front, more than fits.
    FullTooLong,
    /// The name of the link would have more bytes than a name may have.
    LinkTooLong {
        /// Number of bytes.
        len: usize,
    },
}

impl fmt::Display for DevicePathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty => f.write_str("device path is empty"),
            Self::TooLong { len } => {
                write!(f, "device path has {len} bytes, at most {MAX_DEVICE_PATH} are allowed")
            }
            Self::NotEnded => write!(f, "device path does not end within {NAME_SPACE} bytes"),
            Self::Character => f.write_str("device path must be UTF-8 without control characters"),
            Self::Parent => f.write_str("device path must not have '..' as a component"),
            Self::FullTooLong => {
                write!(f, "device path with dev_search_path in front is longer than {PATH_SPACE} bytes allow")
            }
            Self::LinkTooLong { len } => write!(
                f,
                "device path and session name have {len} bytes with an '@' between, at most {MAX_FILE_NAME} are \
                 allowed"
            ),
        }
    }
}

impl Failure for DevicePathError {
    fn errno(&self) -> Errno {
        match self {
            Self::FullTooLong | Self::LinkTooLong { .. } => Errno::ENAMETOOLONG,
            _ => Errno::EINVAL,
        }
    }
}

/// What is wrong with `dev_search_path`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchPathError {
    /// More than fits.
    TooLong {
        /// Number of bytes.
        len: usize,
    },
    /// Control characters, or no UTF-8.
    Character,
    /// It does not begin with a slash.
    NotAbsolute,
    /// The token stands there more than once.
    Twice,
}

impl fmt::Display for SearchPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooLong { len } => write!(
                f,
                "dev_search_path has {len} bytes, it must have fewer than {PATH_SPACE}"
            ),
            Self::Character => {
                f.write_str("dev_search_path must be UTF-8 without control characters")
            }
            Self::NotAbsolute => f.write_str("dev_search_path must begin with '/'"),
            Self::Twice => write!(f, "dev_search_path must not contain {SESSION_TOKEN} twice"),
        }
    }
}

impl Failure for SearchPathError {
    fn errno(&self) -> Errno {
        Errno::EINVAL
    }
}

#[cfg(test)]
mod tests;
