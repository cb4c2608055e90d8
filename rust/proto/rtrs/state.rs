// SPDX-License-Identifier: GPL-2.0

//! States of a path, on the client and on the server, and what moves it from one to the next.
//!
//! Whoever learns of something that concerns a path reports it as an event. The event has an effect only in the states
//! that have a step for it; in all others it came too late or too early and the error says so. So it does not matter
//! how many report that a connection is lost, or in what order: the first one moves the path and takes care of the rest.
//!
//! C counterpart: `rtrs_clt_change_state()` in `rtrs-clt.c`, `rtrs_srv_change_state()` in `rtrs-srv.c`.

use core::fmt;

/// State of a path of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum ClientState {
    /// The connections are being made and the info exchange takes place.
    #[default]
    Connecting = 0,
    /// Requests may be sent.
    Connected = 1,
    /// The attempt failed; what it made is being taken down.
    ConnectingErr = 2,
    /// What was connected is taken down; after a while there will be another attempt.
    Reconnecting = 3,
    /// What was connected is taken down for good.
    Closing = 4,
    /// Nothing is left but the path itself; it can be connected again.
    Closed = 5,
    /// The path has been removed.
    Dead = 6,
}

/// What happens to a path of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// Another attempt begins.
    Attempt,
    /// The info exchange is over: the attempt has succeeded.
    Established,
    /// A connection, the info exchange or the heartbeat failed.
    Failed,
    /// Another attempt is wanted: because one failed or by order.
    Retry,
    /// No further attempt is wanted: by order, because the device goes, or because all attempts are used up.
    Close,
    /// Everything has been taken down.
    Closed,
    /// The path is to be removed.
    Remove,
}

impl ClientState {
    /// All states in the order of their values.
    pub const ALL: [Self; 7] = [
        Self::Connecting,
        Self::Connected,
        Self::ConnectingErr,
        Self::Reconnecting,
        Self::Closing,
        Self::Closed,
        Self::Dead,
    ];

    /// State with the value `raw`, if there is one.
    #[inline]
    pub const fn from_i32(raw: i32) -> Option<Self> {
        Some(match raw {
            0 => Self::Connecting,
            1 => Self::Connected,
            2 => Self::ConnectingErr,
            3 => Self::Reconnecting,
            4 => Self::Closing,
            5 => Self::Closed,
            6 => Self::Dead,
            _ => return None,
        })
    }

    /// Value of the state, to be kept in an atomic.
    #[inline]
    pub const fn as_i32(self) -> i32 {
        self as i32
    }

    /// State after `event`.
    #[inline]
    pub const fn step(self, event: ClientEvent) -> Result<Self, NoStep<Self, ClientEvent>> {
        use ClientEvent as On;
        use ClientState as In;

        Ok(match (self, event) {
            (In::Reconnecting, On::Attempt) => In::Connecting,
            (In::Connecting, On::Established) => In::Connected,
            (In::Connecting, On::Failed) => In::ConnectingErr,
            (In::Connected, On::Failed) => In::Reconnecting,
            (In::Connected | In::ConnectingErr | In::Closed, On::Retry) => In::Reconnecting,
            (In::Connecting | In::Connected | In::ConnectingErr | In::Reconnecting, On::Close) => {
                In::Closing
            }
            (In::Closing, On::Closed) => In::Closed,
            (In::Closed, On::Remove) => In::Dead,
            (state, event) => return Err(NoStep { state, event }),
        })
    }

    /// Whether requests may be sent.
    #[inline]
    pub const fn is_connected(self) -> bool {
        matches!(self, Self::Connected)
    }

    /// What the file `state` of the path shows.
    pub const fn sysfs_name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            _ => "disconnected",
        }
    }

    /// Name for log lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::ConnectingErr => "failing to connect",
            Self::Reconnecting => "reconnecting",
            Self::Closing => "closing",
            Self::Closed => "closed",
            Self::Dead => "removed",
        }
    }
}

/// State of a path of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i32)]
pub enum ServerState {
    /// Connections arrive.
    #[default]
    Connecting = 0,
    /// The info exchange is over; requests are accepted.
    Connected = 1,
    /// The path is taken down.
    Closing = 2,
    /// Nothing is left of it.
    Closed = 3,
}

/// What happens to a path of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// A good info request was received.
    Established,
    /// The path has to go: an error, the peer's wish, an order, or the end of the module.
    Close,
    /// Everything has been taken down.
    Closed,
}

impl ServerState {
    /// All states in the order of their values.
    pub const ALL: [Self; 4] = [
        Self::Connecting,
        Self::Connected,
        Self::Closing,
        Self::Closed,
    ];

