// SPDX-License-Identifier: GPL-2.0

//! A session as RNBD sees it: what version the client speaks and which devices it has open.
//!
//! Requests for data are started where they arrive. Opening and closing a device may take long, so these go to a task
//! of the session, which does them one after another in the order they came.
//!
//! C counterpart: `struct rnbd_srv_session`.

use crate::{
    device::{
        Device,
        DRAIN_MS, //
    },
    io,
    open::{
        self,
        Wanted, //
    },
    server::Shared,
    table::Table, //
};
use core::mem;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex, //
    },
};
use rtrs_server::{
    operation::{
        Direction,
        Operation, //
    },
    user::SessionUser, //
};
use weft::{
    new_task, pr_ratelimited,
    time::{
        jiffies,
        msecs_to_jiffies, //
    },
    workqueue::{
        Task,
        TaskItem, //
    },
};
use weft_proto::{
    errno::Failure,
    rnbd::{
        message::{
            Carrier,
            Message, //
        },
        wire::SessInfo, //
    },
    rtrs::name::SessionName, //
};
use zerocopy::IntoBytes;

/// How long a client that begins anew waits for what it has given up, in milliseconds: less than it waits for an answer.
const ANEW_MS: u32 = 20_000;

/// What waits for the task of a session.
enum Job {
    /// The client introduces itself once more, in this version of the protocol.
    Again(u8, Operation),
    Open(Wanted, Operation),
    Close(u32, Operation),
}

/// Jobs in the order they came; `None` once the session is over. Each holds an operation, which bounds their number.
type Jobs = Option<KVec<Job>>;

/// A session.
#[pin_data]
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) name: SessionName,
    #[pin]
    pub(crate) devices: Table<Device>,
    /// Lower of the two protocol versions; 0 until the client has said which it speaks.
    version: Atomic<u32>,
    /// The path over which it said so last.
    introduced: Atomic<u64>,
    #[pin]
    jobs: Mutex<Jobs>,
    #[pin]
    task: Task<Session>,
}

weft::impl_has_task! { impl HasTask<0> for Session { self.task } }

