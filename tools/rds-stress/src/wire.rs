// SPDX-License-Identifier: GPL-2.0

//! The options as they go over the control connection, once, from the active to the passive side.
//!
//! There are three layouts, each with the fields of the one before:
//!
//! * *plain*, 59 bytes, which every version understands;
//! * *versioned*, 77 bytes: the sender's version in front; type of service and async at the end. It is
//!   used if one of these is not zero. A passive side of rds-tools takes it only from its own version;
//! * *IPv6*, 113 bytes: with IPv6 addresses at the end; used if the control connection is IPv6.

use crate::header::Family;
use crate::options::{Options, Rdma};
use anyhow::{ensure, Context, Result};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of the version.
const VERSION: usize = 16;
/// Bytes of the plain layout.
const PLAIN: usize = 59;
/// Bytes of the versioned layout without the version.
const VERSIONED: usize = PLAIN + 2;
/// Bytes of the IPv6 layout without the version.
const IPV6: usize = VERSIONED + 36;

/// The options with the layout they need; `version` is what the other side has.
pub(crate) fn encode(options: &Options, version: &str) -> Vec<u8> {
    let ipv6 = options.family() == Family::V6;
    let mut bytes = Vec::with_capacity(VERSION + IPV6);
    let plain = !ipv6 && options.tos == 0 && !options.async_send;
    if !plain {
        bytes.extend(version.bytes().take(VERSION - 1));
        bytes.resize(VERSION, 0);
    }
    put_plain(options, &mut bytes);
    if plain {
        return bytes;
    }
    bytes.extend([options.tos, options.async_send.into()]);
    if ipv6 {
        for addr in [options.send_addr, options.receive_addr] {
            bytes.extend(v6(addr).octets());
        }
        // The number of an interface has a meaning only at home.
        bytes.extend([0; 4]);
    }
    bytes
}

fn put_plain(options: &Options, bytes: &mut Vec<u8>) {
    let rdma = &options.rdma;
    for number in [options.depth, options.req_size, options.ack_size, rdma.size] {
        bytes.extend(number.to_be_bytes());
    }
    for addr in [options.send_addr, options.receive_addr] {
        bytes.extend(v4(addr).octets());
    }
    bytes.extend(options.port.to_be_bytes());
    bytes.extend(options.tasks.to_be_bytes());
    bytes.extend(options.run_time.to_be_bytes());
    let flags = [
        options.summary_only,
        options.realtime,
        options.trace,
        options.verify,
        options.show_params,
        options.show_perfdata,
        options.cong_monitor,
        rdma.use_once,
        rdma.use_get_mr,
        rdma.use_fence,
        rdma.cache_mrs,
        rdma.key_o_meter,
        // Warnings are not suppressed.
        false,
        options.one_way,
    ];
    bytes.extend(flags.map(u8::from));
    bytes.push(rdma.mode);
    for number in [rdma.vector, rdma.alignment, options.connect_retries] {
        bytes.extend(number.to_be_bytes());
    }
}

/// Reads the options from a control connection of the given family.
pub(crate) fn read(stream: &mut impl Read, family: Family) -> Result<Options> {
    let mut bytes = [0; VERSION + IPV6];
    read_exact(stream, &mut bytes[..VERSION])?;
    let body = if is_version(&bytes[..VERSION]) {
        let len = match family {
            Family::V4 => VERSIONED,
            Family::V6 => IPV6,
        };
        read_exact(stream, &mut bytes[VERSION..VERSION + len])?;
        &bytes[VERSION..]
    } else {
        ensure!(
            family == Family::V4,
            "the peer's options have no version, and no addresses for IPv6"
        );
        read_exact(stream, &mut bytes[VERSION..PLAIN])?;
        &bytes[..]
    };
    Ok(parse(&mut Fields(body), family))
}

fn read_exact(stream: &mut impl Read, bytes: &mut [u8]) -> Result<()> {
    stream
        .read_exact(bytes)
        .context("cannot read the peer's options")
}

/// Whether these are a version such as 2.0.7 and not the first numbers of a plain layout, for which
/// they would be a depth of more than 800 million.
fn is_version(bytes: &[u8]) -> bool {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let digit = |byte: &u8| byte.is_ascii_digit();
    text.first().is_some_and(digit)
        && text.last().is_some_and(digit)
        && text.contains(&b'.')
        && text.iter().all(|byte| digit(byte) || *byte == b'.')
}

/// The bytes of a body that were not read yet; there are always enough.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let (head, rest) = self.0.split_at(N);
        bytes.copy_from_slice(head);
        self.0 = rest;
        bytes
    }

    fn u8(&mut self) -> u8 {
        u8::from_be_bytes(self.take())
    }

    fn flag(&mut self) -> bool {
        self.u8() != 0
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    fn v4(&mut self) -> IpAddr {
        Ipv4Addr::from(self.take::<4>()).into()
    }

    fn v6(&mut self) -> IpAddr {
        Ipv6Addr::from(self.take::<16>()).into()
    }
}

/// Reads all fields in the order of the layout; those that the layout lacks are zero.
fn parse(fields: &mut Fields<'_>, family: Family) -> Options {
    let (depth, req_size, ack_size, rdma_size) =
        (fields.u32(), fields.u32(), fields.u32(), fields.u32());
    let (send_v4, receive_v4) = (fields.v4(), fields.v4());
    let (port, tasks, run_time) = (fields.u16(), fields.u16(), fields.u32());
    let [summary_only, realtime, trace, verify, show_params, show_perfdata, cong_monitor] =
        [(); 7].map(|()| fields.flag());
    let [use_once, use_get_mr, use_fence, cache_mrs, key_o_meter] = [(); 5].map(|()| fields.flag());
    let [_suppress_warnings, one_way] = [(); 2].map(|()| fields.flag());
    let mode = fields.u8();
    let (vector, alignment, connect_retries) = (fields.u32(), fields.u32(), fields.u32());
    let (tos, async_send) = (fields.u8(), fields.flag());
    let (send_addr, receive_addr) = match family {
        Family::V4 => (send_v4, receive_v4),
        Family::V6 => (fields.v6(), fields.v6()),
    };
    Options {
        depth,
        req_size,
        ack_size,
        send_addr,
        receive_addr,
        port,
        tasks,
        run_time,
        summary_only,
        realtime,
        trace,
        verify,
        show_params,
        show_perfdata,
        cong_monitor,
        one_way,
        connect_retries,
        tos,
        async_send,
        rdma: Rdma {
            size: rdma_size,
            use_once,
            use_get_mr,
            use_fence,
            cache_mrs,
            key_o_meter,
            mode,
            vector,
            alignment,
        },
    }
}

/// The address in the field for IPv4, which is unspecified for the others.
fn v4(addr: IpAddr) -> Ipv4Addr {
    match addr {
        IpAddr::V4(ip) => ip,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}

fn v6(addr: IpAddr) -> Ipv6Addr {
    match addr {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

#[cfg(test)]
mod tests;
