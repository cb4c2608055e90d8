// SPDX-License-Identifier: GPL-2.0

//! What all sessions share.
//!
//! C counterpart: the static variables of `drivers/block/rnbd/rnbd-srv.c`.

use crate::{
    export::Exports,
    io::Pending,
    session::{
        Session,
        User, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rtrs_server::{
    session as rtrs,
    user::{
        ServerUser,
        SessionUser, //
    },
};
use weft::{
    block::bio::PoolHandle,
    workqueue::QueueHandle, //
};
use weft_proto::{
    rnbd::path::SearchPath,
    rtrs::name::SessionName, //
};

/// What all sessions share.
pub(crate) struct Shared {
    /// Block devices in use.
    pub(crate) exports: Arc<Exports>,
    /// Where the names of clients begin.
    pub(crate) search_path: SearchPath<'static>,
    /// Memory for requests to block devices.
    pub(crate) bios: PoolHandle<Pending>,
    /// Where sessions open and close devices.
    pub(crate) queue: QueueHandle,
}

/// The module as RTRS knows its user.
pub(crate) struct Server(pub(crate) Arc<Shared>);

impl ServerUser for Server {
    fn connected(&self, session: &Arc<rtrs::Session>) -> Result<Arc<dyn SessionUser>> {
        let name = SessionName::new(session.name().as_bytes()).map_err(|_| EINVAL)?;
        let session = Session::new(&self.0, name)?;
        let user: Arc<dyn SessionUser> = Arc::new(User(session), GFP_KERNEL)?;
        Ok(user)
    }
}
