// SPDX-License-Identifier: GPL-2.0

//! Socket options and ioctls.
//!
//! C counterpart: `rds_setsockopt`, `rds_getsockopt`, `rds_ioctl` in `net/rds/af_rds.c`. Unlike C
//! `RDS_CANCEL_SENT_TO` looks at the address family, so a `sockaddr_storage` with an IPv4 address works.

use crate::{
    incoming::Trace,
    info,
    sock::{
        RdsSock,
        RdsSockExt,
        UserSock, //
    },
    transport::Kind,
};
use kernel::{
    prelude::*,
    sync::atomic::Relaxed,
    uaccess::UserSlice, //
};
use weft::net::sockopt::{
    OptIn,
    OptOut, //
};
use weft_proto::rds::{
    addr::Addr,
    sockaddr::{
        SOCKADDR_IN6_LEN,
        SOCKADDR_IN_LEN, //
    },
    uapi::{
        self,
        info as info_option,
        ioctl as request,
        option,
        RX_TRACE_MAX, //
    },
};

/// Bytes of `struct rds_get_mr_args`.
const GET_MR_LEN: usize = 32;
/// Bytes of `struct rds_get_mr_for_dest_args`.
const GET_MR_FOR_DEST_LEN: usize = 160;
/// Bytes of `struct rds_free_mr_args`.
const FREE_MR_LEN: usize = 16;
/// Bytes of `struct rds_rx_trace_so`.
const RX_TRACE_LEN: usize = 4;
/// Bytes of an `int`.
const INT_LEN: usize = 4;

/// `setsockopt`. Sleeps.
pub(crate) fn set(sk: &UserSock, level: i32, name: i32, val: &OptIn<'_>) -> Result {
    if level != uapi::SOL_RDS {
        return Err(ENOPROTOOPT);
    }
    match name {
        option::CANCEL_SENT_TO => cancel_sent_to(sk, val),
        option::GET_MR => memory_region(sk, val, GET_MR_LEN),
        option::GET_MR_FOR_DEST => memory_region(sk, val, GET_MR_FOR_DEST_LEN),
        option::FREE_MR => free_memory_region(sk, val),
        option::RECVERR => {
            sk.report_errors.store(val.read_i32()? != 0, Relaxed);
            Ok(())
        }
        option::CONG_MONITOR => set_monitoring(sk, val.read_i32()? != 0),
        option::TRANSPORT => set_transport(sk, val),
        option::MSG_RXPATH_LATENCY => TracePoints::set(sk, val),
        option::TIMESTAMP_OLD => set_timestamp(sk, val, false),
        option::TIMESTAMP_NEW => set_timestamp(sk, val, true),
        _ => Err(ENOPROTOOPT),
    }
}

/// `getsockopt`. Sleeps.
pub(crate) fn get(sk: &UserSock, level: i32, name: i32, val: &mut OptOut<'_>) -> Result<i32> {
    if level != uapi::SOL_RDS {
        return Err(ENOPROTOOPT);
    }
    match name {
        info_option::FIRST..=info_option::LAST => info::get(sk, name, val),
        option::RECVERR => {
            // ORDERING: A setting on its own.
            let on = sk.report_errors.load(Relaxed);
            put_int(val, i32::from(on))
        }
        option::TRANSPORT => {
            let kind = sk
                .binding
                .lock()
                .attached
                .as_ref()
                .map(|attached| attached.transport.kind());
            put_int(val, kind.map_or(uapi::transport::NONE, |kind| kind as i32))
        }
        _ => Err(ENOPROTOOPT),
    }
}

fn put_int(val: &mut OptOut<'_>, value: i32) -> Result<i32> {
    let bytes = value.to_ne_bytes();
    if usize::try_from(val.len()).map_or(true, |room| room < bytes.len()) {
        return Err(EINVAL);
    }
    val.write(&bytes)?;
    val.set_len(i32::try_from(bytes.len())?);
    Ok(0)
}

