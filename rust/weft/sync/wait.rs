// SPDX-License-Identifier: GPL-2.0

//! Wait queues: sleep until a condition holds.
//!
//! C header: [`include/linux/wait.h`](srctree/include/linux/wait.h)
//!
//! A task sleeps in [`WaitQueue::wait`] until its condition holds; whoever makes it hold calls
//! [`WaitQueue::wake_all`] *afterwards*. The condition is an arbitrary closure and may itself take
//! sleeping locks, because the sleep is built on `wait_woken`, which sets the task state only
//! after the condition was looked at.
//!
//! * Waiting: process context, may sleep.
//! * Waking: any context.

use crate::bindings;
use kernel::{
    ffi,
    prelude::*,
    sync::{
        barrier::{
            smp_mb,
            Full, //
        },
        LockClassKey, //
    },
    task::might_sleep,
    types::Opaque, //
};

/// The timeout, in jiffies, that never expires: `MAX_SCHEDULE_TIMEOUT`.
pub const MAX_TIMEOUT: i64 = isize::MAX as i64;

/// Which signals end a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Any signal.
    Interruptible,
    /// None.
    Uninterruptible,
    /// Only those that kill the task.
    Killable,
}

impl Mode {
    /// The task state to sleep in.
    fn state(self) -> ffi::c_uint {
        match self {
            Self::Interruptible => bindings::TASK_INTERRUPTIBLE,
            Self::Uninterruptible => bindings::TASK_UNINTERRUPTIBLE,
            Self::Killable => bindings::TASK_KILLABLE,
        }
    }

    /// Whether a signal that ends this wait is pending for the current task.
    fn interrupted(self) -> bool {
        // SAFETY: Returns the current task, which stays valid while it runs this function.
        let current = unsafe { bindings::get_current() };
        match self {
            // SAFETY: `current` is a valid task.
            Self::Interruptible => unsafe { bindings::signal_pending(current) != 0 },
            Self::Uninterruptible => false,
            // SAFETY: `current` is a valid task.
            Self::Killable => unsafe { bindings::weft_helper_fatal_signal_pending(current) != 0 },
        }
    }
}

/// How a wait ended.
#[must_use]
#[derive(Debug)]
pub enum WaitResult {
    /// The condition holds; what is left of the timeout (at least 1).
    Ready(i64),
    /// The timeout expired and the condition does not hold.
    TimedOut,
    /// A signal is pending and the condition does not hold; the error to return to user space.
    Signal(Error),
}

/// Creates a [`WaitQueue`] initialiser with its own lockdep class.
///
/// ```ignore
/// waiters <- new_wait_queue!("Path::waiters"),
/// ```
#[macro_export]
macro_rules! new_wait_queue {
    ($($name:literal)? $(,)?) => {
        $crate::sync::wait::WaitQueue::new(
            ::kernel::optional_name!($($name)?),
            ::kernel::static_lock_class!(),
        )
    };
}

/// Tasks (and pollers) that wait for something.
///
/// # Invariants
///
/// `head` is an initialised `struct wait_queue_head`.
#[pin_data]
pub struct WaitQueue {
    #[pin]
    head: Opaque<bindings::wait_queue_head>,
}

// SAFETY: A `struct wait_queue_head` may be used from any thread.
unsafe impl Send for WaitQueue {}
// SAFETY: A `struct wait_queue_head` has a lock of its own; all methods may run in parallel.
unsafe impl Sync for WaitQueue {}

impl WaitQueue {
    /// Creates an initialiser; see [`new_wait_queue!`](crate::new_wait_queue).
    pub fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        // INVARIANT: `__init_waitqueue_head` initialises the head.
        pin_init!(Self {
            // SAFETY: `slot` is valid for writes and pinned; `name` and `key` live for ever.
            head <- Opaque::ffi_init(|slot| unsafe {
                bindings::__init_waitqueue_head(slot, name.as_char_ptr(), key.as_ptr())
            }),
        })
    }

    /// The C object.
    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::wait_queue_head {
        self.head.get()
    }

    /// Sleeps until `condition` holds, `timeout` jiffies pass or a signal of `mode` arrives.
    ///
    /// The condition is evaluated at least once, and once more after the timeout expired. An
    /// interrupted wait ends with `ERESTARTSYS`. May sleep.
    #[inline]
    pub fn wait(&self, mode: Mode, timeout: i64, condition: impl FnMut() -> bool) -> WaitResult {
        // SAFETY: By the type invariants the head is initialised, and it lives as long as `self`.
        unsafe {
            wait_on(
                self.as_raw(),
                Waiter::shared(mode, ERESTARTSYS),
                timeout,
                condition,
            )
        }
    }

    /// Like [`Self::wait`], but of all that wait like this [`Self::wake_one`] wakes only one.
    ///
    /// For conditions that only one of the waiters can use. May sleep.
    #[inline]
    pub fn wait_exclusive(
        &self,
        mode: Mode,
        timeout: i64,
        condition: impl FnMut() -> bool,
    ) -> WaitResult {
        let waiter = Waiter {
            exclusive: true,
            ..Waiter::shared(mode, ERESTARTSYS)
        };
        // SAFETY: As in `wait`.
        unsafe { wait_on(self.as_raw(), waiter, timeout, condition) }
    }

    /// Whether somebody waits, or is about to after having looked at what was changed before this. Any context.
    pub fn has_sleepers(&self) -> bool {
        // SAFETY: By the type invariants the head is initialised.
        unsafe { bindings::weft_helper_wq_has_sleeper(self.as_raw()) }
    }

    /// Wakes everybody who waits. Call it after the condition was made true; any context.
    #[inline]
    pub fn wake_all(&self) {
        // SAFETY: By the type invariants the head is initialised.
        unsafe { wake(self.as_raw(), 0) }
    }

    /// Wakes everybody in [`Self::wait`] and one task in [`Self::wait_exclusive`]; any context.
    #[inline]
    pub fn wake_one(&self) {
        // SAFETY: By the type invariants the head is initialised.
        unsafe { wake(self.as_raw(), 1) }
    }
}

