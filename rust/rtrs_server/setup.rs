// SPDX-License-Identifier: GPL-2.0

//! The information exchange, which makes a path of a set of connections.
//!
//! C counterpart: `process_info_req`. The client asks on its first connection when all are there; what it asks for costs
//! memory and time, so it is done by a task. The order of its steps matters:
//!
//! 1. the session gets its name, if no other bears it;
//! 2. memory is mapped, and the connections are made to receive and serve;
//! 3. the files in sysfs appear;
//! 4. the path counts as connected, and the user is told of the session if this is its first path;
//! 5. the device learns the keys, and the client is told of them: requests may arrive from here on.

use crate::{
    conn::{
        Conn,
        Serving, //
    },
    path::{
        task,
        Path, //
    },
    slot::Slots, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    },
};
use weft::{
    fmt::Plain,
    pr_ratelimited,
    sync::wait::{
        Mode,
        WaitResult, //
    },
    time,
    workqueue::{
        Task,
        TaskItem, //
    },
};
use weft_proto::rtrs::{
    info,
    name::SessionName,
    state::{
        ServerEvent,
        ServerState, //
    },
    wire::Desc, //
};
use weft_rdma::{
    dma::{
        DmaBuf,
        ToDevice, //
    },
    pd::Pd,
    qp::Owner, //
};
use zerocopy::IntoBytes;

/// Milliseconds between two attempts to get a name that another session bears.
const NAME_RETRY_MS: u32 = 1000;
/// Attempts; together less than the 30 s that a client waits for information.
const NAME_TRIES: u32 = 15;
/// Attempts after which the other session is looked at again.
const NAME_PROBE_EVERY: u32 = 5;
/// Milliseconds that room in the send queue may take to appear.
const ROOM_LIMIT_MS: u32 = 10_000;

/// How far the exchange is.
#[derive(Default)]
pub(crate) struct Setup {
    /// What the client calls the session; there once the client has asked.
    name: Option<SessionName>,
    tries: u32,
}

/// Why a path could not be set up.
struct Failure {
    step: &'static str,
    error: Error,
}

impl kernel::fmt::Display for Failure {
    fn fmt(&self, f: &mut kernel::fmt::Formatter<'_>) -> kernel::fmt::Result {
        write!(f, "{} failed with {:?}", self.step, self.error)
    }
}

/// Names the step that an error came from.
fn at<T>(step: &'static str, result: Result<T>) -> Result<T, Failure> {
    result.map_err(|error| Failure { step, error })
}

impl Path {
    /// The client asked for information. Process context.
    pub(crate) fn asked(self: &Arc<Self>, name: SessionName) {
        let first = self.setup.lock().name.replace(name).is_none();
        if first && self.state() == ServerState::Connecting {
            self.set_up_in(0);
        } else {
            self.close("a second request for information");
        }
    }

    fn set_up_in(self: &Arc<Self>, ms: u32) {
        Task::<Self, { task::SETUP }>::schedule(self, time::msecs_to_jiffies(ms));
    }

    /// Does all steps; `false` if the name is taken, for now.
    fn set_up(self: &Arc<Self>) -> Result<bool, Failure> {
        let conns = at("counting the connections", self.all_conns())?;
        if !self.take_name()? {
            return Ok(false);
        }
        let pd = at("finding the device", self.pd())?;
        let slots = at("mapping memory", Slots::new(&self.session, &pd, conns))?;
        let first = at(
            "counting the connections",
            slots.conns().first().ok_or(ENOTCONN),
        )?;
        for conn in slots.conns() {
            at("posting receives", conn.open(&slots))?;
        }
        at("adding to sysfs", self.enter_sysfs())?;
        at(
            "connecting",
            self.step(ServerEvent::Established)
                .then_some(())
                .ok_or(ECONNRESET),
        )?;
        self.start_heartbeat();
        at("opening the session", self.serve(&slots))?;
        let regions = at("registering memory", self.register(first, &slots))?;
        let answer = at("describing memory", Information::new(&pd, &regions))?;
        at("answering", self.with_room(|| first.inform(&answer)))?;
        Ok(true)
    }

    /// The connections, if there are as many as the client announced.
    fn all_conns(&self) -> Result<KVVec<Arc<Conn>>> {
        let conns = self.conns.lock();
        let mut all = KVVec::with_capacity(conns.list.len(), GFP_KERNEL)?;
        for conn in conns.list.iter() {
            all.push(conn.clone().ok_or(ENOTCONN)?, GFP_KERNEL)?;
        }
        Ok(all)
    }

