// SPDX-License-Identifier: GPL-2.0

//! What users write to map a device: `sessname=s path=ip:10.0.0.1 device_path=/dev/ram0`.
//!
//! Options are separated by blanks and may stand in any order; their names are exact, and each may stand there once,
//! except that a session may have several paths.
//!
//! C counterpart: `rnbd_clt_parse_map_options()` in `rnbd-clt-sysfs.c`. There a port counts only for the paths behind
//! it, the last of several equal options counts, and numbers may be hexadecimal.

use core::fmt;

use super::{
    access::Access,
    path::{
        DevicePath,
        DevicePathError,
        LinkName, //
    },
};
use crate::{
    errno::{
        Errno,
        Failure, //
    },
    rtrs::{
        addr::{
            PathError,
            PathText, //
        },
        name::{
            NameError,
            SessionName, //
        },
        wire::DEFAULT_PORT, //
    },
    text::{
        parse_decimal,
        trimmed, //
    }, //
};

/// Most paths of one call.
pub const MAX_PATHS: usize = 6;

/// What the file `map_device` shows, without the line end behind it.
pub const USAGE: &str =
    "Usage: echo \"[dest_port=server port number] sessname=<name of the rtrs session> \
    path=<[srcaddr@]dstaddr> [path=<[srcaddr@]dstaddr>] device_path=<full path on remote side> \
    [access_mode=<ro|rw|migration>] [nr_poll_queues=<number of queues>]\" > map_device\n\
    \n\
    addr ::= [ ip:<ipv4> | ip:<ipv6> | gid:<gid> ]";

/// What is to be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapOptions<'a> {
    /// Name of the session.
    pub session: SessionName,
    /// Path of the device on the server.
    pub device: DevicePath<'a>,
    /// Paths of the session, from the first.
    paths: [Option<PathText<'a>>; MAX_PATHS],
    /// Port of the server, for all paths.
    pub dest_port: u16,
    /// How to open the device.
    pub access: Access,
    /// Number of polled queues of the session.
    pub nr_poll_queues: u32,
}

impl<'a> MapOptions<'a> {
    /// Reads what was written; `cpus` is the number of processors, which bounds that of polled queues.
    pub fn parse(text: &'a [u8], cpus: u32) -> Result<Self, OptionsError<'a>> {
        let text = core::str::from_utf8(trimmed(text)).map_err(|_| OptionsError::Character)?;
        if text.chars().any(char::is_control) {
            return Err(OptionsError::Character);
        }
        let mut found = Found::default();
        for word in text.split(' ').filter(|word| !word.is_empty()) {
            found.take(word, cpus)?;
        }
        let options = Self {
            session: found
                .session
                .ok_or(OptionsError::Missing { key: "sessname" })?,
            device: found
                .device
                .ok_or(OptionsError::Missing { key: "device_path" })?,
            paths: found.paths,
            dest_port: found.dest_port.unwrap_or(DEFAULT_PORT),
            access: found.access.unwrap_or_default(),
            nr_poll_queues: found.nr_poll_queues.unwrap_or(0),
        };
        LinkName::new(options.device, &options.session).map_err(OptionsError::Device)?;
        Ok(options)
    }

    /// Paths of the session, in the order they were written.
    pub fn paths(&self) -> impl Iterator<Item = PathText<'a>> + '_ {
        self.paths.iter().flatten().copied()
    }
}

/// Options that were read so far.
#[derive(Default)]
struct Found<'a> {
    /// `sessname`
    session: Option<SessionName>,
    /// `device_path`
    device: Option<DevicePath<'a>>,
    /// `path`
    paths: [Option<PathText<'a>>; MAX_PATHS],
    /// `dest_port`
    dest_port: Option<u16>,
    /// `access_mode`
    access: Option<Access>,
    /// `nr_poll_queues`
    nr_poll_queues: Option<u32>,
}

impl<'a> Found<'a> {
    /// Reads one option.
    fn take(&mut self, word: &'a str, cpus: u32) -> Result<(), OptionsError<'a>> {
        let (key, value) = word.split_once('=').ok_or(OptionsError::Unknown { word })?;
        match key {
            "sessname" => {
                let session = SessionName::new(value.as_bytes()).map_err(OptionsError::Session)?;
                once(&mut self.session, session, "sessname")
            }
            "device_path" => {
                let device = DevicePath::new(value.as_bytes()).map_err(OptionsError::Device)?;
                once(&mut self.device, device, "device_path")
            }
            "path" => {
                let path =
                    PathText::parse(value).map_err(|error| OptionsError::Path { value, error })?;
                let free = self.paths.iter_mut().find(|path| path.is_none());
                *free.ok_or(OptionsError::TooManyPaths)? = Some(path);
                Ok(())
            }
            "dest_port" => {
                let port = parse_decimal(value.as_bytes(), 0, u16::MAX.into()).ok();
                let port = port.and_then(|port| u16::try_from(port).ok());
                once(
                    &mut self.dest_port,
                    port.ok_or(OptionsError::Port { value })?,
                    "dest_port",
                )
            }
            "access_mode" => {
                let access =
                    Access::from_name(value.as_bytes()).ok_or(OptionsError::Access { value })?;
                once(&mut self.access, access, "access_mode")
            }
            "nr_poll_queues" => {
                let error = OptionsError::PollQueues { value, cpus };
                let queues = parse_decimal(value.as_bytes(), -1, cpus.into()).map_err(|_| error)?;
                // -1 is all.
                let queues = u32::try_from(queues).unwrap_or(cpus);
                once(&mut self.nr_poll_queues, queues, "nr_poll_queues")
            }
            _ => Err(OptionsError::Unknown { word }),
        }
    }
}

/// Stores an option that may stand there once.
fn once<'a, T>(place: &mut Option<T>, value: T, key: &'static str) -> Result<(), OptionsError<'a>> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(OptionsError::Twice { key }),
    }
}

