// SPDX-License-Identifier: GPL-2.0

//! The command line, with the options of rds-tools.

use crate::header::Family;
use crate::options::{Options, Rdma};
use anyhow::{bail, Result};
use clap::Parser;
use rds_cli::parse_count;
use std::net::{IpAddr, SocketAddr};

/// Versions of rds-tools whose layout of options is the one that is sent.
const VERSION_V4: &str = "2.0.7";
const VERSION_V6: &str = "2.3.0";

/// Send messages between groups of tasks over RDS sockets
///
/// Without --send-addr it waits for another one to connect (it is passive) and does what that one says.
/// Sizes and numbers may end with k, m or g.
#[derive(Parser)]
#[command(name = "rds-stress", version, disable_version_flag = true)]
pub(crate) struct Args {
    /// Local address
    #[arg(short = 'r', long, value_name = "ADDRESS")]
    recv_addr: Option<String>,
    /// Port of the control connection; the tasks use those that follow
    #[arg(short, long, value_name = "PORT", default_value = "4000", value_parser = number::<u16>)]
    port: u16,
    /// Address of a passive rds-stress
    #[arg(short = 's', long, value_name = "ADDRESS")]
    send_addr: Option<String>,
    /// Bytes of an ack; by default as few as possible (63, with IPv6 96)
    #[arg(short, long, value_name = "BYTES", value_parser = number::<u32>)]
    ack_bytes: Option<u32>,
    /// Bytes of a request
    #[arg(short = 'q', long, value_name = "BYTES", default_value = "1024", value_parser = number::<u32>)]
    req_bytes: u32,
    /// Let only this side send requests
    #[arg(short, long)]
    one_way: bool,
    /// Requests that are outstanding between two tasks
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = number::<u32>)]
    depth: u32,
    /// Tasks on each side
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = number::<u16>)]
    tasks: u16,
    /// Seconds to run; 0 means until stopped
    #[arg(short = 'T', long, value_name = "SECONDS", default_value = "0", value_parser = number::<u32>)]
    time: u32,
    /// Type of service
    #[arg(short = 'Q', long, value_name = "TOS", default_value = "0", value_parser = number::<u8>)]
    tos: u8,
    /// Measure how busy the machine is, with a thread for each processor; of this side only
    #[arg(short = 'c', long)]
    report_cpu: bool,
    /// Print only the summary
    #[arg(short = 'z', long)]
    report_summary: bool,
    /// Give the thread that prints precedence over all others (SCHED_RR)
    #[arg(short = 'R', long)]
    rtprio: bool,
    /// Fill messages with a pattern, and verify it
    #[arg(short, long)]
    verify: bool,
    /// Print each message to standard error
    #[arg(short = 'V', long)]
    trace: bool,
    /// Print the most important options first
    #[arg(long)]
    show_params: bool,
    /// Print comma-separated values with all counters of RDS instead of the table
    #[arg(long)]
    show_perfdata: bool,
    /// Print round-trip times of more microseconds than this
    #[arg(long, value_name = "USEC", value_parser = parse_count)]
    show_outliers: Option<u64>,
    /// Print how the round-trip times are distributed
    #[arg(long)]
    show_histogram: bool,
    /// Try so many times more, once a second, if there is no passive rds-stress yet
    #[arg(long, value_name = "N", default_value = "0", value_parser = number::<u32>)]
    connect_retries: u32,
    /// Ask for notices about the end of congestion: 0 or 1
    #[arg(long, value_name = "SWITCH", default_value = "1", value_parser = switch)]
    use_cong_monitor: Switch,
    /// Print one JSON document at the end and nothing else
    #[arg(long)]
    json: bool,
    /// Version of the other side's rds-tools, which matters with --tos and IPv6
    #[arg(long, value_name = "VERSION")]
    peer_version: Option<String>,
    /// Print the version
    #[arg(long, action = clap::ArgAction::Version)]
    version: Option<bool>,
    /// RDMA: bytes of an operation; this program has none
    #[arg(short = 'D', long, value_name = "BYTES", default_value = "0", value_parser = number::<u32>)]
    rdma_bytes: u32,
    /// RDMA: buffers of an operation
    #[arg(short = 'I', long, value_name = "N", default_value = "1", value_parser = vector)]
    rdma_buffers: u32,
    /// RDMA: 0 reads and writes, 1 only reads, 2 only writes
    #[arg(short = 'M', long, value_name = "MODE", default_value = "0", value_parser = mode)]
    rdma_mode: u8,
    #[command(flatten)]
    rdma: RdmaSwitches,
    /// Ask for a notice when a message has arrived; only some kernels of Oracle can do that
    #[arg(long = "async")]
    async_send: bool,
    /// Reset the connection; only some kernels of Oracle can do that
    #[arg(long)]
    reset: bool,
}

