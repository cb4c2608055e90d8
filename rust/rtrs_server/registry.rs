// SPDX-License-Identifier: GPL-2.0

//! Which sessions and paths exist, and how many of them may be half open.
//!
//! One lock covers membership, so a connection request finds or makes its session and its path in one step: two first
//! requests of one client that arrive together meet in one session.
//!
//! Connections that never become a path are dropped when they are too old (`timer.rs`). When there are too many of them
//! before that, the one that was quiet for longest goes, so that a flood does not keep others out.

use crate::{
    path::{
        Ends,
        Path, //
    },
    server::Shared,
    session::Session, //
};
use kernel::{
    alloc::AllocError,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use weft_proto::{
    errno::{
        Errno,
        Failure, //
    },
    rtrs::{
        conn::{
            self,
            Admission,
            ConnectError,
            ConnectRequest,
            Known,
            KnownPath, //
        },
        name::SessionName,
        ownership::PathId,
        state::ServerState, //
    },
};

/// Paths of all sessions that are being connected.
const MAX_HALF_OPEN: usize = 64;
/// Connections that such paths have together.
const MAX_HALF_OPEN_CONNS: usize = 4096;
/// Milliseconds for which a half-open path is safe from others.
const GRACE_MS: u64 = 1000;

/// Why a connection request is refused.
pub(crate) enum Refused {
    /// It does not fit what is there.
    Unfit(ConnectError),
    /// There is no room for it, or something failed.
    Failed(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<AllocError> for Refused {
    fn from(error: AllocError) -> Self {
        Self::Failed(error.into())
    }
}

impl Refused {
    /// What the client is told.
    pub(crate) fn errno(&self) -> Errno {
        match self {
            Self::Unfit(error) => error.errno(),
            Self::Failed(error) => Errno::from_code(error.to_errno()).unwrap_or(Errno::ECONNRESET),
        }
    }
}

impl kernel::fmt::Display for Refused {
    fn fmt(&self, f: &mut kernel::fmt::Formatter<'_>) -> kernel::fmt::Result {
        match self {
            Self::Unfit(error) => write!(f, "{error}"),
            Self::Failed(error) => write!(f, "{error:?}"),
        }
    }
}

/// A session and its paths, closing ones included.
struct Member {
    session: Arc<Session>,
    paths: KVec<Arc<Path>>,
}

struct Members {
    sessions: KVec<Member>,
    /// The server is going away: nobody joins any more.
    closed: bool,
}

/// All sessions of a server. Its lock is taken before all others of this module except [`Path`]'s list of connections.
#[pin_data]
pub(crate) struct Registry {
    #[pin]
    members: Mutex<Members>,
}

impl Registry {
    /// An empty one.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            members <- new_mutex!(Members { sessions: KVec::new(), closed: false }, "rtrs_registry"),
        })
    }

    /// The path that a connection request is for, made if it is new. Sleeps.
    pub(crate) fn join(
        &self,
        server: &Arc<Shared>,
        request: &ConnectRequest,
        ends: Ends,
    ) -> Result<Arc<Path>, Refused> {
        let mut members = self.members.lock();
        if members.closed {
            return Err(Refused::Failed(ECONNRESET));
        }
        let position = members.position(request);
        let path = members.path(position, request).cloned();
        let known = members.known(position, path.as_ref(), &ends);
        let admission = conn::admit(request, &known).map_err(|error| {
            if let Some(path) = path.as_ref().filter(|_| request.cid == 0) {
                // The client begins anew, so it has given this life up; its next attempt finds it gone.
                path.close("its client connects anew");
            }
            Refused::Unfit(error)
        })?;
        match (admission, path, position) {
            (Admission::Join, Some(path), _) => {
                members.make_room(0)?;
                Ok(path)
            }
            (Admission::NewPath, None, Some(position)) => {
                members.make_room(1)?;
                members.add_path(position, request, ends)
            }
            _ => {
                members.make_room(1)?;
                let position = members.add_session(Session::new(server, request.session)?)?;
                members.add_path(position, request, ends)
            }
        }
    }

    /// Takes a path off, and its session if that was the last one.
    pub(crate) fn leave(&self, path: &Arc<Path>) {
        let mut members = self.members.lock();
        let Some(position) = members
            .sessions
            .iter()
            .position(|member| Arc::ptr_eq(&member.session, &path.session))
        else {
            return;
        };
        let Some(member) = members.sessions.get_mut(position) else {
            return;
        };
        member.paths.retain(|other| !Arc::ptr_eq(other, path));
        let gone = if member.paths.is_empty() {
            members.sessions.remove(position).ok()
        } else {
            None
        };
        drop(members);
        if let Some(member) = gone {
            member.session.retire();
        }
    }

    /// Gives a session its name. Process context.
    ///
    /// `Err` has the session that bears the name already, or nothing if this one has another name.
    pub(crate) fn name(
        &self,
        session: &Arc<Session>,
        name: &SessionName,
    ) -> Result<(), Option<Arc<Session>>> {
        let members = self.members.lock();
        let other = members.sessions.iter().find(|other| {
            other.session.uuid != session.uuid && other.session.name() == name.as_str()
        });
        match other {
            Some(other) => Err(Some(other.session.clone())),
            None if session.set_name(name) => Ok(()),
            None => Err(None),
        }
    }

    /// Finds out soon whether the client of a session is alive.
    pub(crate) fn probe(&self, session: &Arc<Session>) {
        self.for_each_path(|path| {
            if Arc::ptr_eq(&path.session, session) {
                path.probe();
            }
        });
    }

    /// Closes the paths of a session that were up before path number `id` was begun. Process context.
    pub(crate) fn close_older(&self, session: &Arc<Session>, id: PathId) {
        self.for_each_path(|path| {
            let older = path.up_before().is_some_and(|next| next <= id);
            if Arc::ptr_eq(&path.session, session) && older {
                path.close("its client has lost all its paths");
            }
        });
    }

    /// Calls `visit` for each path. It must not wait for a path to leave.
    pub(crate) fn for_each_path(&self, mut visit: impl FnMut(&Arc<Path>)) {
        let members = self.members.lock();
        for path in members
            .sessions
            .iter()
            .flat_map(|member| member.paths.iter())
        {
            visit(path);
        }
    }

    /// Lets nobody join any more.
    pub(crate) fn close(&self) {
        self.members.lock().closed = true;
    }
}

