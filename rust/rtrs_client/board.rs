// SPDX-License-Identifier: GPL-2.0

//! What a session is as a whole: its paths, which of them are up, and what its user was told about that.
//!
//! C counterpart: `paths_up` with `rtrs_clt_path_up` and `rtrs_clt_path_down`. There the user is called under the
//! mutex that counts; here a task of its own compares what the user was told with how things are, and tells the
//! difference with no lock held. The task may wait for answers of the server: nothing that brings them waits for it.
//!
//! A session that has lost all its paths and gets one again begins another *life*: the server may have been restarted,
//! so what it said before counts for nothing. The user is told, introduces itself anew, and only then requests flow.

use crate::{
    link::Link,
    path::Path,
    routes::Routes,
    session::Session,
    user::LinkEvent, //
};
use kernel::{
    alloc::KBox,
    prelude::*,
    sync::{
        atomic::Release,
        Arc, //
    }, //
};
use weft::{
    mm::noio,
    workqueue::{
        Task,
        TaskItem, //
    }, //
};

/// Task that tells the user what happened.
pub(crate) const EVENTS: u64 = 0;

/// Paths of a session and what their state means.
pub(crate) struct Board {
    /// All paths, in the order in which they were added.
    pub(crate) paths: KVec<Arc<Path>>,
    /// Links that are up.
    up: KVec<Arc<Link>>,
    /// How often the session came up.
    life: u32,
    /// Requests of the user are let through.
    open: bool,
    /// The life that the user was told of, if it believes the session to be up.
    told: Option<u32>,
    /// The session is being opened: the user is not told yet.
    starting: bool,
    /// The session is closed: no path comes any more.
    pub(crate) closed: bool,
    /// What replaces the routes when the session is closed, when there may be no memory.
    last: Option<KBox<Routes>>,
}

/// What the user is to be told next.
enum News {
    Down,
    Up(u32),
}

impl Board {
    /// The board of a session that is being opened. May sleep.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            paths: KVec::new(),
            up: KVec::new(),
            life: 0,
            open: false,
            told: None,
            starting: true,
            closed: false,
            last: Some(KBox::new(Routes::none(0), GFP_KERNEL)?),
        })
    }

    /// How things are, for those who submit requests.
    fn routes(&self) -> Result<KBox<Routes>> {
        let mut links = KVec::with_capacity(self.up.len(), GFP_KERNEL)?;
        for link in self.up.iter() {
            links.push(link.clone(), GFP_KERNEL)?;
        }
        let routes = Routes {
            links,
            open: self.open,
            life: self.life,
        };
        Ok(KBox::new(routes, GFP_KERNEL)?)
    }

    fn news(&self) -> Option<News> {
        match self.told {
            _ if self.starting => None,
            Some(life) if self.up.is_empty() || life != self.life => Some(News::Down),
            None if !self.up.is_empty() => Some(News::Up(self.life)),
            _ => None,
        }
    }
}

impl TaskItem<EVENTS> for Session {
    fn run(this: Arc<Self>) {
        // Requests wait for what happens here, so nothing here may wait for requests to free memory.
        noio::scope(|| this.tell_news());
    }
}

impl Session {
    /// Forgets the links that were left in the routes because there was no memory when they went: they refer to the
    /// session. No path is left. Sleeps.
    pub(crate) fn forget_routes(&self) {
        let mut board = self.board.lock();
        let left = board.last.take().map(|none| self.routes.replace(none));
        drop(board);
        drop(left);
    }

    /// Puts a link that is up where requests find it. Sleeps.
    pub(crate) fn link_up(self: &Arc<Self>, link: Arc<Link>) -> Result {
        {
            let mut board = self.board.lock();
            board.up.push(link, GFP_KERNEL)?;
            if board.up.len() == 1 {
                board.life = board.life.wrapping_add(1);
                board.open = false;
            }
            match board.routes() {
                Ok(routes) => drop(self.routes.replace(routes)),
                Err(error) => {
                    board.up.pop();
                    return Err(error);
                }
            }
        }
        Task::<Self, EVENTS>::schedule(self, 0);
        self.kick_parked();
        Ok(())
    }

    /// Takes a link away from requests. None can start on it when this returns. Sleeps.
    pub(crate) fn link_down(self: &Arc<Self>, link: &Arc<Link>) {
        {
            let mut board = self.board.lock();
            board.up.retain(|known| !Arc::ptr_eq(known, link));
            if board.up.is_empty() {
                board.open = false;
            }
            self.publish(&board);
        }
        Task::<Self, EVENTS>::schedule(self, 0);
    }

    /// Shows the board to those who submit requests. Sleeps.
    fn publish(&self, board: &Board) {
        match board.routes() {
            Ok(routes) => drop(self.routes.replace(routes)),
            // Without memory for a shorter list the long one stays: its dead links refuse requests themselves.
            Err(_) => pr_warn!("{}: no memory to update the routes\n", self),
        }
    }

    /// Whether a path other than `path` is up.
    pub(crate) fn is_up_without(&self, path: &Path) -> bool {
        let board = self.board.lock();
        let result = board
            .up
            .iter()
            .any(|link| !core::ptr::eq(&**link.path(), path));
        result
    }

    /// The server has forgotten the session: every link that seems to be up is a relic. Sleeps.
    pub(crate) fn server_forgot(&self) {
        let board = self.board.lock();
        if !board.up.is_empty() {
            pr_info!("{}: the server was restarted\n", self);
        }
        for link in board.up.iter() {
            link.fail();
        }
    }

    /// Ends the time in which the user is told nothing: all paths of `open` are up. Sleeps.
    pub(crate) fn start(self: &Arc<Self>) {
        // ORDERING: `Release` pairs with `is_starting`.
        self.started.store(true, Release);
        self.tell(LinkEvent::Connected);
        {
            let mut board = self.board.lock();
            board.starting = false;
            board.told = Some(board.life);
            board.open = !board.up.is_empty();
            self.publish(&board);
        }
        // If a path went down meanwhile there is news already.
        Task::<Self, EVENTS>::schedule(self, 0);
    }

    fn tell(&self, event: LinkEvent) {
        if let Some(user) = self.user() {
            user.link(event);
        }
    }

    /// What [`EVENTS`] does.
    fn tell_news(self: &Arc<Self>) {
        loop {
            let news = {
                let mut board = self.board.lock();
                let news = board.news();
                board.told = match news {
                    Some(News::Down) => None,
                    Some(News::Up(life)) => Some(life),
                    None => return,
                };
                news
            };
            match news {
                Some(News::Up(life)) => {
                    self.tell(LinkEvent::Connected);
                    self.open_gate(life);
                }
                _ => self.tell(LinkEvent::Disconnected),
            }
        }
    }

    /// The user knows the server of this life: requests may flow, if it still lasts.
    fn open_gate(self: &Arc<Self>, life: u32) {
        {
            let mut board = self.board.lock();
            if board.life != life || board.up.is_empty() {
                return;
            }
            board.open = true;
            self.publish(&board);
        }
        self.kick_parked();
    }
}
