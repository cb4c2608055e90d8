// SPDX-License-Identifier: GPL-2.0

//! The files of a session: `/sys/class/rtrs-client/<session>/`.
//!
//! C counterpart: `rtrs-clt-sysfs.c`. `Documentation/rnbd.rst` describes the files. Nothing but session directories may be
//! below the class, and nothing but path directories below `paths`: the `rnbd` tool lists both.

use crate::{
    addr::PathAddrs,
    path::Path,
    session::Session,
    sysfs_path::PathFiles, //
};
use kernel::{
    prelude::*,
    str::CString,
    sync::Arc, //
};
use weft::{
    fmt::Plain,
    sysfs::{
        parse_decimal,
        Active,
        Attribute,
        Attributes,
        ClassDevice,
        Kobj,
        PageWriter, //
    }, //
};
use weft_proto::{
    rtrs::{
        policy::Policy,
        reconnect::Limit, //
    },
    text::ValueError, //
};

/// The directory of a session. Dropping it removes everything below it and waits for who uses the files.
pub(crate) struct SessionFiles {
    paths: Kobj,
    _device: ClassDevice,
}

impl SessionFiles {
    /// Makes the directory. Sleeps. `EEXIST` if there is a session of that name.
    pub(crate) fn new(session: &Arc<Session>) -> Result<Self> {
        let name = CString::try_from_fmt(fmt!("{}", session.name()))?;
        let device = ClassDevice::new(session.module.class(), &name, &SESSION, session.clone())?;
        Ok(Self {
            paths: Kobj::plain(&device, c"paths")?,
            _device: device,
        })
    }

    /// Makes the directory of a path. Sleeps.
    pub(crate) fn path(&self, path: &Arc<Path>) -> Result<PathFiles> {
        PathFiles::new(&self.paths, path)
    }
}

static SESSION: Attributes<Session, 5> = Attributes::new::<crate::LocalModule>([
    Attribute::rw(c"max_reconnect_attempts", attempts_show, attempts_store),
    Attribute::rw(c"mpath_policy", policy_show, policy_store),
    Attribute::rw(c"add_path", add_path_show, add_path_store),
    Attribute::rw(c"no_path_timeout", no_path_show, no_path_store),
    Attribute::rw(c"io_timeout", io_timeout_show, io_timeout_store),
]);

/// Says what is wrong with what was written to a file.
fn refused(file: &str, error: ValueError) -> Error {
    pr_err!("{}: {}\n", file, Plain(error));
    EINVAL
}

fn attempts_show(session: &Session, page: &mut PageWriter<'_>) -> Result {
    page.emit(fmt!("{}\n", session.settings.reconnect_limit().number()))
}

fn attempts_store(session: &Arc<Session>, input: &[u8], _: Active<'_>) -> Result {
    let limit =
        Limit::from_text(input).map_err(|error| refused("max_reconnect_attempts", error))?;
    session.settings.set_reconnect_limit(limit);
    Ok(())
}

fn policy_show(session: &Session, page: &mut PageWriter<'_>) -> Result {
    page.emit(fmt!("{}\n", Plain(session.settings.policy())))
}

fn policy_store(session: &Arc<Session>, input: &[u8], _: Active<'_>) -> Result {
    let policy = Policy::from_text(input).map_err(|error| refused("mpath_policy", error))?;
    session.settings.set_policy(policy);
    Ok(())
}

fn add_path_show(_: &Session, page: &mut PageWriter<'_>) -> Result {
    page.emit(fmt!(
        "Usage: echo [<source addr>@]<destination addr> > add_path\n\n\
         *addr ::= [ ip:<ipv4|ipv6> | gid:<gid> ]\n"
    ))
}

fn add_path_store(session: &Arc<Session>, input: &[u8], _: Active<'_>) -> Result {
    let line = input
        .split(|byte| matches!(byte, b'\n' | 0))
        .next()
        .unwrap_or_default();
    let addrs = PathAddrs::parse(line, session.port).map_err(|error| {
        pr_err!("{}: add_path: {}\n", session, Plain(error));
        EINVAL
    })?;
    session.add_path(addrs)
}

fn no_path_show(session: &Session, page: &mut PageWriter<'_>) -> Result {
    page.emit(fmt!("{}\n", session.settings.no_path_timeout()))
}

fn no_path_store(session: &Arc<Session>, input: &[u8], _: Active<'_>) -> Result {
    session.settings.set_no_path_timeout(parse_decimal(input)?)
}

fn io_timeout_show(session: &Session, page: &mut PageWriter<'_>) -> Result {
    page.emit(fmt!("{}\n", session.settings.io_timeout()))
}

fn io_timeout_store(session: &Arc<Session>, input: &[u8], _: Active<'_>) -> Result {
    session.settings.set_io_timeout(parse_decimal(input)?)
}