impl Members {
    /// Where the session of a request is.
    fn position(&self, request: &ConnectRequest) -> Option<usize> {
        self.sessions
            .iter()
            .position(|member| member.session.uuid == request.session)
    }

    /// The path of a request, in the session at `position`.
    fn path(&self, position: Option<usize>, request: &ConnectRequest) -> Option<&Arc<Path>> {
        let member = self.sessions.get(position?)?;
        member.paths.iter().find(|path| path.uuid == request.path)
    }

    /// What there is already of what a request is for.
    fn known(&self, position: Option<usize>, path: Option<&Arc<Path>>, ends: &Ends) -> Known {
        let member = position.and_then(|position| self.sessions.get(position));
        let paths = member.map_or(&[][..], |member| &member.paths);
        Known {
            session: member.is_some(),
            ended: member.is_some_and(|member| member.session.has_ended()),
            paths: paths.len(),
            same_addresses: paths.iter().any(|path| path.ends.same_addresses(ends)),
            path: path.map(|path| KnownPath {
                state: path.state(),
                cid_num: path.conn_count,
                // Looked at when it is made.
                cid_taken: false,
            }),
        }
    }

    fn add_session(&mut self, session: Arc<Session>) -> Result<usize> {
        let member = Member {
            session,
            paths: KVec::new(),
        };
        self.sessions.push(member, GFP_KERNEL)?;
        Ok(self.sessions.len().saturating_sub(1))
    }

    /// Makes a path in the session at `position`; takes the session off again if it has no path then.
    fn add_path(
        &mut self,
        position: usize,
        request: &ConnectRequest,
        ends: Ends,
    ) -> Result<Arc<Path>, Refused> {
        let member = self.sessions.get_mut(position).ok_or(ENOENT)?;
        let path = member.add_path(request, ends);
        if member.paths.is_empty() {
            let _ = self.sessions.remove(position);
        }
        Ok(path?)
    }

    /// Makes sure that another connection, of one of `more` new half-open paths, is no harm; `EBUSY` if there are too
    /// many young ones.
    ///
    /// Counted are connections that exist: who only announces many must not keep others out.
    fn make_room(&self, more: usize) -> Result {
        let half_open = || {
            self.sessions
                .iter()
                .flat_map(|member| member.paths.iter())
                .filter(|path| path.state() == ServerState::Connecting)
        };
        loop {
            let paths = half_open().count();
            let conns = half_open().map(|path| path.made()).sum::<usize>();
            if paths.saturating_add(more) <= MAX_HALF_OPEN && conns < MAX_HALF_OPEN_CONNS {
                return Ok(());
            }
            let quiet = half_open()
                .max_by_key(|path| path.quiet_ms())
                .ok_or(EBUSY)?;
            if quiet.quiet_ms() < GRACE_MS {
                return Err(EBUSY);
            }
            quiet.close("too many clients are connecting");
        }
    }
}

impl Member {
    fn add_path(&mut self, request: &ConnectRequest, ends: Ends) -> Result<Arc<Path>> {
        let path = Path::new(&self.session, request, ends)?;
        self.paths.push(path.clone(), GFP_KERNEL)?;
        Ok(path)
    }
}
