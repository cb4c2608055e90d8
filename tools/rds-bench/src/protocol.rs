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
const VERSION: u32 = 1;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    version: u32,
    /// Tells samples apart.
    pub(crate) id: u64,
    pub(crate) kind: Kind,
    /// Bytes of each message.
    pub(crate) size: usize,
    /// Messages of the sample.
    pub(crate) count: u64,
    /// The client's data port.
    pub(crate) port: u16,
}

impl Request {
    pub(crate) fn new(id: u64, kind: Kind, size: usize, count: u64, port: u16) -> Self {
        Self {
            version: VERSION,
            id,
            kind,
            size,
            count,
            port,
        }
    }

    /// Whether both programs speak the same version.
    pub(crate) fn understood(&self) -> bool {
        self.version == VERSION
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
        let request = Request::new(1, Kind::Rr, 64, 10, 4000);
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
}