/// Cancels what was sent to one destination.
fn cancel_sent_to(sk: &UserSock, val: &OptIn<'_>) -> Result {
    if sk.binding.lock().bound.is_none() {
        return Err(ENOTCONN);
    }
    if val.len() < SOCKADDR_IN_LEN {
        return Err(EINVAL);
    }
    let mut bytes = [0; SOCKADDR_IN6_LEN];
    let len = val.len().min(SOCKADDR_IN6_LEN);
    let bytes = bytes.get_mut(..len).ok_or(EINVAL)?;
    val.read_exact(bytes)?;
    let family = bytes
        .first_chunk::<2>()
        .map(|family| u16::from_ne_bytes(*family));
    let port = bytes
        .get(2..4)
        .and_then(|port| port.try_into().ok())
        .map_or(0, u16::from_be_bytes);
    let address = if len < SOCKADDR_IN6_LEN || family == Some(uapi::AF_INET) {
        let v4: [u8; 4] = bytes
            .get(4..8)
            .and_then(|v4| v4.try_into().ok())
            .ok_or(EINVAL)?;
        Addr::from_v4(v4)
    } else {
        let v6: [u8; 16] = bytes
            .get(8..24)
            .and_then(|v6| v6.try_into().ok())
            .ok_or(EINVAL)?;
        Addr(v6)
    };
    sk.cancel_sent(Some((address, port)));
    Ok(())
}

/// Registering memory: the checks come in C's order; no transport of this version has memory regions.
fn memory_region(sk: &UserSock, val: &OptIn<'_>, len: usize) -> Result {
    if val.len() != len {
        return Err(EINVAL);
    }
    let mut arguments = [0; GET_MR_FOR_DEST_LEN];
    val.read_exact(arguments.get_mut(..len).ok_or(EINVAL)?)?;
    if sk.binding.lock().bound.is_none() {
        return Err(ENOTCONN);
    }
    Err(EOPNOTSUPP)
}

/// Freeing a memory region: there are none, and no transport that could flush unused ones.
fn free_memory_region(_sk: &UserSock, val: &OptIn<'_>) -> Result {
    if val.len() != FREE_MR_LEN {
        return Err(EINVAL);
    }
    let mut arguments = [0; FREE_MR_LEN];
    val.read_exact(&mut arguments)?;
    Err(EINVAL)
}

/// Has the socket told by message when ports become free, or no longer.
fn set_monitoring(sk: &UserSock, on: bool) -> Result {
    let _locked = sk.lock();
    if on {
        sk.net.add_monitor(sk)?;
        // ORDERING: A setting on its own.
        sk.monitoring.store(true, Relaxed);
    } else {
        sk.monitoring.store(false, Relaxed);
        sk.net.remove_monitor(sk);
        *sk.monitor.lock() = Default::default();
    }
    Ok(())
}

/// Chooses the transport before binding.
fn set_transport(sk: &UserSock, val: &OptIn<'_>) -> Result {
    let _locked = sk.lock();
    if sk.binding.lock().attached.is_some() {
        return Err(EOPNOTSUPP);
    }
    if val.len() != INT_LEN {
        return Err(EINVAL);
    }
    let number = val.read_i32()?;
    let kind = match number {
        uapi::transport::IB => Some(Kind::Ib),
        uapi::transport::GAP => None,
        uapi::transport::TCP => Some(Kind::Tcp),
        _ => return Err(EINVAL),
    };
    if kind != Some(Kind::Tcp) && !sk.net().is_init() {
        return Err(EPROTOTYPE);
    }
    let attached = sk.rds.transports.attach(kind.ok_or(ENOPROTOOPT)?)?;
    sk.binding.lock().attached = Some(attached);
    Ok(())
}

/// Turns receive timestamps on or off. Any error of the argument is `EFAULT`, as in C.
fn set_timestamp(sk: &UserSock, val: &OptIn<'_>, new_format: bool) -> Result {
    if val.len() != INT_LEN {
        return Err(EFAULT);
    }
    let on = val.read_i32().map_err(|_| EFAULT)? != 0;
    sk.lock().set_rcvtstamp(on, new_format);
    Ok(())
}