    /// State with the value `raw`, if there is one.
    #[inline]
    pub const fn from_i32(raw: i32) -> Option<Self> {
        Some(match raw {
            0 => Self::Connecting,
            1 => Self::Connected,
            2 => Self::Closing,
            3 => Self::Closed,
            _ => return None,
        })
    }

    /// Value of the state, to be kept in an atomic.
    #[inline]
    pub const fn as_i32(self) -> i32 {
        self as i32
    }

    /// State after `event`.
    #[inline]
    pub const fn step(self, event: ServerEvent) -> Result<Self, NoStep<Self, ServerEvent>> {
        use ServerEvent as On;
        use ServerState as In;

        Ok(match (self, event) {
            (In::Connecting, On::Established) => In::Connected,
            (In::Connecting | In::Connected, On::Close) => In::Closing,
            (In::Closing, On::Closed) => In::Closed,
            (state, event) => return Err(NoStep { state, event }),
        })
    }

    /// Name for log lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Closing => "closing",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for ClientState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A state has no step for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoStep<S, E> {
    /// The state, which stays.
    pub state: S,
    /// The event.
    pub event: E,
}

impl<S: fmt::Display, E: fmt::Debug> fmt::Display for NoStep<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "path is {}, there is no step for '{:?}'",
            self.state, self.event
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        string::ToString,
        vec::Vec, //
    };

    const CLIENT_EVENTS: [ClientEvent; 7] = [
        ClientEvent::Attempt,
        ClientEvent::Established,
        ClientEvent::Failed,
        ClientEvent::Retry,
        ClientEvent::Close,
        ClientEvent::Closed,
        ClientEvent::Remove,
    ];

    /// Pairs of states with a step from the first to the second.
    fn client_steps() -> Vec<(ClientState, ClientState)> {
        let mut steps = Vec::new();
        for from in ClientState::ALL {
            steps.extend(
                CLIENT_EVENTS
                    .iter()
                    .filter_map(|event| Some((from, from.step(*event).ok()?))),
            );
        }
        steps
    }

    #[test]
    fn values_both_ways() {
        for (raw, state) in (0..).zip(ClientState::ALL) {
            assert_eq!(
                (state.as_i32(), ClientState::from_i32(raw)),
                (raw, Some(state))
            );
        }
        for (raw, state) in (0..).zip(ServerState::ALL) {
            assert_eq!(
                (state.as_i32(), ServerState::from_i32(raw)),
                (raw, Some(state))
            );
        }
        assert_eq!(ClientState::from_i32(7), None);
        assert_eq!(ServerState::from_i32(-1), None);
    }

    #[test]
    fn client_steps_are_exactly_those_of_the_table() {
        use ClientState::*;
        // New state and where it can be reached from.
        let table: [(ClientState, &[ClientState]); 7] = [
            (Connecting, &[Reconnecting]),
            (Connected, &[Connecting]),
            (ConnectingErr, &[Connecting]),
            (Reconnecting, &[Connected, ConnectingErr, Closed]),
            (
                Closing,
                &[Connecting, ConnectingErr, Reconnecting, Connected],
            ),
            (Closed, &[Closing]),
            (Dead, &[Closed]),
        ];
        let steps = client_steps();
        for (to, sources) in table {
            for from in ClientState::ALL {
                assert_eq!(
                    steps.contains(&(from, to)),
                    sources.contains(&from),
                    "{from} to {to}"
                );
            }
        }
    }

    #[test]
    fn a_failure_counts_once() {
        let state = ClientState::Connected.step(ClientEvent::Failed).unwrap();
        let error = state.step(ClientEvent::Failed).unwrap_err();
        assert_eq!(
            error,
            NoStep {
                state,
                event: ClientEvent::Failed
            }
        );
        assert_eq!(
            error.to_string(),
            "path is reconnecting, there is no step for 'Failed'"
        );
        let connecting = ClientState::Connecting.step(ClientEvent::Failed);
        assert_eq!(connecting, Ok(ClientState::ConnectingErr));
    }

    #[test]
    fn server_steps_are_exactly_those_of_the_table() {
        use ServerState::*;
        let table = [
            (Connecting, [Some(Connected), Some(Closing), None]),
            (Connected, [None, Some(Closing), None]),
            (Closing, [None, None, Some(Closed)]),
            (Closed, [None, None, None]),
        ];
        let events = [
            ServerEvent::Established,
            ServerEvent::Close,
            ServerEvent::Closed,
        ];
        for (from, expected) in table {
            assert_eq!(
                events.map(|event| from.step(event).ok()),
                expected,
                "{from}"
            );
        }
    }

    #[test]
    fn sysfs_shows_two_words() {
        for state in ClientState::ALL {
            let expected = if state.is_connected() {
                "connected"
            } else {
                "disconnected"
            };
            assert_eq!(state.sysfs_name(), expected);
        }
    }
}
