// SPDX-License-Identifier: GPL-2.0

//! An id and who owns it.

use super::{
    event::CmHandler,
    id::{
        IdRef,
        Phase, //
    },
    inside::Inside,
    token::{
        checked_timeout,
        Token, //
    },
    PortSpace,
};
use crate::{
    addr::{
        Addr,
        RawAddr, //
    },
    bindings,
};
use core::{
    ops::Deref,
    ptr, //
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc, //
};
use weft::{
    net::ns::ActiveNet,
    workqueue::QueueHandle, //
};

/// One end of a connection, or a listener. See the [module](super) for who owns what.
///
/// Dropping it destroys the id, rejecting or ending what is there. Sleeps, except in a handler of any id.
///
/// All methods may sleep. They lock the handler mutex, so in a handler they fail with `EDEADLK`: there, the
/// [`Token`] is used.
pub struct CmId(IdRef);

impl CmId {
    /// Creates an id in the namespace `net`, whose events go to `handler`.
    ///
    /// `queue` is one of the calling module: its drop waits for the end of the id. `ESHUTDOWN` if that has begun.
    pub fn new(
        net: &ActiveNet,
        queue: &QueueHandle,
        space: PortSpace,
        handler: Arc<dyn CmHandler>,
    ) -> Result<Self> {
        let hold = queue.hold().ok_or(ESHUTDOWN)?;
        Ok(Self(IdRef::create(net, space, handler, hold)?))
    }

    pub(super) fn new_owner(id: IdRef) -> Self {
        Self(id)
    }

    /// Locks the handler mutex: no handler of this id runs as long as the result lives.
    ///
    /// `EDEADLK` if this task is in a handler or has locked an id already.
    pub fn lock(&self) -> Result<Locked<'_>> {
        if Inside::known() {
            return Err(EDEADLK);
        }
        let id = self.0 .0.as_arc_borrow();
        // SAFETY: The C id is valid as long as it is used.
        unsafe { bindings::rdma_lock_handler(id.as_raw()) };
        Ok(Locked {
            // SAFETY: The mutex was just locked and the borrow of `self` keeps the C id.
            token: unsafe { Token::new(id) },
            _inside: Inside::enter(),
        })
    }

    /// Lets the local address be one that other ids have, too, unless one of them listens on it. Before it is bound.
    pub fn set_reuse_addr(&self, reuse: bool) -> Result {
        let token = self.lock()?;
        token.require(Phase::New)?;
        // SAFETY: The id is valid.
        to_result(unsafe { bindings::rdma_set_reuseaddr(token.as_raw(), reuse.into()) })
    }

    /// Restricts a listener to the family of its address: IPv6 without IPv4. Before it listens.
    pub fn set_af_only(&self, only: bool) -> Result {
        let token = self.lock()?;
        if !matches!(token.phase(), Phase::New | Phase::Bound) {
            return Err(EINVAL);
        }
        // SAFETY: The id is valid.
        to_result(unsafe { bindings::rdma_set_afonly(token.as_raw(), only.into()) })
    }

    /// Gives the id its local address. Port zero means any free one.
    ///
    /// `EADDRINUSE` or `EADDRNOTAVAIL` if another id has it, `ENODEV` if no device has it, `EACCES` for a low port, `EINVAL` if the id has one.
    pub fn bind_addr(&self, addr: &Addr) -> Result {
        let token = self.lock()?;
        token.require(Phase::New)?;
        let mut raw = RawAddr::from(addr);
        // SAFETY: The id is valid, and the address is a complete one during the call.
        to_result(unsafe { bindings::rdma_bind_addr(token.as_raw(), raw.as_raw()) })?;
        token.set_phase(Phase::Bound);
        Ok(())
    }

    /// Listens on the address that the id was bound to, on all devices if that is any.
    ///
    /// `EINVAL` if it was not bound, or has listened before. If this fails the id is of no further use. `backlog` is how
    /// many requests may wait; InfiniBand devices do not care.
    pub fn listen(&self, backlog: u16) -> Result {
        let token = self.lock()?;
        token.require(Phase::Bound)?;
        token.set_phase(Phase::Listening);
        let raw = token.as_raw();
        // From here on the phase keeps others away, and C must not wait for handlers under the mutex.
        drop(token);
        // SAFETY: The id is valid as long as it is used. It is bound, and nothing else is done with it.
        to_result(unsafe { bindings::rdma_listen(raw, backlog.into()) })
    }

    /// Looks for the peer: what follows is [`Event::AddrResolved`](super::Event::AddrResolved) or
    /// [`Event::AddrError`](super::Event::AddrError), maybe before this returns.
    ///
    /// Once for each id. `src` is the local address if the id is not bound yet and it matters. `timeout` is in
    /// milliseconds, 1 to 600 000. `EINVAL` if the addresses do not go together, or the id is in use.
    pub fn resolve_addr(&self, src: Option<&Addr>, dst: &Addr, timeout: u32) -> Result {
        let timeout = checked_timeout(timeout)?;
        let token = self.lock()?;
        match (token.phase(), src) {
            (Phase::New, Some(src)) if !src.same_family(dst) => return Err(EINVAL),
            (Phase::New, _) | (Phase::Bound, None) => {}
            _ => return Err(EINVAL),
        }
        let mut src = src.map(RawAddr::from);
        let mut dst = RawAddr::from(dst);
        let src = src.as_mut().map_or(ptr::null_mut(), RawAddr::as_raw);
        token.set_phase(Phase::Resolving);
        // SAFETY: The id is valid and its mutex held; the addresses are complete ones during the call.
        let result = to_result(unsafe {
            bindings::rdma_resolve_addr(token.as_raw(), src, dst.as_raw(), timeout)
        });
        if result.is_err() {
            token.set_phase(Phase::Spent);
        }
        result
    }

    /// [`Token::disconnect`].
    pub fn disconnect(&self) -> Result {
        self.lock()?.disconnect()
    }

    /// The local address; `ENOTCONN` if there is none.
    pub fn local_addr(&self) -> Result<Addr> {
        self.lock()?.local_addr().ok_or(ENOTCONN)
    }

    /// The peer's address; `ENOTCONN` if there is none.
    pub fn peer_addr(&self) -> Result<Addr> {
        self.lock()?.peer_addr().ok_or(ENOTCONN)
    }
}

impl Drop for CmId {
    fn drop(&mut self) {
        let id = &self.0 .0;
        let handler = id.take_handler();
        if !Inside::possible() {
            // Waits for a call that runs, in case a queue pair keeps the C id. Requests of a listener on all devices
            // come without its mutex, but it has no queue pair: its C id is destroyed when this returns.
            // SAFETY: The C id is valid as long as it is used.
            unsafe {
                bindings::rdma_lock_handler(id.as_raw());
                bindings::rdma_unlock_handler(id.as_raw());
            }
        }
        drop(handler);
    }
}

/// A locked id: gives the [`Token`], and unlocks when dropped.
pub struct Locked<'a> {
    token: Token<'a>,
    // Dropped after the mutex is unlocked.
    _inside: Inside,
}

impl<'a> Deref for Locked<'a> {
    type Target = Token<'a>;

    fn deref(&self) -> &Token<'a> {
        &self.token
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // SAFETY: The C id is valid, and this task has locked it.
        unsafe { bindings::rdma_unlock_handler(self.token.as_raw()) };
    }
}
