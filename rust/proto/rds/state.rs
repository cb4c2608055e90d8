// SPDX-License-Identifier: GPL-2.0

//! States of a path and the steps between them.
//!
//! A path is connected by its connect worker or by an accepted connection, carries traffic while up,
//! and always comes down the same way: something marks it [`Error`](PathState::Error), and the
//! shutdown worker alone takes it through [`Disconnecting`](PathState::Disconnecting) to
//! [`Down`](PathState::Down). There is deliberately no step from `Error` to `Connecting`: C had one
//! and it left shutdown stuck.
//!
//! C counterpart: `RDS_CONN_*` in `net/rds/rds.h`, `net/rds/threads.c`, `net/rds/connection.c`.

/// State of a path; the values are those of C.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum PathState {
    /// Nothing is attached.
    #[default]
    Down = 0,
    /// An own connect is under way, or an accepted connection is being attached.
    Connecting = 1,
    /// The shutdown worker owns the path.
    Disconnecting = 2,
    /// Traffic flows.
    Up = 3,
    /// An accepted connection takes the place of an own connect.
    Resetting = 4,
    /// Dropped, waiting for the shutdown worker.
    Error = 5,
}

impl PathState {
    /// All states in the order of their values.
    pub const ALL: [Self; 6] = [
        Self::Down,
        Self::Connecting,
        Self::Disconnecting,
        Self::Up,
        Self::Resetting,
        Self::Error,
    ];

    /// State with the value `raw`, if there is one.
    #[inline]
    pub const fn from_i32(raw: i32) -> Option<Self> {
        Some(match raw {
            0 => Self::Down,
            1 => Self::Connecting,
            2 => Self::Disconnecting,
            3 => Self::Up,
            4 => Self::Resetting,
            5 => Self::Error,
            _ => return None,
        })
    }

    /// Value of the state, to be kept in an atomic.
    #[inline]
    pub const fn as_i32(self) -> i32 {
        self as i32
    }

    /// Name for log lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Connecting => "connecting",
            Self::Disconnecting => "disconnecting",
            Self::Up => "up",
            Self::Resetting => "resetting",
            Self::Error => "error",
        }
    }
}

impl core::fmt::Display for PathState {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a path may go from `from` to `to`; staying is no step, except that a drop repeats.
#[inline]
pub const fn allowed(from: PathState, to: PathState) -> bool {
    use PathState::{Connecting, Disconnecting, Down, Error, Resetting, Up};

    match (from, to) {
        // The connect worker or an accepted connection claims the path.
        (Down, Connecting) => true,
        // The connection is there.
        (Connecting | Resetting, Up) => true,
        // The connect call failed; the next attempt comes after a back-off.
        (Connecting, Down) => true,
        // An accepted connection replaces the own attempt.
        (Connecting, Resetting) => true,
        // What is being taken down is not dropped once more.
        (Disconnecting, Error) => false,
        // A drop, from anywhere else.
        (_, Error) => true,
        // The shutdown worker takes over, and finishes.
        (Up | Error | Resetting, Disconnecting) => true,
        (Disconnecting, Down) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_c() {
        for (raw, state) in (0..).zip(PathState::ALL) {
            assert_eq!(state.as_i32(), raw);
            assert_eq!(PathState::from_i32(raw), Some(state));
        }
        assert_eq!(PathState::Up as i32, 3);
        assert_eq!(PathState::Error as i32, 5);
        for raw in [-1, 6, i32::MIN, i32::MAX] {
            assert_eq!(PathState::from_i32(raw), None);
        }
    }

    #[test]
    fn steps_are_exactly_those_of_the_table() {
        use PathState::*;
        let steps = [
            (Down, Connecting),
            (Connecting, Up),
            (Connecting, Down),
            (Connecting, Resetting),
            (Resetting, Up),
            (Up, Disconnecting),
            (Error, Disconnecting),
            (Resetting, Disconnecting),
            (Disconnecting, Down),
        ];
        for from in PathState::ALL {
            for to in PathState::ALL {
                let dropped = to == Error && from != Disconnecting;
                let expected = dropped || steps.contains(&(from, to));
                assert_eq!(allowed(from, to), expected, "{from} to {to}");
            }
        }
    }
}
