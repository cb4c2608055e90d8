// SPDX-License-Identifier: GPL-2.0

//! A device as its server knows it: opened for the first time, opened again after the session was lost, closed.
//!
//! C counterpart: `process_msg_open_rsp`, `remap_devs` and `rnbd_clt_remap_device` in `drivers/block/rnbd/rnbd-clt.c`.

use crate::{
    admin,
    device::Device, //
};
use kernel::{
    error::code::ECONNRESET,
    prelude::*, //
};
use weft::fmt::Plain;
use weft_proto::rnbd::{
    control::{
        DeviceEvent as Event,
        DeviceState as State, //
    },
    limits::Device as Offer,
    path::DevicePath, //
};
use zerocopy::IntoBytes;

impl Device {
    /// Has the server open the device. Sleeps. From `Ok` on the server is to be told when it is not used any more.
    pub(crate) fn open(&self) -> Result<Offer> {
        let path = DevicePath::new(self.path.to_bytes()).map_err(|_| EINVAL)?;
        self.session.talk(|told| {
            if self.state() == State::Unmapped {
                // The path may be that of another device by now, and the server knows nothing but the path.
                return Err(ENODEV);
            }
            let life = self.rtrs.life();
            if self.is_open_in(life) {
                // By somebody else, while this one waited for his turn.
                return Err(EALREADY);
            }
            let answer = told
                .introduce(&self.rtrs, life)
                .and_then(|()| admin::open(&self.rtrs, life, path, self.access))
                .inspect_err(|error| {
                    pr_err!("{}: the server does not open it: {:?}\n", self, error);
                })?;
            self.opened(answer.as_bytes(), life).inspect_err(|_| {
                // The server thinks that all is well.
                self.close(answer.fields().device_id, life);
            })
        })
    }

    /// Whether the server has the device open in this life of the session, as far as is known.
    fn is_open_in(&self, life: u32) -> bool {
        self.state() == State::Mapped
            && self
                .target
                .get()
                .is_some_and(|(_, opened_in)| opened_in == life)
    }

    /// Tells the server that the number it gave out in this life of the session is not used any more. Sleeps. Within
    /// [`Session::talk`](crate::session::Session::talk).
    pub(crate) fn close(&self, id: u32, life: u32) {
        if !self.session.is_closed() {
            // In another life the number may be that of another device, and the server has closed this one.
            let _ = admin::close(&self.rtrs, life, id);
        }
    }

    /// Acts upon the server's answer, given in this life of the session.
    fn opened(&self, answer: &[u8], life: u32) -> Result<Offer> {
        let refused = |why| {
            pr_err!("{}: refused: {}\n", self, Plain(why));
            EINVAL
        };
        let max_io_size = self.rtrs.attrs()?.max_io_size;
        let offer = Offer::parse(answer, max_io_size).map_err(refused)?;
        let mut inner = self.inner.lock();
        let before = inner.state;
        let state = match before.step(Event::Opened) {
            Ok(state) => state,
            Err(State::Mapped) => State::Mapped,
            Err(_) => return Err(ENOENT),
        };
        if self.rtrs.life() != life || !self.rtrs.is_up() {
            // The answer came from before the session went down: the number in it may mean another device by now.
            return Err(ECONNRESET);
        }
        if let Some(old) = &inner.offer {
            offer.continues(old).map_err(refused)?;
        }
        inner.offer.get_or_insert(offer);
        self.target.set(offer.device_id, life);
        inner.state = state;
        if before == State::Disconnected {
            self.back_again(&inner, &offer);
        }
        Ok(offer)
    }

    /// Opens the device on the server again because a user says so. Sleeps.
    pub(crate) fn remap(&self) -> Result {
        match self.state() {
            State::Disconnected => {}
            State::Mapped => return Err(EALREADY),
            State::Unmapped => return Err(ENODEV),
            State::Init => return Err(EBUSY),
        }
        pr_info!("{}: mapping it again\n", self);
        self.open().map(drop)
    }

    /// The session is in this life. A device that was opened in an earlier one is not open any more, whether that was told
    /// or not.
    pub(crate) fn forget_earlier(&self, life: u32) {
        if self
            .target
            .get()
            .is_some_and(|(_, opened_in)| opened_in != life)
        {
            self.link_down();
        }
    }

    /// Whether the device is to be opened on the server again, now that the session is in this life.
    pub(crate) fn wants_remap(&self, life: u32) -> bool {
        let inner = self.inner.lock();
        inner.state == State::Disconnected && inner.tried_in != Some(life)
    }

    /// Opens the device on the server again. If that fails requests fail for as long as the session is up, until a user
    /// tries again. If it is lost once more they wait as before, for it to come back and the device to be tried again.
    pub(crate) fn remap_after_reconnect(&self, life: u32) {
        self.inner.lock().tried_in = Some(life);
        if let Err(error) = self.open() {
            // Its target stays that of an earlier life, for which requests are sent back: see `queue::again`.
            if self.state() == State::Disconnected {
                pr_err!(
                    "{}: stays closed: {:?}; write 1 to remap_device to try again\n",
                    self,
                    error
                );
            }
        }
    }
}