/// What is wrong with the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionsError<'a> {
    /// Control characters, or no UTF-8.
    Character,
    /// No option has this name.
    Unknown {
        /// What was written.
        word: &'a str,
    },
    /// An option that may stand there once.
    Twice {
        /// Its name.
        key: &'static str,
    },
    /// An option that has to be there.
    Missing {
        /// Its name.
        key: &'static str,
    },
    /// `sessname`.
    Session(NameError),
    /// `device_path`, by itself or together with `sessname`.
    Device(DevicePathError),
    /// `path`.
    Path {
        /// What was written.
        value: &'a str,
        /// What is wrong with it.
        error: PathError,
    },
    /// More than [`MAX_PATHS`] times `path`.
    TooManyPaths,
    /// `dest_port`.
    Port {
        /// What was written.
        value: &'a str,
    },
    /// `access_mode`.
    Access {
        /// What was written.
        value: &'a str,
    },
    /// `nr_poll_queues`.
    PollQueues {
        /// What was written.
        value: &'a str,
        /// Number of processors.
        cpus: u32,
    },
}

/// At most this many characters of what was written are repeated in a message.
const SHOWN: usize = 64;

impl fmt::Display for OptionsError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Character => f.write_str("options must be UTF-8 without control characters"),
            Self::Unknown { word } => write!(f, "unknown option or no value: '{word:.SHOWN$}'"),
            Self::Twice { key } => write!(f, "option '{key}' stands there twice"),
            Self::Missing { key } => write!(f, "option '{key}' is missing"),
            Self::Session(error) => write!(f, "sessname: {error}"),
            Self::Device(error) => write!(f, "device_path: {error}"),
            Self::Path { value, error } => write!(f, "path '{value:.SHOWN$}': {error}"),
            Self::TooManyPaths => write!(f, "more than {MAX_PATHS} times option 'path'"),
            Self::Port { value } => write!(
                f,
                "dest_port is '{value:.SHOWN$}', it must be from 0 to 65535"
            ),
            Self::Access { value } => write!(
                f,
                "access_mode is '{value:.SHOWN$}', it must be ro, rw or migration"
            ),
            Self::PollQueues { value, cpus } => {
                write!(
                    f,
                    "nr_poll_queues is '{value:.SHOWN$}', it must be from -1 to {cpus}"
                )
            }
        }
    }
}

impl Failure for OptionsError<'_> {
    fn errno(&self) -> Errno {
        match self {
            Self::Device(error) => error.errno(),
            Self::Path { error, .. } => error.errno(),
            Self::TooManyPaths => Errno::ENOMEM,
            _ => Errno::EINVAL,
        }
    }
}

#[cfg(test)]
mod tests;