/// What matters only to RDMA operations.
#[derive(clap::Args)]
struct RdmaSwitches {
    #[arg(long, hide = true, default_value = "0", value_parser = switch)]
    rdma_use_once: Switch,
    #[arg(long, hide = true, default_value = "0", value_parser = switch)]
    rdma_use_get_mr: Switch,
    #[arg(long, hide = true, default_value = "1", value_parser = switch)]
    rdma_use_fence: Switch,
    #[arg(long, hide = true, default_value = "1", value_parser = switch)]
    rdma_use_notify: Switch,
    #[arg(long, hide = true, default_value = "0", value_parser = switch)]
    rdma_cache_mrs: Switch,
    #[arg(long, hide = true, default_value = "0", value_parser = number::<u32>)]
    rdma_alignment: u32,
    #[arg(long, hide = true)]
    rdma_key_o_meter: bool,
}

/// On or off, said by a number.
#[derive(Clone, Copy)]
struct Switch(bool);

/// What to do.
pub(crate) enum Role {
    /// Connect to a passive side and tell it the options.
    Active(Active),
    /// Wait for an active side.
    Passive {
        local: Option<SocketAddr>,
        port: u16,
    },
}

/// What the active side knows before it connects.
pub(crate) struct Active {
    /// The other side's control port.
    pub(crate) peer: SocketAddr,
    /// Own address, if the user said one.
    pub(crate) local: Option<SocketAddr>,
    pub(crate) options: Options,
    /// Version of the other side.
    pub(crate) version: String,
}

/// What concerns only this side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Local {
    pub(crate) report_cpu: bool,
    pub(crate) histogram: bool,
    pub(crate) outlier_usec: Option<u64>,
    pub(crate) json: bool,
}

impl Args {
    /// What is not agreed with the other side.
    pub(crate) fn local(&self) -> Local {
        Local {
            report_cpu: self.report_cpu,
            histogram: self.show_histogram,
            outlier_usec: self.show_outliers,
            json: self.json,
        }
    }

    /// Finds the addresses and checks the options.
    pub(crate) fn role(self) -> Result<Role> {
        if self.reset {
            bail!("resetting a connection (--reset) is not there: no mainline kernel can do it");
        }
        let own = self.recv_addr.as_deref();
        let Some(host) = &self.send_addr else {
            let local = own.map(rds_cli::resolve).transpose()?;
            let port = self.port;
            return Ok(Role::Passive { local, port });
        };
        let mut peer = rds_cli::resolve(host)?;
        peer.set_port(self.port);
        let resolve_own = |host| rds_cli::resolve_near(host, peer);
        let local = own.map(resolve_own).transpose()?;
        let options = self.options(peer.ip(), local.map(|addr| addr.ip()));
        options.check()?;
        let version = self.peer_version.unwrap_or_else(|| {
            let version = match options.family() {
                Family::V4 => VERSION_V4,
                Family::V6 => VERSION_V6,
            };
            version.to_owned()
        });
        Ok(Role::Active(Active {
            peer,
            local,
            options,
            version,
        }))
    }

    /// The options; the own address is not known yet if the user said none.
    fn options(&self, peer: IpAddr, own: Option<IpAddr>) -> Options {
        // CAST: 63 or 96.
        let least = Family::of(peer).header_len() as u32;
        Options {
            depth: self.depth,
            req_size: self.req_bytes,
            ack_size: self.ack_bytes.unwrap_or(least),
            send_addr: peer,
            receive_addr: own.unwrap_or(peer),
            port: self.port,
            tasks: self.tasks,
            run_time: self.time,
            summary_only: self.report_summary,
            realtime: self.rtprio,
            trace: self.trace,
            verify: self.verify,
            show_params: self.show_params,
            show_perfdata: self.show_perfdata,
            cong_monitor: self.use_cong_monitor.0,
            one_way: self.one_way,
            connect_retries: self.connect_retries,
            tos: self.tos,
            async_send: self.async_send,
            rdma: self.rdma(),
        }
    }

    fn rdma(&self) -> Rdma {
        Rdma {
            size: self.rdma_bytes,
            use_once: self.rdma.rdma_use_once.0,
            use_get_mr: self.rdma.rdma_use_get_mr.0,
            use_fence: self.rdma.rdma_use_fence.0,
            cache_mrs: self.rdma.rdma_cache_mrs.0,
            key_o_meter: self.rdma.rdma_key_o_meter,
            mode: self.rdma_mode,
            vector: self.rdma_buffers,
            alignment: self.rdma.rdma_alignment,
        }
    }
}

/// A number that fits where it goes.
fn number<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    N::try_from(parse_count(text)?).map_err(|_| format!("'{text}' is too large"))
}

fn at_most<N: TryFrom<u64> + PartialOrd + std::fmt::Display>(
    text: &str,
    most: N,
) -> Result<N, String> {
    let value = number(text)?;
    if value <= most {
        Ok(value)
    } else {
        Err(format!("'{text}' is more than {most}"))
    }
}

fn vector(text: &str) -> Result<u32, String> {
    at_most(text, 512)
}

fn mode(text: &str) -> Result<u8, String> {
    at_most(text, 2)
}

fn switch(text: &str) -> Result<Switch, String> {
    at_most::<u8>(text, 1).map(|value| Switch(value == 1))
}

#[cfg(test)]
mod tests;