impl Session {
    /// A session without devices. May sleep.
    pub(crate) fn new(shared: &Arc<Shared>, name: SessionName) -> Result<Arc<Self>> {
        Arc::pin_init(
            try_pin_init!(Self {
                shared: shared.clone(),
                name,
                devices <- Table::new(),
                version: Atomic::new(0),
                introduced: Atomic::new(0),
                jobs <- new_mutex!(Some(KVec::new()), "rnbd_server_jobs"),
                task <- new_task!(shared.queue.clone(), "rnbd_server_session"),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Takes a closed device out of the table.
    pub(crate) fn forget(&self, id: u32) {
        self.forgotten(id, self.devices.free(id));
    }

    /// Whether a device could be taken out of the table.
    pub(crate) fn forgotten(&self, id: u32, result: Result) {
        if result.is_err() {
            // The number stays taken and its device answers nothing: as good as kept.
            pr_ratelimited!(pr_warn, "{}: no memory to forget device {}\n", self, id);
        }
    }

    fn request(self: &Arc<Self>, operation: Operation, message: &[u8]) {
        let carrier = Carrier {
            is_write: operation.direction() == Direction::Write,
            data_len: operation.data_len(),
        };
        // ORDERING: A number by itself.
        let version = u8::try_from(self.version.load(Relaxed)).unwrap_or(0);
        match Message::parse(message, carrier, version) {
            Ok(Message::Io(request)) => io::start(self, operation, &request),
            Ok(Message::SessInfo { version }) => self.introduced(version, operation),
            Ok(Message::Open { access, path }) => match Wanted::new(access, path) {
                Ok(wanted) => self.enqueue(Job::Open(wanted, operation)),
                Err(error) => operation.reply(Err(error)),
            },
            Ok(Message::Close { device_id }) => self.enqueue(Job::Close(device_id, operation)),
            Err(why) => {
                pr_ratelimited!(pr_warn, "{}: {}\n", self, weft::fmt::Plain(why));
                operation.reply(Err(Error::from_errno(why.errno().code())));
            }
        }
    }

    /// The client says which version it speaks: the first thing it does whenever it had no path and has one again.
    ///
    /// This server may not have noticed that it had none, and still be at work on what the client has given up.
    fn introduced(self: &Arc<Self>, version: u8, operation: Operation) {
        // ORDERING: Numbers by themselves.
        let first = self.version.load(Relaxed) == 0;
        if first || self.introduced.load(Relaxed) == operation.path().unwrap_or(0) {
            self.welcome(version, operation);
        } else {
            self.enqueue(Job::Again(version, operation));
        }
    }

    fn welcome(&self, version: u8, operation: Operation) {
        // ORDERING: As above.
        self.introduced
            .store(operation.path().unwrap_or(0), Relaxed);
        self.version.store(version.into(), Relaxed);
        answer_with(operation, SessInfo::response(version).as_bytes());
    }

    /// What the client had before it lost its paths is over, before it is told that it may go on: nothing that it has
    /// given up reaches a disk after that.
    fn begin_anew(&self, version: u8, operation: Operation) {
        pr_info!("{}: the client has lost its paths and begins anew\n", self);
        operation.close_older_paths();
        self.close_all(ANEW_MS);
        // Whatever of that comes late finds its device under no number.
        if self.devices.keep_all().is_err() {
            // Then the closed devices stay in their places, as good as kept.
            pr_warn!("{}: no memory to forget the devices\n", self);
        }
        self.welcome(version, operation);
    }

    /// Closes all devices, and waits for what is under way on them, at most so long.
    fn close_all(&self, ms: u32) {
        self.devices.for_each(|device| {
            device.shut();
        });
        let deadline = jiffies().wrapping_add(msecs_to_jiffies(ms));
        self.devices
            .for_each(|device| device.drain(left_until(deadline)));
    }

    fn enqueue(self: &Arc<Self>, job: Job) {
        let mut jobs = self.jobs.lock();
        // Otherwise the job is dropped, which answers it.
        if let Some(jobs) = &mut *jobs {
            let _ = jobs.push(job, GFP_KERNEL);
        }
        drop(jobs);
        Task::schedule(self, 0);
    }

    fn do_job(self: &Arc<Self>, job: Job) {
        match job {
            Job::Again(version, operation) => self.begin_anew(version, operation),
            Job::Open(wanted, operation) => match open::open(self, &wanted) {
                Ok(answer) => answer_with(operation, answer.as_bytes()),
                Err(error) => operation.reply(Err(error)),
            },
            Job::Close(id, operation) => {
                self.close(id);
                operation.reply(Ok(0));
            }
        }
    }

    /// CLOSE always succeeds, also of what is not open (any more).
    fn close(&self, id: u32) {
        if let Some(device) = self.devices.get(id) {
            device.close();
        }
        self.forget(id);
    }

    /// The session is over: nothing is opened any more, and all devices are closed.
    fn end(self: &Arc<Self>) {
        let jobs = self.jobs.lock().take();
        Task::cancel_sync(self);
        drop(jobs);
        self.close_all(DRAIN_MS);
        if self.devices.clear().is_err() {
            pr_warn!("{}: no memory to forget the devices at once\n", self);
        }
        pr_info!("{}: session is over\n", self);
    }
}

impl TaskItem<0> for Session {
    fn run(this: Arc<Self>) {
        let jobs = match &mut *this.jobs.lock() {
            Some(jobs) => mem::take(jobs),
            None => return,
        };
        for job in jobs {
            // The rest is dropped, which answers it.
            if this.jobs.lock().is_none() {
                return;
            }
            this.do_job(job);
        }
    }
}

/// Ticks until `deadline`; 0 if it has passed.
fn left_until(deadline: usize) -> usize {
    let left = deadline.wrapping_sub(jiffies());
    // The counter wraps: what seems more than half of it is in the past.
    if left > usize::MAX / 2 {
        0
    } else {
        left
    }
}

/// Answers with a message in the data, if the client has room for it.
fn answer_with(operation: Operation, message: &[u8]) {
    let written = operation
        .write(message)
        .and_then(|()| u32::try_from(message.len()).map_err(|_| EMSGSIZE));
    operation.reply(written);
}

impl kernel::fmt::Display for Session {
    fn fmt(&self, f: &mut kernel::fmt::Formatter<'_>) -> kernel::fmt::Result {
        f.write_str(self.name.as_str())
    }
}

/// A session as RTRS knows its user.
pub(crate) struct User(pub(crate) Arc<Session>);

impl SessionUser for User {
    fn request(&self, operation: Operation, message: &[u8]) {
        self.0.request(operation, message);
    }

    fn disconnected(&self) {
        self.0.end();
    }
}