    /// The protection domain of the connections.
    fn pd(&self) -> Result<Arc<Pd>> {
        self.conns.lock().pd.clone().ok_or(ENOTCONN)
    }

    /// Gives the session the name that the client asked for; `false` if another session has it and may go away soon.
    fn take_name(self: &Arc<Self>) -> Result<bool, Failure> {
        let mut setup = self.setup.lock();
        let Some(name) = setup.name else {
            return at("naming the session", Err(EINVAL));
        };
        match self.session.server().registry.name(&self.session, &name) {
            Ok(()) => Ok(true),
            Err(Some(other)) if setup.tries < NAME_TRIES => {
                if setup.tries % NAME_PROBE_EVERY == 0 {
                    self.session.server().registry.probe(&other);
                }
                if setup.tries == 0 {
                    pr_ratelimited!(
                        pr_info,
                        "{}: another client has this name, looking whether it is alive\n",
                        Plain(&name)
                    );
                }
                setup.tries += 1;
                Ok(false)
            }
            Err(Some(_)) => at(
                "naming the session: another client has its name, which",
                Err(EEXIST),
            ),
            Err(None) => at(
                "naming the session: it has another name already, which",
                Err(EPERM),
            ),
        }
    }

    /// Tells the user of the path, and lets its connections serve requests.
    fn serve(self: &Arc<Self>, slots: &Arc<Slots>) -> Result {
        let user = self.session.path_up()?;
        self.note_up();
        // ORDERING: The closing task waits for this one to end first.
        self.counted.store(true, Relaxed);
        let config = self.session.server().config();
        for conn in slots.conns() {
            let mut message = KVVec::new();
            message.resize(
                usize::try_from(config.geometry.max_hdr_size())?,
                0,
                GFP_KERNEL,
            )?;
            *conn.serving.lock() = Some(Serving {
                user: user.clone(),
                slots: slots.clone(),
                message,
            });
        }
        Ok(())
    }

    /// Has the device learn the keys; what the client is told of them.
    fn register(&self, conn: &Conn, slots: &Slots) -> Result<KVVec<Desc>> {
        let mut regions = KVVec::new();
        for slot in slots.iter().filter(|slot| slot.key.is_some()) {
            regions.push(self.with_room(|| conn.register_slot(slot))?, GFP_KERNEL)?;
        }
        for group in slots.groups() {
            regions.push(self.with_room(|| conn.register_group(group))?, GFP_KERNEL)?;
        }
        Ok(regions)
    }

    /// Repeats `post` while there is no room, as long as that may take.
    fn with_room<T>(&self, post: impl Fn() -> Result<T>) -> Result<T> {
        let mut result = Err(EAGAIN);
        let limit = time::msecs_to_jiffies(ROOM_LIMIT_MS);
        let waited = self
            .changed
            .wait(Mode::Uninterruptible, i64::try_from(limit)?, || {
                if self.is_connected() {
                    result = post();
                } else {
                    result = Err(ECONNRESET);
                }
                !matches!(result, Err(EAGAIN))
            });
        match waited {
            WaitResult::Ready(_) => result,
            WaitResult::TimedOut | WaitResult::Signal(_) => Err(ETIMEDOUT),
        }
    }
}

impl TaskItem<{ task::SETUP }> for Path {
    fn run(this: Arc<Self>) {
        if this.state() != ServerState::Connecting {
            return;
        }
        match this.set_up() {
            Ok(true) => pr_info!("{}: connected\n", *this),
            Ok(false) => this.set_up_in(NAME_RETRY_MS),
            Err(failure) => this.close(&failure),
        }
    }
}

/// The answer to a request for information.
pub(crate) struct Information(pub(crate) DmaBuf<ToDevice>);

impl Owner for Information {}

impl Information {
    /// Describes memory regions.
    fn new(pd: &Pd, regions: &[Desc]) -> Result<Arc<Self>> {
        let count = u16::try_from(regions.len())?;
        let buffer = DmaBuf::new(pd.device(), info::response_len(count))?;
        let header = info::response_header(count);
        buffer.write(0, header.as_bytes())?;
        buffer.write(size_of_val(&header), regions.as_bytes())?;
        Ok(Arc::new(Self(buffer), GFP_KERNEL)?)
    }
}
