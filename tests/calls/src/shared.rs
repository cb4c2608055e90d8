// SPDX-License-Identifier: GPL-2.0

//! What all threads share: the sockets, the ledger, the counts, and what went wrong.

use crate::calls::Call;
use crate::ledger::{Ledger, Receiver};
use crate::memory::{self, Region};
use crate::message::HEADER;
use crate::name::Name;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Sockets that are open at a time.
const SOCKETS: usize = 40;
/// Headers that can be lent to the kernel at a time.
const PLACES: usize = 32768;
/// How long a header is left alone after its message is done. Its receiver is on this machine and has the sender's pages
/// until the message is read, which no number tells: see "Sending without copying" in Documentation/rds.rst.
const UNREAD_FOR: Duration = Duration::from_secs(60);
/// Violations that are printed.
const MOST: u32 = 20;

/// A lock that a panic elsewhere does not take away.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A socket; the last user closes it.
pub(crate) struct Sock {
    pub(crate) fd: usize,
    pub(crate) id: u32,
    pub(crate) namespace: u64,
    pub(crate) name: OnceLock<Name>,
    shared: &'static Shared,
}

impl Sock {
    /// What the ledger wants to know of it.
    pub(crate) fn receiver(&self) -> Receiver {
        Receiver {
            id: self.id,
            name: self.name.get().copied(),
            namespace: self.namespace,
        }
    }
}

impl Drop for Sock {
    fn drop(&mut self) {
        self.shared.note(
            Call::Close,
            memory::call(Call::Close.number(), [self.fd, 0, 0, 0, 0, 0]),
        );
        let lent = lock(&self.shared.ledger).close(self.id);
        lock(&self.shared.places).retire(lent);
    }
}

/// Where headers of zero-copy messages are.
pub(crate) struct Places {
    memory: Region,
    free: Vec<usize>,
    retired: VecDeque<(Instant, usize)>,
}

impl Places {
    fn new() -> io::Result<Self> {
        let free = (0..PLACES).map(|number| number * HEADER).collect();
        Ok(Self {
            memory: Region::new(PLACES * HEADER)?,
            free,
            retired: VecDeque::new(),
        })
    }

    /// A place that the kernel does not use.
    pub(crate) fn take(&mut self) -> Option<usize> {
        while self
            .retired
            .front()
            .is_some_and(|(since, _)| since.elapsed() > UNREAD_FOR)
        {
            self.free
                .extend(self.retired.pop_front().map(|(_, place)| place));
        }
        self.free.pop()
    }

    /// Writes a header there; its address.
    pub(crate) fn write(&mut self, place: usize, header: &[u8; HEADER]) -> usize {
        self.memory.put(place, header);
        self.memory.at(place)
    }

    /// Their messages are done, or were taken back.
    pub(crate) fn retire(&mut self, places: Vec<usize>) {
        let now = Instant::now();
        self.retired
            .extend(places.into_iter().map(|place| (now, place)));
    }
}

/// What a thread is doing.
#[derive(Default)]
pub(crate) struct Watch {
    pub(crate) thread: AtomicI32,
    now: Mutex<Option<(Call, [usize; 6], Instant)>>,
}

impl Watch {
    /// A call begins.
    pub(crate) fn begin(&self, call: Call, args: [usize; 6]) {
        *lock(&self.now) = Some((call, args, Instant::now()));
    }

    /// It is over; how long it took.
    pub(crate) fn end(&self) -> Duration {
        lock(&self.now)
            .take()
            .map_or(Duration::ZERO, |(_, _, since)| since.elapsed())
    }

    /// What the thread is waiting in, and for how long.
    pub(crate) fn waits(&self) -> Option<(String, Duration)> {
        let (call, args, since) = (*lock(&self.now))?;
        Some((format!("{call:?} {args:x?}"), since.elapsed()))
    }
}

/// Everything.
pub(crate) struct Shared {
    pub(crate) slots: Vec<Mutex<Option<Arc<Sock>>>>,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) places: Mutex<Places>,
    pub(crate) watches: Vec<Watch>,
    pub(crate) namespaces: Vec<String>,
    pub(crate) over: AtomicBool,
    pub(crate) received: AtomicU64,
    cookie: AtomicU32,
    violations: AtomicU32,
    counts: Vec<[AtomicU64; 160]>,
}

impl Shared {
    /// For some threads, and for namespaces of these names.
    pub(crate) fn new(threads: usize, namespaces: Vec<String>) -> io::Result<Self> {
        Ok(Self {
            slots: (0..SOCKETS).map(|_| Mutex::default()).collect(),
            ledger: Mutex::default(),
            places: Mutex::new(Places::new()?),
            watches: (0..threads).map(|_| Watch::default()).collect(),
            namespaces,
            over: AtomicBool::new(false),
            received: AtomicU64::new(0),
            cookie: AtomicU32::new(1),
            violations: AtomicU32::new(0),
            counts: (0..Call::COUNT)
                .map(|_| [const { AtomicU64::new(0) }; 160])
                .collect(),
        })
    }

    /// A socket that is open in the calling thread's namespace.
    pub(crate) fn sock(&'static self, fd: usize, namespace: u64) -> Arc<Sock> {
        let id = lock(&self.ledger).open(namespace);
        Arc::new(Sock {
            fd,
            id,
            namespace,
            name: OnceLock::new(),
            shared: self,
        })
    }

    /// A number for a zero-copy message.
    pub(crate) fn cookie(&self) -> u32 {
        self.cookie.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a result.
    pub(crate) fn note(&self, call: Call, result: Result<usize, i32>) {
        let errno = result
            .err()
            .and_then(|errno| usize::try_from(errno).ok())
            .unwrap_or(0);
        // CAST: The number of the variant.
        self.counts[call as usize][errno.min(159)].fetch_add(1, Ordering::Relaxed);
    }

    /// Something is wrong.
    pub(crate) fn violation(&self, text: &str) {
        if self.violations.fetch_add(1, Ordering::Relaxed) < MOST {
            println!("violation: {text}");
        }
    }

    /// How often that was.
    pub(crate) fn violations(&self) -> u32 {
        self.violations.load(Ordering::Relaxed)
    }

    /// All calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.counts
            .iter()
            .flatten()
            .map(|count| count.load(Ordering::Relaxed))
            .sum()
    }

    /// How often a call has succeeded.
    pub(crate) fn successes(&self, call: Call) -> u64 {
        // CAST: The number of the variant.
        self.counts[call as usize][0].load(Ordering::Relaxed)
    }

    /// The results of a call, most of them errors, in words.
    pub(crate) fn summary(&self, call: Call) -> String {
        // CAST: The number of the variant.
        let counts = self.counts[call as usize]
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        let text = |(errno, count): (usize, u64)| match errno {
            0 => format!("{count} worked"),
            _ => format!("{count} {}", error_name(errno)),
        };
        let all: Vec<_> = counts
            .enumerate()
            .filter(|(_, count)| *count > 0)
            .map(text)
            .collect();
        format!("{call:?}: {}", all.join(", "))
    }
}

/// What an errno means.
pub(crate) fn error_name(errno: usize) -> String {
    let number = i32::try_from(errno).unwrap_or(0);
    let text = io::Error::from_raw_os_error(number).to_string();
    text.split(" (os").next().unwrap_or_default().to_owned()
}