/// Which points in the life of a message an application wants the times of.
#[derive(Clone, Copy, Default)]
pub(crate) struct TracePoints {
    count: u8,
    positions: [u8; RX_TRACE_MAX],
}

impl TracePoints {
    /// Bits of the count in the packed form, and of one position.
    const COUNT_BITS: u32 = 3;
    const POSITION_BITS: u32 = 2;

    /// What the socket asked for.
    #[inline]
    pub(crate) fn of(sk: &RdsSock) -> Self {
        // ORDERING: A setting on its own.
        let packed = sk.trace_points.load(Relaxed);
        let mut this = Self {
            // The masks leave a few bits of each.
            count: (packed & ((1 << Self::COUNT_BITS) - 1)) as u8,
            ..Self::default()
        };
        let mut rest = packed >> Self::COUNT_BITS;
        for position in &mut this.positions {
            *position = (rest & ((1 << Self::POSITION_BITS) - 1)) as u8;
            rest >>= Self::POSITION_BITS;
        }
        this
    }

    /// Whether nothing is asked for.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// `SO_RDS_MSG_RXPATH_LATENCY`. Any error is `EFAULT`, as in C; a bad position also turns tracing off.
    fn set(sk: &UserSock, val: &OptIn<'_>) -> Result {
        let mut bytes = [0; RX_TRACE_LEN];
        if val.len() != bytes.len() {
            return Err(EFAULT);
        }
        val.read_exact(&mut bytes).map_err(|_| EFAULT)?;
        let [count, positions @ ..] = bytes;
        if usize::from(count) > RX_TRACE_MAX {
            return Err(EFAULT);
        }
        let mut packed = u32::from(count);
        let mut shift = Self::COUNT_BITS;
        for position in positions.iter().take(usize::from(count)) {
            if usize::from(*position) >= RX_TRACE_MAX {
                sk.trace_points.store(0, Relaxed);
                return Err(EFAULT);
            }
            packed |= u32::from(*position) << shift;
            shift += Self::POSITION_BITS;
        }
        sk.trace_points.store(packed, Relaxed);
        Ok(())
    }

    /// The control message for a message that is delivered `now`: `struct rds_cmsg_rx_trace`.
    pub(crate) fn record(&self, trace: &Trace, now: u64) -> [u8; 32] {
        let mut record = [0; 32];
        let (head, times) = record.split_at_mut(8);
        for (slot, value) in head
            .iter_mut()
            .zip(Iterator::chain([self.count].iter(), &self.positions))
        {
            *slot = *value;
        }
        let wanted = self.positions.iter().take(usize::from(self.count));
        for (slot, position) in times.chunks_exact_mut(8).zip(wanted) {
            let time = match position {
                0 => trace.start.wrapping_sub(trace.header),
                1 => trace.queued.wrapping_sub(trace.start),
                _ => now.wrapping_sub(trace.queued),
            };
            slot.copy_from_slice(&time.to_ne_bytes());
        }
        record
    }
}

/// `ioctl`. Sleeps.
pub(crate) fn ioctl(sk: &UserSock, cmd: u32, arg: usize) -> Result<i32> {
    match cmd {
        request::SET_TOS => set_tos(sk, arg),
        request::GET_TOS => {
            let tos = sk.binding.lock().tos;
            UserSlice::new(kernel::uaccess::UserPtr::from_addr(arg), 1)
                .writer()
                .write(&tos)?;
            Ok(0)
        }
        _ => Err(ENOIOCTLCMD),
    }
}

fn set_tos(sk: &UserSock, arg: usize) -> Result<i32> {
    let wanted: u8 = UserSlice::new(kernel::uaccess::UserPtr::from_addr(arg), 1)
        .reader()
        .read()?;
    let mut binding = sk.binding.lock();
    let mapped = binding
        .attached
        .as_ref()
        .and_then(|attached| attached.transport.map_tos(wanted))
        .ok_or(ENOIOCTLCMD)?;
    if binding.tos != 0 || binding.cached.is_some() {
        return Err(EINVAL);
    }
    binding.tos = mapped;
    Ok(0)
}
