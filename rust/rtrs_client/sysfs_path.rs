// SPDX-License-Identifier: GPL-2.0

//! The files of a path: `/sys/class/rtrs-client/<session>/paths/<source>@<destination>/`.

use crate::path::Path;
use kernel::{
    prelude::*,
    str::CString,
    sync::Arc, //
};
use weft::{
    fmt::Plain,
    sysfs::{
        Active,
        Attribute,
        Attributes,
        Kobj,
        Node,
        PageWriter, //
    }, //
};
use weft_proto::text::parse_one;

/// The directory of a path. Dropping it removes it and waits for who uses the files.
pub(crate) struct PathFiles {
    _stats: Kobj,
    _path: Kobj,
}

impl PathFiles {
    /// Makes the directory below `parent`, named after the addresses. Sleeps.
    pub(crate) fn new(parent: &Node, path: &Arc<Path>) -> Result<Self> {
        let addrs = *path.addrs.lock();
        let name = CString::try_from_fmt(fmt!("{}", addrs))?;
        let directory = Kobj::new(parent, &name, &PATH, path.clone())?;
        Ok(Self {
            _stats: Kobj::new(&directory, c"stats", &STATS, path.clone())?,
            _path: directory,
        })
    }
}

static PATH: Attributes<Path, 9> = Attributes::new::<crate::LocalModule>([
    Attribute::ro(c"hca_name", hca_name_show),
    Attribute::ro(c"hca_port", hca_port_show),
    Attribute::ro(c"src_addr", src_show),
    Attribute::ro(c"dst_addr", dst_show),
    Attribute::ro(c"state", state_show),
    Attribute::ro(c"cur_latency", latency_show),
    Attribute::rw(c"reconnect", reconnect_show, reconnect_store),
    Attribute::rw(c"disconnect", disconnect_show, disconnect_store),
    Attribute::rw(c"remove_path", remove_show, remove_store),
]);

static STATS: Attributes<Path, 5> = Attributes::new::<crate::LocalModule>([
    Attribute::rw(c"cpu_migration_from", from_show, migrations_reset),
    Attribute::rw(c"cpu_migration_to", to_show, migrations_reset),
    Attribute::rw(c"reconnects", reconnects_show, reconnects_reset),
    Attribute::rw(c"rdma", rdma_show, rdma_reset),
    Attribute::rw(c"reset_all", reset_show, reset_all),
]);

/// `EINVAL` unless a 1 was written.
fn confirmed(input: &[u8]) -> Result {
    parse_one(input).map_err(|error| {
        pr_err!("{}\n", Plain(error));
        EINVAL
    })
}

fn hca_name_show(path: &Path, page: &mut PageWriter<'_>) -> Result {
    let device = path.hca.lock().device.clone();
    match device {
        Some(device) => page.emit(fmt!("{}\n", device.name())),
        None => page.emit(fmt!("\n")),
    }
}

fn hca_port_show(path: &Path, page: &mut PageWriter<'_>) -> Result {
    let port = path.hca.lock().port;
    page.emit(fmt!("{}\n", port))
}

fn src_show(path: &Path, page: &mut PageWriter<'_>) -> Result {
    let addrs = *path.addrs.lock();
    page.emit(fmt!("{}\n", Plain(addrs.shown().src)))
}

fn dst_show(path: &Path, page: &mut PageWriter<'_>) -> Result {
    let addrs = *path.addrs.lock();
    page.emit(fmt!("{}\n", Plain(addrs.shown().dst)))
}

fn state_show(path: &Path, page: &mut PageWriter<'_>) -> Result {
    page.emit(fmt!("{}\n", path.state().sysfs_name()))
}

fn latency_show(path: &Path, page: &mut PageWriter<'_>) -> Result {
    page.emit(fmt!("{} ns\n", path.latency()))
}

fn reconnect_show(_: &Path, page: &mut PageWriter<'_>) -> Result {
    page.emit(fmt!("Usage: echo 1 > reconnect\n"))
}

fn reconnect_store(path: &Arc<Path>, input: &[u8], _: Active<'_>) -> Result {
    confirmed(input)?;
    path.reconnect_now()
}

fn disconnect_show(_: &Path, page: &mut PageWriter<'_>) -> Result {
    page.emit(fmt!("Usage: echo 1 > disconnect\n"))
}

fn disconnect_store(path: &Arc<Path>, input: &[u8], _: Active<'_>) -> Result {
    confirmed(input)?;
    path.close();
    Ok(())
}

fn remove_show(_: &Path, page: &mut PageWriter<'_>) -> Result {
    page.emit(fmt!("Usage: echo 1 > remove_path\n"))
}

fn remove_store(path: &Arc<Path>, input: &[u8], active: Active<'_>) -> Result {
    confirmed(input)?;
    // The directory goes in here; its removal does not wait for this write.
    active.leave()?;
    path.session.remove_path(path);
    Ok(())
}

fn from_show(path: &Path, page: &mut PageWriter<'_>) -> Result {
    show_each(path.stats.migrated_from(), page)
}

fn to_show(path: &Path, page: &mut PageWriter<'_>) -> Result {
    show_each(path.stats.migrated_to(), page)
}

fn show_each(values: impl Iterator<Item = i32>, page: &mut PageWriter<'_>) -> Result {
    for value in values {
        page.emit(fmt!("{} ", value))?;
    }
    page.emit(fmt!("\n"))
}

fn migrations_reset(path: &Arc<Path>, input: &[u8], _: Active<'_>) -> Result {
    confirmed(input)?;
    path.stats.reset_migrations();
    Ok(())
}

fn reconnects_show(path: &Path, page: &mut PageWriter<'_>) -> Result {
    let (connected, failed) = path.stats.reconnects();
    page.emit(fmt!("{} {}\n", connected, failed))
}

fn reconnects_reset(path: &Arc<Path>, input: &[u8], _: Active<'_>) -> Result {
    confirmed(input)?;
    path.stats.reset_reconnects();
    Ok(())
}

fn rdma_show(path: &Path, page: &mut PageWriter<'_>) -> Result {
    let traffic = path.stats.traffic();
    page.emit(fmt!(
        "{} {} {} {} {} {}\n",
        traffic.reads,
        traffic.read_bytes,
        traffic.writes,
        traffic.write_bytes,
        traffic.inflight,
        traffic.failovers
    ))
}

fn rdma_reset(path: &Arc<Path>, input: &[u8], _: Active<'_>) -> Result {
    confirmed(input)?;
    path.stats.reset_traffic();
    Ok(())
}

fn reset_show(_: &Path, page: &mut PageWriter<'_>) -> Result {
    page.emit(fmt!("echo 1 to reset all statistics\n"))
}

fn reset_all(path: &Arc<Path>, input: &[u8], _: Active<'_>) -> Result {
    confirmed(input)?;
    path.stats.reset_all();
    Ok(())
}
