// SPDX-License-Identifier: GPL-2.0

//! The control connection: one TCP connection for each run.
//!
//! The active side sends the options. When all its sockets are bound it sends one byte, and the passive
//! side, whose sockets are bound by then, sends it back. Both begin. When the active side is done it sends
//! another byte and still answers requests until the passive side closes the connection. An active side of
//! rds-tools just closes it, and answers nothing any more.

use crate::header::Family;
use crate::options::Options;
use crate::report::Output;
use crate::wire;
use anyhow::{anyhow, bail, Context, Result};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// Time between two attempts to connect.
const AGAIN: Duration = Duration::from_secs(1);

/// The connection and the addresses of its ends, IPv4 addresses as such.
pub(crate) struct Control {
    stream: TcpStream,
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
}

impl Control {
    /// Connects to a passive side, up to `retries` times more if there is none yet.
    pub(crate) fn connect(
        local: Option<SocketAddr>,
        peer: SocketAddr,
        retries: u32,
        output: Output,
    ) -> Result<Self> {
        output.text(&format!("connecting to {peer}"))?;
        let mut tries = 0;
        let result = loop {
            match rds_sys::connect_from(local, peer) {
                Err(error) if may_come(&error) && tries < retries => {
                    if tries == 0 {
                        let text = rds_cli::error_text(&error);
                        output.text(&format!(": {text} - retrying"))?;
                    }
                    output.text(".")?;
                    tries += 1;
                    thread::sleep(AGAIN);
                }
                other => break other,
            }
        };
        output.text("\n")?;
        let failed = |error| anyhow!("cannot connect to {peer}: {}", rds_cli::error_text(&error));
        Self::new(result.map_err(failed)?)
    }

    /// Waits for an active side, at one address or at all of them.
    pub(crate) fn accept(own: Option<SocketAddr>, port: u16, output: Output) -> Result<Self> {
        let (listener, name) = listen(own, port)?;
        output.text(&format!("waiting for incoming connection on {name}\n"))?;
        let (stream, _) = listener.accept().context("cannot accept a connection")?;
        let control = Self::new(stream)?;
        let at = match own {
            Some(_) => String::new(),
            None => format!(" on {}", control.local),
        };
        output.text(&format!("accepted connection from {}{at}\n", control.peer))?;
        Ok(control)
    }

    fn new(stream: TcpStream) -> Result<Self> {
        let local = canonical(
            stream
                .local_addr()
                .context("the connection has no address")?,
        );
        let peer = canonical(stream.peer_addr().context("the peer has no address")?);
        Ok(Self {
            stream,
            local,
            peer,
        })
    }

    /// Tells the passive side the options; `version` is what it may want to hear.
    pub(crate) fn send_options(&mut self, options: &Options, version: &str) -> Result<()> {
        let bytes = wire::encode(options, version);
        self.stream
            .write_all(&bytes)
            .context("cannot send the options")
    }

    /// Reads the options of the active side.
    pub(crate) fn receive_options(&mut self) -> Result<Options> {
        wire::read(&mut self.stream, Family::of(self.peer.ip()))
    }

    /// Says that the own sockets are bound.
    pub(crate) fn send_ready(&mut self) -> Result<()> {
        self.stream
            .write_all(&[0])
            .context("cannot tell the other side to begin")
    }

    /// Waits until the other side's sockets are bound.
    pub(crate) fn await_ready(&mut self) -> Result<()> {
        match self.stream.read_exact(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                bail!("the other side gave up; it says why")
            }
            other => other.context("the other side did not begin"),
        }
    }

    /// Tells the passive side that this one is done, but still answers requests.
    pub(crate) fn send_done(&mut self) -> Result<()> {
        match self.stream.write_all(&[0]) {
            Err(error) if is_gone(&error) => Ok(()),
            other => other.context("cannot tell the other side to end"),
        }
    }

    /// Waits for some time, or less if the other side says something or a signal arrives.
    pub(crate) fn wait(&self, time: Duration) -> Result<Heard> {
        if time.is_zero() {
            return Ok(Heard::Nothing);
        }
        self.stream
            .set_read_timeout(Some(time))
            .context("cannot wait for the other side")?;
        match self.stream.peek(&mut [0]) {
            Ok(0) => Ok(Heard::Gone),
            Ok(_) => Ok(Heard::Done),
            Err(error) if is_gone(&error) => Ok(Heard::Gone),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                    Ok(Heard::Nothing)
                }
                _ => Err(error).context("the control connection broke"),
            },
        }
    }
}

/// What the other side said meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Nothing,
    /// It is done and waits for this side to be done, too.
    Done,
    /// It has closed the connection, which is what rds-tools do when they are done.
    Gone,
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
    )
}

/// Whether a passive side may turn up in spite of this error.
fn may_come(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable
    )
}

/// Listens, and names where. A machine may have no IPv6.
fn listen(own: Option<SocketAddr>, port: u16) -> Result<(TcpListener, String)> {
    if let Some(mut own) = own {
        own.set_port(port);
        let listener = TcpListener::bind(own).with_context(|| format!("cannot listen on {own}"))?;
        return Ok((listener, own.to_string()));
    }
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))
        .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))
        .with_context(|| format!("cannot listen on port {port}"))?;
    Ok((listener, format!("*:{port}")))
}

/// An IPv4 address that a listener for IPv6 sees is still one.
fn canonical(mut addr: SocketAddr) -> SocketAddr {
    if addr.ip().to_canonical() != addr.ip() {
        addr.set_ip(addr.ip().to_canonical());
    }
    addr
}

#[cfg(test)]
mod tests;
