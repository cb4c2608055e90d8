// SPDX-License-Identifier: GPL-2.0

//! Opens the sockets of an endpoint.

use super::Endpoint;
use crate::channel::Channel;
use crate::config::{Config, Congestion};
use crate::content::Recipe;
use crate::link::Link;
use crate::sizes::Sizes;
use crate::stream::{port_of, Scratch, Stream};
use crate::watch::{Every, Watch};
use anyhow::{bail, Context, Result};
use rds_sys::{Socket, Transport};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::SocketAddr;
use std::time::Instant;
use xxhash_rust::xxh3::xxh3_64_with_seed;

impl Endpoint {
    /// Opens and binds all sockets.
    pub(crate) fn new(config: Config) -> Result<Self> {
        let control = open(&config, config.local)?;
        let sockets = (0..config.streams)
            .map(|index| open_stream(&config, port_of(config.local, index)))
            .collect::<Result<Vec<_>>>()?;
        let transport = check_transport(&config, &control)?;
        let sizes = settle_sizes(&config, &sockets)?;
        let recipe = Recipe {
            key: key(&config),
            session: random(),
            sizes,
        };
        let link = Link::new(config.streams, recipe);
        let now = Instant::now();
        Ok(Self {
            sizes,
            transport,
            channel: Channel::new(control, config.local, config.peer, link),
            streams: (0..)
                .zip(sockets)
                .map(|(index, socket)| Stream::new(socket, &config, index, recipe))
                .collect(),
            scratch: Scratch::new(),
            started: None,
            watch: Watch::new(config.start_timeout, now),
            progress: config.progress.map(|interval| Every::new(interval, now)),
            unpaused: 0,
            paused_until: None,
            config,
        })
    }
}

fn open(config: &Config, addr: SocketAddr) -> Result<Socket> {
    let socket = rds_cli::open_socket()?;
    // The loopback transport is chosen by binding to a loopback address.
    if let Some(transport) = config.transport.filter(|t| *t != Transport::Loopback) {
        socket
            .set_transport(transport)
            .with_context(|| format!("cannot use transport {transport}"))?;
    }
    rds_cli::bind_socket(&socket, addr)?;
    if config.tos != 0 {
        socket
            .set_tos(config.tos)
            .context("cannot set the type of service")?;
    }
    Ok(socket)
}

fn open_stream(config: &Config, addr: SocketAddr) -> Result<Socket> {
    let socket = open(config, addr)?;
    if let Some(bytes) = config.sndbuf {
        socket
            .set_send_buffer(bytes)
            .context("cannot set the send buffer")?;
    } else {
        let wanted = *config.sizes.wanted(config.max_size).end();
        if wanted > socket.send_buffer()? {
            socket
                .set_send_buffer(wanted)
                .context("cannot set the send buffer")?;
        }
    }
    if let Some(bytes) = config.rcvbuf {
        socket
            .set_recv_buffer(bytes)
            .context("cannot set the receive buffer")?;
    }
    let monitor = config.congestion == Congestion::Monitor;
    socket
        .set_cong_monitor(monitor)
        .context("cannot monitor congestion")?;
    if config.zerocopy {
        socket.set_zerocopy(true).context("cannot use zerocopy")?;
    }
    Ok(socket)
}

fn check_transport(config: &Config, socket: &Socket) -> Result<Option<Transport>> {
    let got = socket.transport().context("cannot read the transport")?;
    match config.transport {
        Some(wanted) if got != Some(wanted) => {
            let got = got.map_or("none".to_owned(), |transport| transport.to_string());
            bail!("{} uses transport {got}, not {wanted}", config.local.ip())
        }
        _ => Ok(got),
    }
}

fn settle_sizes(config: &Config, sockets: &[Socket]) -> Result<Sizes> {
    let mut room = usize::MAX;
    for socket in sockets {
        room = room.min(
            socket
                .send_buffer()
                .context("cannot read the send buffer")?,
        );
    }
    config.sizes.settle(config.max_size, room)
}

/// The same seed gives each side other messages.
fn key(config: &Config) -> u64 {
    xxh3_64_with_seed(config.local.to_string().as_bytes(), config.seed)
}

/// A number that differs from run to run.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
