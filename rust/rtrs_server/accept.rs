// SPDX-License-Identifier: GPL-2.0

//! Connection requests.
//!
//! C counterpart: `rtrs_rdma_connect`, `create_con`, `rtrs_srv_rdma_cm_handler`. A request costs a queue pair here; the
//! chunks come later (`setup.rs`). The connections of a path may come in any order once it exists.

use crate::{
    conn::Conn,
    path::{
        Conns,
        Ends,
        Path, //
    },
    registry::Refused,
    server::Shared, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weft::{
    fmt::Plain,
    pr_ratelimited, //
};
use weft_proto::{
    errno::{
        Errno,
        Failure, //
    },
    rtrs::{
        conn::{
            self,
            ConnectRequest, //
        },
        state::ServerState, //
    },
};
use weft_rdma::cm::{
    self,
    CmHandler,
    ConnParam,
    Event,
    NewId,
    Token, //
};
use zerocopy::IntoBytes;

/// Hears of connection requests.
pub(crate) struct Listening(pub(crate) Arc<Shared>);

impl CmHandler for Listening {
    fn event(self: Arc<Self>, _id: &Token<'_>, event: Event<'_>) {
        pr_ratelimited!(pr_info, "listener: {}\n", event.name());
    }

    fn connect_request(self: Arc<Self>, new: NewId<'_>, request: cm::ConnectRequest<'_>) {
        let refused = match ConnectRequest::parse(request.private_data) {
            Ok(request) => self.0.connect(new, &request),
            Err(error) => {
                pr_ratelimited!(pr_info, "connection request: {}\n", Plain(&error));
                refuse(new, error.errno())
            }
        };
        // Who is not told of the reason is told by the connection manager.
        let _ = refused;
    }
}

/// Refuses a connection that nobody owns yet.
fn refuse(new: NewId<'_>, errno: Errno) -> Result {
    new.reject(conn::reject(errno).as_bytes())
}

impl Ends {
    fn of(new: &NewId<'_>) -> Result<Self> {
        Ok(Self {
            client: new.peer_addr().ok_or(ENOTCONN)?,
            server: new.local_addr().ok_or(ENOTCONN)?,
            device: new.device()?,
            port: new.port_num(),
        })
    }
}

impl Shared {
    /// Takes a request to its path.
    fn connect(self: &Arc<Self>, new: NewId<'_>, request: &ConnectRequest) -> Result {
        let path = Ends::of(&new)
            .map_err(Refused::Failed)
            .and_then(|ends| self.registry.join(self, request, ends));
        match path {
            Ok(path) => path.accept(new, request.cid),
            Err(refused) => {
                pr_ratelimited!(pr_info, "connection request refused: {refused}\n");
                refuse(new, refused.errno())
            }
        }
    }
}

impl Path {
    /// Makes a connection of the path; if that fails, so does the path.
    fn accept(self: &Arc<Self>, new: NewId<'_>, cid: u16) -> Result {
        let mut conns = self.conns.lock();
        if self.state() != ServerState::Connecting || !conns.is_free(cid) {
            drop(conns);
            pr_ratelimited!(pr_info, "{}: connection {cid} exists already\n", **self);
            return refuse(new, Errno::ECONNRESET);
        }
        self.touch();
        match self.connect(&mut conns, new, cid) {
            Ok(()) => Ok(()),
            Err(error) => {
                // Not before the connection is in its place, where the closing task finds it.
                drop(conns);
                self.close(fmt!("connection {cid} failed: {error:?}"));
                Err(error)
            }
        }
    }

    /// Makes a connection and accepts it.
    fn connect(self: &Arc<Self>, conns: &mut Conns, new: NewId<'_>, cid: u16) -> Result {
        let pd = conns.domain(&self.ends.device)?;
        let conn = Conn::new(self, cid)?;
        let (id, token) = new.accept_with(Arc::new(Events(conn.clone()), GFP_KERNEL)?)?;
        *conn.id.lock() = Some(id);
        conns.put(conn.clone());
        self.count_conn();
        let config = self.session.server().config();
        let made = conn.make(&token, &pd).and_then(|()| {
            let response = conn::accept(&config.geometry, config.always_invalidate);
            token.accept(&ConnParam::default(), response.as_bytes())
        });
        if let Err(error) = made {
            let errno = Errno::from_code(error.to_errno()).unwrap_or(Errno::ECONNRESET);
            // Fails if the connection manager has rejected it already.
            let _ = token.reject(conn::reject(errno).as_bytes());
        }
        made
    }
}

/// Hears what happens to a connection.
struct Events(Arc<Conn>);

impl CmHandler for Events {
    fn event(self: Arc<Self>, _id: &Token<'_>, event: Event<'_>) {
        match event {
            Event::Established(_) => {}
            other => self.0.path.close(other.name()),
        }
    }
}
