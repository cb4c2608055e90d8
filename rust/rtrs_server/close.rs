// SPDX-License-Identifier: GPL-2.0

//! The end of a path.
//!
//! C counterpart: `rtrs_srv_close_work`. There the end waits for every operation, that is for disks. Here an operation
//! keeps the memory it works on and nothing of the device, so the end of a path, of a device and of a session waits for
//! the device and for a user that looks at a request, and for nothing else.
//!
//! Circles that end here: path - connection - path; connection - queue pair - its handler - connection; connection -
//! connection manager's id - its handler - connection.

use crate::{
    conn::Conn,
    path::{
        task,
        Path, //
    },
};
use kernel::sync::{
    atomic::Relaxed,
    Arc, //
};
use weft::workqueue::{
    Task,
    TaskItem, //
};
use weft_proto::rtrs::state::ServerEvent;

impl TaskItem<{ task::CLOSE }> for Path {
    fn run(this: Arc<Self>) {
        // Nobody makes connections any more (accept.rs looks at the state under the lock), and neither do these.
        Task::<Self, { task::SETUP }>::cancel_sync(&this);
        Task::<Self, { task::TIMER }>::cancel_sync(&this);
        let conns = this.conns.lock().take();
        for conn in conns.list.iter().flatten() {
            conn.end();
        }
        this.session.chunks.cancel(&this);
        // Nothing of the device is left, and its removal need not wait for disks.
        drop(conns);
        this.leave_sysfs();
        // ORDERING: The setup task has ended.
        if this.counted.xchg(false, Relaxed) {
            this.session.path_down();
        }
        this.step(ServerEvent::Closed);
        this.session.server().registry.leave(&this);
    }
}

impl Conn {
    /// Tells the client, ends everything that the device does for the connection, and what waited for it. Sleeps.
    fn end(&self) {
        // Not under the lock: ending a connection takes the handler mutex, under which others take the lock.
        let id = self.id.lock().take();
        if let Some(id) = &id {
            // Fails if there is no connection any more.
            let _ = id.disconnect();
        }
        self.shut();
        let serving = self.serving.lock().take();
        drop(serving);
        drop(id);
    }
}
