// SPDX-License-Identifier: GPL-2.0

//! What a user of the server does: it is told of sessions and gets their requests.
//!
//! C counterpart: `struct rtrs_srv_ops`. Where C passes pointers into a chunk, which the client may still write, a user
//! here gets a private copy of its message and an [`Operation`], through which it reaches the data.

use crate::{
    operation::Operation,
    session::Session, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The user of a server.
pub trait ServerUser: Send + Sync + 'static {
    /// The first path of a session came up. An error closes that path. Process context, may sleep; other sessions wait
    /// for nothing meanwhile.
    ///
    /// Must not keep `session` beyond [`SessionUser::disconnected`] except in what lives until its operations are over.
    fn connected(&self, session: &Arc<Session>) -> Result<Arc<dyn SessionUser>>;
}

/// The user's side of one session.
pub trait SessionUser: Send + Sync + 'static {
    /// A request arrived. `message` is what the client's upper layer sent with it, a private copy.
    ///
    /// Process context, may sleep; called for one request at a time on each connection, for different connections in
    /// parallel. The operation may be answered here or later, from any context; dropping it answers `EIO`.
    fn request(&self, operation: Operation, message: &[u8]);

    /// The last path is gone: [`Self::request`] is not called again. Operations may still be under way; what they
    /// answer goes nowhere, but their memory stays valid. Process context, may sleep.
    fn disconnected(&self);
}
