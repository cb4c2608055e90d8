// SPDX-License-Identifier: GPL-2.0

//! A mapped device of the client: its states, and what users write into its files.
//!
//! C counterpart: `enum rnbd_clt_dev_state` in `rnbd-clt.h`, `rnbd-clt-sysfs.c`.

use core::fmt;

use crate::text::{
    trimmed,
    ValueError, //
};

pub use crate::text::{
    parse_one,
    parse_sectors, //
};

/// State of a mapped device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum DeviceState {
    /// Being mapped for the first time.
    #[default]
    Init = 0,
    /// Open on the server.
    Mapped = 1,
    /// There is a disk, but the server does not have it open.
    Disconnected = 2,
    /// Being taken away.
    Unmapped = 3,
}

/// What happens to a mapped device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceEvent {
    /// The server has opened it.
    Opened,
    /// The session is not connected any more.
    LinkLost,
    /// It is to be taken away.
    Unmap,
}

impl DeviceState {
    /// All states in the order of their values.
    pub const ALL: [Self; 4] = [Self::Init, Self::Mapped, Self::Disconnected, Self::Unmapped];

    /// State with the value `raw`, if there is one.
    #[inline]
    pub const fn from_i32(raw: i32) -> Option<Self> {
        Some(match raw {
            0 => Self::Init,
            1 => Self::Mapped,
            2 => Self::Disconnected,
            3 => Self::Unmapped,
            _ => return None,
        })
    }

    /// Value of the state, to be kept in an atomic.
    #[inline]
    pub const fn as_i32(self) -> i32 {
        self as i32
    }

    /// State after `event`; the state stays and is returned as the error if it has no step for it.
    #[inline]
    pub const fn step(self, event: DeviceEvent) -> Result<Self, Self> {
        match (self, event) {
            (Self::Init | Self::Disconnected, DeviceEvent::Opened) => Ok(Self::Mapped),
            (Self::Mapped, DeviceEvent::LinkLost) => Ok(Self::Disconnected),
            (Self::Init | Self::Mapped | Self::Disconnected, DeviceEvent::Unmap) => {
                Ok(Self::Unmapped)
            }
            (state, _) => Err(state),
        }
    }

    /// What the file `state` of the device shows.
    pub const fn sysfs_name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Mapped => "open",
            Self::Disconnected => "closed",
            Self::Unmapped => "unmapped",
        }
    }
}

impl fmt::Display for DeviceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sysfs_name())
    }
}

/// How a device is to be taken away (`unmap_device`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmap {
    /// Only if nobody has it open.
    Normal,
    /// In any case.
    Force,
}

impl Unmap {
    /// Reads the file `unmap_device`.
    pub fn from_text(text: &[u8]) -> Result<Self, ValueError> {
        match trimmed(text) {
            b"normal" => Ok(Self::Normal),
            b"force" => Ok(Self::Force),
            _ => Err(ValueError::Word {
                expected: "normal or force",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_exactly_those_of_the_table() {
        use DeviceState::*;
        let table = [
            (Init, [Some(Mapped), None, Some(Unmapped)]),
            (Mapped, [None, Some(Disconnected), Some(Unmapped)]),
            (Disconnected, [Some(Mapped), None, Some(Unmapped)]),
            (Unmapped, [None, None, None]),
        ];
        for (raw, (state, expected)) in (0..).zip(table) {
            let events = [
                DeviceEvent::Opened,
                DeviceEvent::LinkLost,
                DeviceEvent::Unmap,
            ];
            assert_eq!(
                events.map(|event| state.step(event).ok()),
                expected,
                "{state}"
            );
            assert_eq!(
                (state.as_i32(), DeviceState::from_i32(raw)),
                (raw, Some(state))
            );
        }
        assert_eq!(DeviceState::from_i32(4), None);
    }

    #[test]
    fn words() {
        for (text, unmap) in [
            ("normal\n", Unmap::Normal),
            ("force", Unmap::Force),
            (" force ", Unmap::Force),
        ] {
            assert_eq!(Unmap::from_text(text.as_bytes()), Ok(unmap));
        }
        for text in ["", "Normal", "forced", "normal force", "1"] {
            assert!(Unmap::from_text(text.as_bytes()).is_err(), "{text}");
        }
        let names = DeviceState::ALL.map(DeviceState::sysfs_name);
        assert_eq!(names, ["init", "open", "closed", "unmapped"]);
    }
}
