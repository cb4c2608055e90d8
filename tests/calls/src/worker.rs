// SPDX-License-Identifier: GPL-2.0

//! A thread that makes calls.

use crate::calls::Call;
use crate::memory::{self, Region, NOWHERE};
use crate::rng::Rng;
use crate::shared::{error_name, lock, Shared, Sock};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// The longest that a call may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);
/// Calls that are printed if something is wrong.
const TRAIL: usize = 12;

/// Where in a thread's memory is what.
pub(crate) mod place {
    /// An address that is handed in.
    pub(crate) const NAME: usize = 0;
    /// An address that is handed out, and its length.
    pub(crate) const NAME_OUT: usize = 512;
    pub(crate) const NAME_LEN: usize = 1016;
    /// A header that is sent.
    pub(crate) const HEADER: usize = 1024;
    /// The message that is sent without a header.
    pub(crate) const FILLER: usize = 1152;
    /// `struct msghdr`.
    pub(crate) const MSGHDR: usize = 1280;
    /// `struct pollfd` or `epoll_event`, several.
    pub(crate) const POLL: usize = 1408;
    /// Vectors.
    pub(crate) const IOV: usize = 4096;
    /// Control messages.
    pub(crate) const CONTROL: usize = 24576;
    /// Options.
    pub(crate) const OPTION: usize = 32768;
    pub(crate) const OPTION_LEN: usize = 65536;
    /// What is received.
    pub(crate) const DATA: usize = OPTION + OPTION_LEN;
    pub(crate) const DATA_LEN: usize = 5 << 18;
    pub(crate) const END: usize = DATA + DATA_LEN;
}

/// The thread.
pub(crate) struct Worker {
    pub(crate) shared: &'static Shared,
    pub(crate) index: u32,
    pub(crate) rng: Rng,
    pub(crate) memory: Region,
    pub(crate) read_only: Region,
    /// The namespace it is in.
    pub(crate) namespace: u64,
    pub(crate) epoll: usize,
    pub(crate) pipe: [usize; 2],
    trail: VecDeque<String>,
}

impl Worker {
    /// A thread with a sequence of its own.
    pub(crate) fn new(shared: &'static Shared, seed: u64, index: u32) -> io::Result<Self> {
        let mut memory = Region::new(place::END)?;
        let read_only = Region::read_only()?;
        memory.put(place::FILLER, &[crate::message::FILLER; 64]);
        let os = io::Error::from_raw_os_error;
        let epoll = memory::call(libc::SYS_epoll_create1, [0; 6]).map_err(os)?;
        // CAST: A flag.
        let flags = libc::O_NONBLOCK as usize;
        memory::call(libc::SYS_pipe2, [memory.at(place::POLL), flags, 0, 0, 0, 0]).map_err(os)?;
        // CAST: Two file descriptors.
        let pipe = [0, 4].map(|at| memory.u32(place::POLL + at) as usize);
        let rng = Rng::new(seed, u64::from(index) + 1);
        Ok(Self {
            shared,
            index,
            rng,
            memory,
            read_only,
            namespace: 0,
            epoll,
            pipe,
            trail: VecDeque::new(),
        })
    }

    /// Makes calls until it is over.
    pub(crate) fn run(&mut self) {
        let thread = memory::call(libc::SYS_gettid, [0; 6]).unwrap_or(0);
        self.watch()
            .thread
            .store(i32::try_from(thread).unwrap_or(0), Ordering::Relaxed);
        self.move_namespace();
        while !self.shared.over.load(Ordering::Relaxed) {
            self.act();
        }
    }

    fn watch(&self) -> &'static crate::shared::Watch {
        // CAST: An index.
        &self.shared.watches[self.index as usize]
    }

    /// Does one of all the things there are.
    fn act(&mut self) {
        match self.rng.below(1000) {
            0..330 => self.send(),
            330..620 => self.receive(),
            620..680 => self.poll(),
            680..730 => self.epoll(),
            730..790 => self.bind(),
            790..820 => self.connect(),
            820..850 => self.names(),
            850..890 => self.set_option(),
            890..930 => self.get_option(),
            930..940 => self.ioctl(),
            940..950 => self.fcntl(),
            950..965 => self.refused(),
            965..975 => self.splice(),
            975..985 => self.dup(),
            985..996 => self.replace(),
            996..998 => self.move_namespace(),
            _ => self.fork(),
        }
    }

    /// Makes a call and judges its error.
    pub(crate) fn call(&mut self, call: Call, args: [usize; 6]) -> Result<usize, i32> {
        self.watch().begin(call, args);
        let result = memory::call(call.number(), args);
        let took = self.watch().end();
        self.shared.note(call, result);
        self.trail
            .push_back(format!("{call:?} {args:x?} = {result:?}"));
        if self.trail.len() > TRAIL {
            self.trail.pop_front();
        }
        if took > LIMIT {
            self.violation(&format!("{call:?} took {took:?}"));
        }
        match result {
            Err(errno) if !call.may_give(errno) => {
                let name = error_name(usize::try_from(errno).unwrap_or(0));
                self.violation(&format!("{call:?} gave errno {errno}, {name}"));
            }
            _ => {}
        }
        result
    }

    /// Tells what is wrong, and what this thread has done last.
    pub(crate) fn violation(&mut self, text: &str) {
        self.shared
            .violation(&format!("thread {}: {text}", self.index));
        if self.shared.violations() < 5 {
            for line in &self.trail {
                println!("  thread {}: {line}", self.index);
            }
        }
        self.trail.clear();
    }

    /// Tells if something is wrong.
    pub(crate) fn judge(&mut self, result: Result<(), String>) {
        if let Err(text) = result {
            self.violation(&text);
        }
    }

    /// A socket; a new one if its place is empty.
    pub(crate) fn sock(&mut self) -> Option<Arc<Sock>> {
        let slot = self.rng.below(self.shared.slots.len());
        let found = lock(&self.shared.slots[slot]).clone();
        found.or_else(|| self.open(slot))
    }

    /// A socket that is open and, most of the time, has a name.
    pub(crate) fn bound_sock(&mut self) -> Option<Arc<Sock>> {
        for _ in 0..8 {
            let slot = self.rng.below(self.shared.slots.len());
            let found = lock(&self.shared.slots[slot]).clone();
            if found.as_ref().is_some_and(|sock| sock.name.get().is_some()) {
                return found;
            }
        }
        self.sock()
    }

    /// An address that is wrong for a call that reads or writes more than three bytes there.
    pub(crate) fn bad_address(&mut self) -> usize {
        match self.rng.below(8) {
            0 => self.memory.at(place::END) - 3,
            _ => self.nowhere(),
        }
    }

    /// An address of which not even the first byte can be accessed; for the bytes of messages, which may be few.
    pub(crate) fn nowhere(&mut self) -> usize {
        match self.rng.below(8) {
            0 => self.memory.at(place::END),
            _ => self.rng.of(&NOWHERE),
        }
    }

    /// An address for output: the right one, or rarely one that cannot be written.
    pub(crate) fn output(&mut self, right: usize) -> usize {
        match self.rng.below(60) {
            0 => self.bad_address(),
            1 => self.read_only.at(0),
            _ => right,
        }
    }

    /// An address for input: the right one, or rarely one that cannot be read.
    pub(crate) fn input(&mut self, right: usize) -> usize {
        match self.rng.permille(15) {
            true => self.bad_address(),
            false => right,
        }
    }
}
