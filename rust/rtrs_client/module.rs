// SPDX-License-Identifier: GPL-2.0

//! What the sessions of the module share: queues, the class in sysfs, and the list of sessions.

use crate::{
    path::Path,
    session::Session, //
};
use kernel::{
    error::code::EEXIST,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};
use weft::{
    global::Global,
    sysfs::Class,
    workqueue::QueueHandle, //
};
use weft_rdma::{
    device::Device,
    watch::Watcher, //
};

/// The state of the loaded module, for those who open a session.
pub(crate) static MODULE: Global<Module> = Global::new();

/// What all sessions share.
#[pin_data]
pub(crate) struct Module {
    /// For what requests wait for: recovery, heartbeats, and sending again what has waited.
    pub(crate) urgent: QueueHandle,
    /// For what may take long: connecting, and calling the user.
    pub(crate) patient: QueueHandle,
    class: Class,
    #[pin]
    sessions: Mutex<KVec<Arc<Session>>>,
}

impl Module {
    pub(crate) fn new(
        urgent: QueueHandle,
        patient: QueueHandle,
        class: Class,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                urgent,
                patient,
                class,
                sessions <- new_mutex!(KVec::new(), "rtrs_sessions"),
            }),
            GFP_KERNEL,
        )
    }

    /// The module, while it is loaded. Any context.
    pub(crate) fn get() -> Option<Arc<Self>> {
        MODULE.get()
    }

    /// `/sys/class/rtrs-client`.
    pub(crate) fn class(&self) -> &Class {
        &self.class
    }

    /// Adds a session; `EEXIST` if there is one of its name. Sleeps.
    pub(crate) fn add(&self, session: &Arc<Session>) -> Result {
        let mut sessions = self.sessions.lock();
        if sessions.iter().any(|known| known.name == session.name) {
            return Err(EEXIST);
        }
        sessions.push(session.clone(), GFP_KERNEL)?;
        Ok(())
    }

    /// Forgets a session. Sleeps.
    pub(crate) fn remove(&self, session: &Arc<Session>) {
        self.sessions
            .lock()
            .retain(|known| !Arc::ptr_eq(known, session));
    }

    fn for_each_path(&self, visit: impl Fn(&Arc<Path>)) {
        for session in self.sessions.lock().iter() {
            for path in session.board.lock().paths.iter() {
                visit(path);
            }
        }
    }
}

impl Watcher for Module {
    /// Paths that wait for their device need not wait any longer.
    fn arrived(&self, _device: &Arc<Device>) {
        self.for_each_path(Path::try_soon);
    }

    /// Paths on the device break; their recovery lets go of it.
    fn removed(&self, device: &Arc<Device>) {
        self.for_each_path(|path| path.leave_device(device));
    }
}
