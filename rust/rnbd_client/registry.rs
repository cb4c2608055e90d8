// SPDX-License-Identifier: GPL-2.0

//! Sessions by name, shared by the devices that use them.
//!
//! A session is opened by the first device that needs it and closed with the last one. Both take time, in which its
//! name is taken but nobody can have it: whoever wants it then waits until the name is free or the session is there.
//! Whatever way opening ends, its entry says so and everybody who waits is woken.
//!
//! C counterpart: `sess_list` with `rtrs_ready` and `rtrs_waitq` in `drivers/block/rnbd/rnbd-clt.c`.

use crate::session::Session;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use weft::{
    new_wait_queue,
    sync::wait::{
        Mode,
        WaitQueue,
        WaitResult,
        MAX_TIMEOUT, //
    },
};
use weft_proto::rtrs::name::SessionName;

/// What a name stands for.
enum State {
    /// A session that is being opened or closed by somebody.
    Changing,
    /// An open session and how many [`Lease`]s of it there are.
    Open(Arc<Session>, usize),
}

struct Entry {
    name: SessionName,
    state: State,
}

/// All sessions of the module.
#[pin_data]
pub(crate) struct Registry {
    #[pin]
    entries: Mutex<KVec<Entry>>,
    /// An entry left [`State::Changing`] or went away.
    #[pin]
    changed: WaitQueue,
}

/// What a search found.
enum Found {
    Session(Arc<Session>),
    /// Somebody opens or closes it.
    Changing,
    /// Nothing; the name is now reserved for the caller.
    Reserved,
}

impl Registry {
    /// Knows no session.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            entries <- new_mutex!(KVec::new(), "rnbd_sessions"),
            changed <- new_wait_queue!("rnbd_sessions"),
        })
    }

    /// The session of this name, opened with `open` if there is none. `true` if it was.
    ///
    /// May sleep; a signal ends the wait for another task that opens or closes a session of this name.
    pub(crate) fn lease(
        self: &Arc<Self>,
        name: &SessionName,
        open: impl FnOnce() -> Result<Arc<Session>>,
    ) -> Result<(Lease, bool)> {
        loop {
            match self.find_or_reserve(name)? {
                Found::Session(session) => return Ok((self.lease_of(session, name), false)),
                Found::Reserved => break,
                Found::Changing => self.wait(name)?,
            }
        }
        let opened = open();
        let mut entries = self.entries.lock();
        let result = match opened {
            Ok(session) => {
                if let Some(entry) = entries.iter_mut().find(|entry| entry.name == *name) {
                    entry.state = State::Open(session.clone(), 1);
                }
                Ok((self.lease_of(session, name), true))
            }
            Err(error) => {
                entries.retain(|entry| entry.name != *name);
                Err(error)
            }
        };
        drop(entries);
        self.changed.wake_all();
        result
    }

    fn lease_of(self: &Arc<Self>, session: Arc<Session>, name: &SessionName) -> Lease {
        Lease {
            registry: self.clone(),
            session,
            name: *name,
        }
    }

    fn find_or_reserve(&self, name: &SessionName) -> Result<Found> {
        let mut entries = self.entries.lock();
        match entries.iter_mut().find(|entry| entry.name == *name) {
            Some(entry) => match &mut entry.state {
                State::Changing => Ok(Found::Changing),
                State::Open(session, leases) => {
                    *leases = leases.checked_add(1).ok_or(EOVERFLOW)?;
                    Ok(Found::Session(session.clone()))
                }
            },
            None => {
                let entry = Entry {
                    name: *name,
                    state: State::Changing,
                };
                entries.push(entry, GFP_KERNEL)?;
                Ok(Found::Reserved)
            }
        }
    }

    /// Waits until nobody opens or closes a session of this name. How long that can be is bounded by RTRS.
    fn wait(&self, name: &SessionName) -> Result {
        let settled = || {
            !self
                .entries
                .lock()
                .iter()
                .any(|entry| entry.name == *name && matches!(entry.state, State::Changing))
        };
        match self.changed.wait(Mode::Interruptible, MAX_TIMEOUT, settled) {
            WaitResult::Ready(_) => Ok(()),
            WaitResult::TimedOut => Err(ETIMEDOUT),
            WaitResult::Signal(error) => Err(error),
        }
    }

    /// Gives a lease back and closes the session if it was the last one. Sleeps.
    fn give_back(&self, session: &Arc<Session>, name: &SessionName) {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.iter_mut().find(|entry| entry.name == *name) else {
            return;
        };
        if let State::Open(_, leases @ 2..) = &mut entry.state {
            *leases -= 1;
            return;
        }
        entry.state = State::Changing;
        drop(entries);
        session.close();
        session.forget_all();
        self.entries.lock().retain(|entry| entry.name != *name);
        self.changed.wake_all();
    }

    /// An open session for which `wanted` holds.
    pub(crate) fn find(&self, wanted: impl Fn(&Session) -> bool) -> Option<Arc<Session>> {
        let entries = self.entries.lock();
        entries.iter().find_map(|entry| match &entry.state {
            State::Open(session, _) if wanted(session) => Some(session.clone()),
            _ => None,
        })
    }

    /// Waits until no session is left. What keeps one must be on its way out. Sleeps.
    pub(crate) fn wait_empty(&self) {
        let empty = || self.entries.lock().is_empty();
        let _ = self.changed.wait(Mode::Uninterruptible, MAX_TIMEOUT, empty);
    }
}

/// The right to use a session: it stays open at least as long. Dropping the last one closes the session and sleeps.
pub(crate) struct Lease {
    registry: Arc<Registry>,
    session: Arc<Session>,
    name: SessionName,
}

impl Lease {
    /// The session.
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.registry.give_back(&self.session, &self.name);
    }
}
