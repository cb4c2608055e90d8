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
    session::Session, //
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
use weft_proto::rtrs::wire::MAX_PATHS;

/// Task that tells the user what happened.
pub(crate) const EVENTS: u64 = 0;

/// Paths of a session and what their state means.
pub(crate) struct Board {
    /// All paths, in the order in which they were added.
    pub(crate) paths: KVec<Arc<Path>>,
    /// Links that are up; there is room for [`MAX_PATHS`].
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
    /// What replaces the routes next, since there may be no memory then.
    spare: Option<KBox<Routes>>,
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
            up: KVec::with_capacity(MAX_PATHS, GFP_KERNEL)?,
            life: 0,
            open: false,
            told: None,
            starting: true,
            closed: false,
            spare: Some(Routes::none()?),
        })
    }

    /// Whether a request could be sent. A link that broke a moment ago may still be among those that are up.
    fn is_alive(&self) -> bool {
        self.up.iter().any(|link| link.is_usable())
    }

    fn news(&self) -> Option<News> {
        match self.told {
            _ if self.starting => None,
            // Not before the last link has left the routes: nothing can be sent in that life from here on.
            Some(life) if self.up.is_empty() || life != self.life => Some(News::Down),
            None if self.is_alive() => Some(News::Up(self.life)),
            _ => None,
        }
    }

    /// Gives up all links.
    fn fail_all(&self) {
        for link in self.up.iter() {
            link.fail();
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
    /// Puts a link that is up where requests find it. Sleeps.
    pub(crate) fn link_up(self: &Arc<Self>, link: Arc<Link>) -> Result {
        {
            let mut board = self.board.lock();
            // With the gate shut and nothing but broken links nobody would open it in this life.
            let over = !board.open && !board.is_alive();
            board.up.push_within_capacity(link).map_err(|_| ENOSPC)?;
            if over || board.up.len() == 1 {
                board.life = board.life.wrapping_add(1);
                board.open = false;
            }
            self.publish(&mut board);
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
            self.publish(&mut board);
        }
        Task::<Self, EVENTS>::schedule(self, 0);
    }

    /// Shows the board to those who submit requests. Needs no memory. Sleeps.
    fn publish(&self, board: &mut Board) {
        let Some(mut next) = board.spare.take() else {
            // Cannot be: it is put back below.
            return;
        };
        for link in board.up.iter() {
            // There is room for as many as `up` has room for.
            let _ = next.links.push_within_capacity(link.clone());
        }
        next.open = board.open;
        next.life = board.life;
        let mut old = self.routes.replace(next);
        // Who takes a link down has it still, so none ends here.
        old.links.clear();
        board.spare = Some(old);
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
        board.fail_all();
    }

    /// Ends the time in which the user is told nothing: all paths of `open` are up. Sleeps.
    pub(crate) fn start(self: &Arc<Self>) {
        // ORDERING: `Release` pairs with `is_starting`.
        self.started.store(true, Release);
        let result = self.user().map_or(Ok(()), |user| user.connected());
        {
            let mut board = self.board.lock();
            board.starting = false;
            board.told = Some(board.life);
            board.open = result.is_ok() && board.is_alive();
            self.publish(&mut board);
            if result.is_err() {
                board.fail_all();
            }
        }
        // If a path went down meanwhile there is news already.
        Task::<Self, EVENTS>::schedule(self, 0);
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
            let user = self.user();
            match news {
                Some(News::Up(life)) => match user.map_or(Ok(()), |user| user.connected()) {
                    Ok(()) => self.open_gate(life),
                    Err(_) => self.give_up(life),
                },
                _ => {
                    if let Some(user) = user {
                        user.disconnected();
                    }
                }
            }
        }
    }

    /// The user knows the server of this life: requests may flow, if it still lasts.
    fn open_gate(self: &Arc<Self>, life: u32) {
        {
            let mut board = self.board.lock();
            if board.life != life || !board.is_alive() {
                return;
            }
            board.open = true;
            self.publish(&mut board);
        }
        self.kick_parked();
    }

    /// The user cannot talk to the server of this life.
    fn give_up(&self, life: u32) {
        let board = self.board.lock();
        if board.life == life {
            board.fail_all();
        }
    }
}
