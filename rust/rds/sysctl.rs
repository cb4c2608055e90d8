// SPDX-License-Identifier: GPL-2.0

//! `/proc/sys/net/rds`: the limits that the administrator can change, in the initial namespace.
//!
//! C counterpart: `net/rds/sysctl.c`.

use crate::state::Rds;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weft::net::{
    ns::ScopedNet,
    sysctl::{
        Entry,
        Limit,
        SysctlTable, //
    },
};

static ENTRIES: [Entry<Rds>; 8] = [
    Entry::jiffies(
        c"reconnect_min_delay_ms",
        |rds| &rds.tunables.reconnect_min,
        Limit::Value(1),
        Limit::Cell(|rds| &rds.tunables.reconnect_max),
    ),
    Entry::jiffies(
        c"reconnect_max_delay_ms",
        |rds| &rds.tunables.reconnect_max,
        Limit::Cell(|rds| &rds.tunables.reconnect_min),
        Limit::Value(usize::MAX),
    ),
    Entry::int(
        c"max_unacked_packets",
        |rds| &rds.tunables.max_unacked_packets,
        i32::MIN,
        i32::MAX,
    ),
    Entry::int(
        c"max_unacked_bytes",
        |rds| &rds.tunables.max_unacked_bytes,
        i32::MIN,
        i32::MAX,
    ),
    Entry::int(
        c"ping_enable",
        |rds| &rds.tunables.ping_enable,
        i32::MIN,
        i32::MAX,
    ),
    Entry::jiffies(
        c"idle_timeout_ms",
        |rds| &rds.tunables.idle_timeout,
        Limit::Value(0),
        Limit::Value(usize::MAX),
    ),
    Entry::ulong(
        c"max_unread_bytes",
        |rds| &rds.tunables.max_unread_bytes,
        Limit::Value(0),
        Limit::Value(usize::MAX),
    ),
    Entry::int(
        c"max_connections",
        |rds| &rds.tunables.max_connections,
        1,
        i32::MAX,
    ),
];

/// Creates the files. Sleeps.
pub(crate) fn register(net: &ScopedNet<'_>, rds: &Arc<Rds>) -> Result<SysctlTable<Rds>> {
    SysctlTable::new(net, c"net/rds", rds.clone(), &ENTRIES)
}
