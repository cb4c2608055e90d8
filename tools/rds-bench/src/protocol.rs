// SPDX-License-Identifier: GPL-2.0

//! What client and server say on the control port.
//!
//! The client asks for a sample until the server is ready, since a request to a port nobody has bound
//! is lost. After the last message of the sample the server says so. Everything else can not be lost.

use anyhow::{Context, Result};
use rds_sys::cpu::CpuTime;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Version of this conversation.
const VERSION: u32 = 2;
/// As many data sockets as a client may have.
const MAX_PORTS: usize = 8;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The server returns each message.
    Rr,
    /// The server counts the messages.
    Stream,
}

/// The client asks for a sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    version: u32,
    /// Tells samples apart.
    pub(crate) id: u64,
    pub(crate) kind: Kind,
    /// Bytes of each message.
    pub(crate) size: usize,
    /// Messages of the sample.
    pub(crate) count: u64,
    /// The client's data ports. Messages are numbered separately for each, as only their order is fixed.
    // Version 1 had one port and is refused; so it must be read.
    #[serde(default)]
    pub(crate) ports: Vec<u16>,
    /// Messages of a data socket after which their numbers begin again.
    #[serde(default)]
    pub(crate) period: u64,
}

impl Request {
    pub(crate) fn new(
        id: u64,
        kind: Kind,
        size: usize,
        count: u64,
        ports: Vec<u16>,
        period: u64,
    ) -> Self {
        Self {
            version: VERSION,
            id,
            kind,
            size,
            count,
            ports,
            period,
        }
    }

    /// Whether both programs speak the same version, and there is somebody to exchange messages with.
    pub(crate) fn understood(&self) -> bool {
        self.version == VERSION && self.period > 0 && (1..=MAX_PORTS).contains(&self.ports.len())
    }
}

/// The server answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// The sample may begin.
    Ready { id: u64 },
    /// The last message has arrived.
    Done { id: u64, cpu: CpuTime },
    /// There will be no sample.
    Refused { id: u64, reason: String },
}

/// A message of the conversation as it is sent.
pub(crate) fn encode(message: &impl Serialize) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec(message)?)
}

/// Reads a message of the conversation.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).context("there is something else on the other control port")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_round_trip() {
        let request = Request::new(1, Kind::Rr, 64, 10, vec![4000, 4001], 16);
        assert_eq!(
            decode::<Request>(&encode(&request).unwrap()).unwrap(),
            request
        );
        assert!(request.understood());
        let reply = Reply::Done {
            id: 1,
            cpu: CpuTime {
                user_ns: 2,
                system_ns: 3,
            },
        };
        assert_eq!(decode::<Reply>(&encode(&reply).unwrap()).unwrap(), reply);
        assert!(decode::<Reply>(b"{}").is_err());
    }

    #[test]
    fn strange_requests_are_read_to_be_refused() {
        let old = br#"{"version":1,"id":7,"kind":"rr","size":64,"count":10,"port":4000}"#;
        let request = decode::<Request>(old).unwrap();
        assert!(request.id == 7 && !request.understood());
        for (ports, period) in [(vec![], 1), ((4000..4009).collect(), 1), (vec![4000], 0)] {
            assert!(!Request::new(1, Kind::Stream, 64, 10, ports, period).understood());
        }
    }
}
