// SPDX-License-Identifier: GPL-2.0

//! Files of sessions and paths: `/sys/class/rtrs-server/<session>/paths/<client>@<server>/`.
//!
//! C counterpart: `rtrs-srv-sysfs.c`, `rtrs-srv-stats.c`. A session's directory is there as long as one of its paths has
//! one in it. The files lead to the path, and the path owns its directory; the closing task ends that circle.

use crate::{
    path::Path,
    session::Session,
    LocalModule, //
};
use kernel::{
    prelude::*,
    str::CString,
    sync::Arc, //
};
use weft::sysfs::{
    self,
    Active,
    Attribute,
    Attributes,
    Class,
    ClassDevice,
    Kobj,
    PageWriter, //
};

/// The name of the class.
pub(crate) const CLASS: &CStr = c"rtrs-server";

static SESSION_FILES: Attributes<Session, 0> = Attributes::new::<LocalModule>([]);

static PATH_FILES: Attributes<Path, 5> = Attributes::new::<LocalModule>([
    // The client's address, as seen by the client: C has it this way round.
    Attribute::ro(c"src_addr", |path, page| {
        page.emit(fmt!("{}\n", path.ends.client_text()))
    }),
    Attribute::ro(c"dst_addr", |path, page| {
        page.emit(fmt!("{}\n", path.ends.server_text()))
    }),
    Attribute::ro(c"hca_name", |path, page| {
        page.emit(fmt!("{}\n", path.ends.device.name()))
    }),
    Attribute::ro(c"hca_port", |path, page| {
        page.emit(fmt!("{}\n", path.ends.port))
    }),
    Attribute::rw(c"disconnect", usage, disconnect),
]);

static STATS_FILES: Attributes<Path, 1> =
    Attributes::new::<LocalModule>([Attribute::rw(c"rdma", show_stats, reset_stats)]);

fn usage(_path: &Path, page: &mut PageWriter<'_>) -> Result {
    page.emit(fmt!("Usage: echo 1 > disconnect\n"))
}

fn disconnect(path: &Arc<Path>, input: &[u8], _active: Active<'_>) -> Result {
    if !sysfs::is(input, b"1") {
        return Err(EINVAL);
    }
    // The directory is removed by the closing task, which waits for this to return.
    path.close("disconnected by the administrator");
    Ok(())
}

fn show_stats(path: &Path, page: &mut PageWriter<'_>) -> Result {
    let [reads, read_bytes, writes, written_bytes] = path.stats.values();
    page.emit(fmt!("{reads} {read_bytes} {writes} {written_bytes}\n"))
}

fn reset_stats(path: &Arc<Path>, input: &[u8], _active: Active<'_>) -> Result {
    if !sysfs::is(input, b"1") {
        return Err(EINVAL);
    }
    path.stats.reset();
    Ok(())
}

/// The directory of a session.
#[derive(Default)]
pub(crate) struct SessionDir {
    /// Paths that have a directory in it.
    paths: usize,
    // Dropped before what it is in.
    list: Option<Kobj>,
    device: Option<ClassDevice>,
}

impl SessionDir {
    /// Makes the directory, unless it is there, for one more path.
    fn enter(&mut self, class: &Class, session: &Arc<Session>) -> Result<&Kobj> {
        if self.list.is_none() {
            let name = CString::try_from_fmt(fmt!("{}", session.name()))?;
            let device = ClassDevice::new(class, &name, &SESSION_FILES, session.clone())?;
            self.list = Some(Kobj::plain(&device, c"paths")?);
            self.device = Some(device);
        }
        self.paths = self.paths.saturating_add(1);
        self.list.as_ref().ok_or(ENOENT)
    }

    /// One path less; removes the directory after the last.
    fn leave(&mut self) {
        self.paths = self.paths.saturating_sub(1);
        if self.paths == 0 {
            self.list = None;
            self.device = None;
        }
    }
}

/// The directory of a path.
pub(crate) struct PathDir {
    // Dropped before what it is in.
    _stats: Kobj,
    _path: Kobj,
}

impl PathDir {
    fn new(list: &Kobj, path: &Arc<Path>) -> Result<Self> {
        let name = CString::try_from_fmt(fmt!("{}", path.ends.name()))?;
        let directory = Kobj::new(list, &name, &PATH_FILES, path.clone())?;
        let stats = Kobj::new(&directory, c"stats", &STATS_FILES, path.clone())?;
        Ok(Self {
            _stats: stats,
            _path: directory,
        })
    }
}

impl Path {
    /// Makes the files of the path. Sleeps.
    pub(crate) fn enter_sysfs(self: &Arc<Self>) -> Result {
        let class = &self.session.server().core.class;
        let mut session = self.session.dir.lock();
        let made = PathDir::new(session.enter(class, &self.session)?, self);
        match made {
            Ok(directory) => {
                *self.dir.lock() = Some(directory);
                Ok(())
            }
            Err(error) => {
                session.leave();
                Err(error)
            }
        }
    }

    /// Removes the files of the path, if it has any. Sleeps until nobody uses them.
    pub(crate) fn leave_sysfs(&self) {
        let directory = self.dir.lock().take();
        if directory.is_some() {
            // Not under the path's lock, but before the session's directory goes.
            drop(directory);
            self.session.dir.lock().leave();
        }
    }
}