/// Wakes waiters of `head`, if it has any: all, or at most `exclusive` of the exclusive ones if
/// that is not 0.
///
/// # Safety
///
/// `head` must point to an initialised wait queue head that stays valid during the call.
#[inline]
pub(crate) unsafe fn wake(head: *mut bindings::wait_queue_head, exclusive: ffi::c_int) {
    // Its barrier pairs with the ones in `wait_on` and `poll_wait`: either we see the waiter, or
    // the waiter sees what the caller changed before.
    // SAFETY: The caller gives a valid head.
    if unsafe { bindings::weft_helper_wq_has_sleeper(head) } {
        let key = core::ptr::null_mut();
        // SAFETY: The caller gives a valid head; the key is optional.
        unsafe { bindings::__wake_up(head, bindings::TASK_NORMAL, exclusive, key) };
    }
}

/// How a task waits.
#[derive(Clone, Copy)]
pub(crate) struct Waiter {
    mode: Mode,
    exclusive: bool,
    on_signal: Error,
}

impl Waiter {
    /// A waiter that every wake-up reaches; `on_signal` is the error of an interrupted wait.
    #[inline]
    pub(crate) fn shared(mode: Mode, on_signal: Error) -> Self {
        Self {
            mode,
            exclusive: false,
            on_signal,
        }
    }
}

/// Sleeps on `head` until `condition` holds, `timeout` jiffies pass or a signal arrives.
///
/// # Safety
///
/// `head` must point to an initialised wait queue head that stays valid during the call.
#[inline]
pub(crate) unsafe fn wait_on(
    head: *mut bindings::wait_queue_head,
    waiter: Waiter,
    timeout: i64,
    mut condition: impl FnMut() -> bool,
) -> WaitResult {
    might_sleep();
    let timeout = timeout.max(0);
    if condition() {
        return WaitResult::Ready(timeout.max(1));
    }
    if timeout == 0 {
        return WaitResult::TimedOut;
    }
    // SAFETY: The caller's guarantee is passed on.
    unsafe { sleep_on(head, waiter, timeout, &mut condition) }
}

/// The slow half of [`wait_on`]; not generic, so that there is one copy of it.
///
/// # Safety
///
/// As for [`wait_on`].
unsafe fn sleep_on(
    head: *mut bindings::wait_queue_head,
    waiter: Waiter,
    timeout: i64,
    condition: &mut dyn FnMut() -> bool,
) -> WaitResult {
    let mut left = isize::try_from(timeout).unwrap_or(isize::MAX);
    // Stays where it is until it is off the queue again: it is only used through its address.
    let entry = Opaque::new(bindings::wait_queue_entry {
        // SAFETY: Returns the current task.
        private: unsafe { bindings::get_current() }.cast(),
        func: Some(bindings::woken_wake_function),
        ..pin_init::zeroed()
    });
    if waiter.exclusive {
        // SAFETY: The head is valid by the caller's guarantee, the entry is initialised.
        unsafe { bindings::add_wait_queue_exclusive(head, entry.get()) };
    } else {
        // SAFETY: As above.
        unsafe { bindings::add_wait_queue(head, entry.get()) };
    }
    // Pairs with the barrier in `wake`: either it sees the entry or the first look at the
    // condition below sees what was changed before `wake`.
    smp_mb(Full);
    let result = loop {
        if condition() {
            break WaitResult::Ready(left.max(1) as i64);
        }
        if waiter.mode.interrupted() {
            break WaitResult::Signal(waiter.on_signal);
        }
        if left == 0 {
            break WaitResult::TimedOut;
        }
        // SAFETY: The entry is queued with `woken_wake_function` for the current task.
        left = unsafe { bindings::wait_woken(entry.get(), waiter.mode.state(), left) };
    };
    // SAFETY: The entry is on this queue; nobody uses it once this returns.
    unsafe { bindings::remove_wait_queue(head, entry.get()) };
    // SAFETY: `remove_wait_queue` took the lock of the queue, so no waker touches the entry now.
    let flags = unsafe { (*entry.get()).flags };
    if waiter.exclusive && flags & bindings::WQ_FLAG_WOKEN != 0 {
        // A wake-up came that this task did not act on: it belongs to the next one.
        // SAFETY: The head is valid by the caller's guarantee.
        unsafe { wake(head, 1) };
    }
    result
}
