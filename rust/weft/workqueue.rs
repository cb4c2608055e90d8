// SPDX-License-Identifier: GPL-2.0

//! Work queues of a module and tasks that can be scheduled, rescheduled and cancelled.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)
//!
//! The kernel crate's work items cannot be cancelled and run on the system queues only. A [`Task`] is a piece of work
//! embedded in a reference-counted object. It never runs twice at a time. While it is scheduled or running it holds a
//! reference to its object, so the object may schedule it from anywhere and forget about it; [`Task::cancel_sync`]
//! takes that reference back.
//!
//! A [`Queue`] belongs to a module and is dropped with it. Its drop refuses new work and waits until every task that
//! is still scheduled or running has ended and every [`QueueHold`] is gone, so no task can run after the module's text
//! is gone. What it waits for is what the tasks do: a module cancels its tasks before it drops the queue. As with every
//! registration of the kernel crate, a queue must not be forgotten by a module that is unloaded.

use crate::{
    bindings,
    time, //
};
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc,
        Completion,
        LockClassKey, //
    },
    types::Opaque, //
};

/// Set in [`Shared::users`] once the queue is being dropped.
const CLOSED: i64 = 1 << 62;

/// How often [`Task::reschedule`] tries again; each further turn needs another racing call in between.
const RESCHEDULE_TURNS: usize = 16;

/// What a queue and its tasks share.
///
/// # Invariants
///
/// `queue` points to a work queue that is valid as long as `users` can be raised, which is as long as [`CLOSED`] is
/// not set, and as long as `users` without [`CLOSED`] is not zero.
#[pin_data]
struct Shared {
    queue: NonNull<bindings::workqueue_struct>,
    users: Atomic<i64>,
    #[pin]
    idle: Completion,
}

// SAFETY: A `workqueue_struct` may be used from any thread; the other fields are `Send`.
unsafe impl Send for Shared {}
// SAFETY: As above; all fields are used through shared references only.
unsafe impl Sync for Shared {}

impl Shared {
    /// Counts one more user of the queue; `false` if the queue is closed.
    #[inline]
    fn enter(&self) -> bool {
        // ORDERING: `Full` orders the check of CLOSED before the use of the queue, against `Queue::drop`.
        if self.users.fetch_add(1, Full) & CLOSED == 0 {
            return true;
        }
        self.leave();
        false
    }

    #[inline]
    fn leave(&self) {
        // ORDERING: `Full` orders all use of the queue before the count is seen as zero.
        if self.users.fetch_sub(1, Full) == CLOSED + 1 {
            self.idle.complete_all();
        }
    }
}

/// A work queue owned by a module.
///
/// Dropping it sleeps: it waits for every task scheduled on it.
pub struct Queue {
    shared: Arc<Shared>,
}

impl Queue {
    /// Creates an unbound queue whose workers are named after `name`. Tasks of different objects run concurrently.
    pub fn new(name: &'static CStr) -> Result<Self> {
        // SAFETY: `name` is a valid string; the helper passes it to a "%s" format.
        let queue = unsafe {
            bindings::weft_helper_alloc_workqueue(
                name.as_char_ptr(),
                bindings::wq_flags_WQ_UNBOUND | bindings::wq_flags_WQ_MEM_RECLAIM,
                0,
            )
        };
        let queue = NonNull::new(queue).ok_or(ENOMEM)?;
        // INVARIANT: The queue is destroyed only in `Queue::drop`, after `users` went to zero with CLOSED set.
        let shared = Arc::pin_init(
            pin_init!(Shared {
                queue,
                users: Atomic::new(0),
                idle <- Completion::new(),
            }),
            GFP_KERNEL,
        );
        match shared {
            Ok(shared) => Ok(Self { shared }),
            Err(error) => {
                // SAFETY: Nobody else knows this queue yet.
                unsafe { bindings::destroy_workqueue(queue.as_ptr()) };
                Err(error)
            }
        }
    }

    /// A handle with which tasks are made.
    pub fn handle(&self) -> QueueHandle {
        QueueHandle(self.shared.clone())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // ORDERING: `Full` makes CLOSED visible before the count is judged.
        if self.shared.users.fetch_add(CLOSED, Full) != 0 {
            self.shared.idle.wait_for_completion();
        }
        // SAFETY: CLOSED is set and no user is left, so by the invariant of `Shared` nobody uses the queue again.
        unsafe { bindings::destroy_workqueue(self.shared.queue.as_ptr()) };
    }
}

/// A reference to a [`Queue`] that outlives nothing: once the queue is closed, scheduling through it does nothing.
#[derive(Clone)]
pub struct QueueHandle(Arc<Shared>);

impl QueueHandle {
    /// Keeps the queue from being destroyed, for something whose end may have to run on it. Any context.
    ///
    /// `None` once the queue is closed. The drop of the queue waits for every hold.
    pub fn hold(&self) -> Option<QueueHold> {
        // INVARIANT: A user is counted.
        self.0.enter().then(|| QueueHold(self.clone()))
    }
}

/// Keeps a [`Queue`] from being destroyed.
///
/// # Invariants
///
/// One user of the queue is counted for it.
pub struct QueueHold(QueueHandle);

impl QueueHold {
    /// A handle with which more can be made, as long as the queue is not closed.
    pub fn handle(&self) -> QueueHandle {
        self.0.clone()
    }

    /// The C structure, valid as long as `self`.
    #[doc(hidden)]
    #[inline]
    pub fn as_raw(&self) -> *mut bindings::workqueue_struct {
        self.0 .0.queue.as_ptr()
    }
}

impl Clone for QueueHold {
    fn clone(&self) -> Self {
        // INVARIANT: One more user is counted. As long as this one is, the queue is not destroyed, closed or not.
        // ORDERING: None is needed to count more where there is one.
        self.0 .0.users.fetch_add(1, Relaxed);
        Self(self.0.clone())
    }
}

impl Drop for QueueHold {
    fn drop(&mut self) {
        self.0 .0.leave();
    }
}

/// An object with a [`Task`] in it.
pub trait TaskItem<const ID: u64 = 0>: HasTask<ID> + Send + Sync + Sized + 'static {
    /// Does the work, in process context. Never runs twice at a time for one object and `ID`.
    fn run(this: Arc<Self>);
}

/// Where in an object its [`Task`] is.
///
/// # Safety
///
/// The two methods must be inverse to each other and name one field. Implement it with
/// [`impl_has_task!`](crate::impl_has_task).
pub unsafe trait HasTask<const ID: u64 = 0>: Sized {
    /// The task in the object that `this` points to.
    ///
    /// # Safety
    ///
    /// `this` must point to a valid object.
    unsafe fn raw_task(this: *const Self) -> *const Task<Self, ID>;

    /// The object around a task.
    ///
    /// # Safety
    ///
    /// `task` must point to the task field of a valid object.
    unsafe fn container_of(task: *const Task<Self, ID>) -> *const Self;
}

/// Names the field of a type that is its [`Task`]:
/// `weft::impl_has_task! { impl HasTask<0> for Path { self.task } }`.
#[macro_export]
macro_rules! impl_has_task {
    (impl HasTask<$id:tt> for $self:ty { self.$field:ident }) => {
        // SAFETY: Both methods name the same field, and the first compiles only if it is a task of this type.
        unsafe impl $crate::workqueue::HasTask<$id> for $self {
            #[inline]
            unsafe fn raw_task(this: *const Self) -> *const $crate::workqueue::Task<Self, $id> {
                // SAFETY: The caller promises a valid object.
                unsafe { ::core::ptr::addr_of!((*this).$field) }
            }

            #[inline]
            unsafe fn container_of(task: *const $crate::workqueue::Task<Self, $id>) -> *const Self {
                // SAFETY: The caller promises that this is the field of a valid object.
                unsafe { ::kernel::container_of!(task, Self, $field) }
            }
        }
    };
}

/// Delayable, cancellable work of an object of type `T`.
///
/// # Invariants
///
/// `work` is initialised with [`Task::run_callback`]. Each time it is pending, one strong reference of the object
/// around it has been leaked for it, and one user of the queue is counted.
#[pin_data]
#[repr(C)]
pub struct Task<T, const ID: u64 = 0> {
    #[pin]
    work: Opaque<bindings::delayed_work>,
    queue: QueueHandle,
    _object: PhantomData<fn(T)>,
}

// SAFETY: A `delayed_work` may be used from any thread; the object itself is reached through an `Arc` only, and
// `TaskItem` demands `Send + Sync` of it.
unsafe impl<T, const ID: u64> Send for Task<T, ID> {}
// SAFETY: As above.
unsafe impl<T, const ID: u64> Sync for Task<T, ID> {}

/// Creates a [`Task`] with its own lockdep class: `new_task!(queue.handle(), "name")`.
#[macro_export]
macro_rules! new_task {
    ($queue:expr, $name:literal) => {
        $crate::workqueue::Task::new(
            $queue,
            ::kernel::c_str!($name),
            ::kernel::static_lock_class!(),
            ::kernel::static_lock_class!(),
        )
    };
}

impl<T: TaskItem<ID>, const ID: u64> Task<T, ID> {
    /// Creates a task that is not scheduled; use [`new_task!`](crate::new_task).
    pub fn new(
        queue: QueueHandle,
        name: &'static CStr,
        key: Pin<&'static LockClassKey>,
        timer_key: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        // INVARIANT: Nothing is pending yet.
        pin_init!(Self {
            work <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for writes and stays where it is; name and keys live for ever.
                unsafe {
                    bindings::weft_helper_init_delayed_work(
                        slot,
                        Some(Self::run_callback),
                        name.as_char_ptr(),
                        key.as_ptr(),
                        name.as_char_ptr(),
                        timer_key.as_ptr(),
                    )
                }
            }),
            queue,
            _object: PhantomData,
        })
    }

    fn of(object: &Arc<T>) -> &Self {
        // SAFETY: `object` is a valid object.
        unsafe { &*T::raw_task(Arc::as_ptr(object)) }
    }

    /// Schedules the task after `delay` jiffies if it is not scheduled already, in which case the earlier time stands.
    ///
    /// Any context. Does nothing once the queue is closed.
    #[inline]
    pub fn schedule(object: &Arc<T>, delay: usize) {
        let task = Self::of(object);
        if !task.queue.0.enter() {
            return;
        }
        let reference = ManuallyDrop::new(object.clone());
        // SAFETY: The queue is valid since a user is counted. The work is initialised and stays valid while it is
        // pending: the reference made above is left to it.
        let queued = unsafe {
            bindings::weft_helper_queue_delayed_work(
                task.queue.0.queue.as_ptr(),
                task.work.get(),
                delay,
            )
        };
        if !queued {
            // It was pending already and has its reference and its count.
            drop(ManuallyDrop::into_inner(reference));
            task.queue.0.leave();
            task.bring_forward(delay);
        }
    }

    /// Has a task that waits for its time wait no longer than `delay` jiffies. Any context.
    ///
    /// One that was taken off the timer, and waits only for a worker, is left alone.
    fn bring_forward(&self, delay: usize) {
        // SAFETY: The work is initialised. Its timer may be changed at the same time, which makes the value old.
        let expires = unsafe { (&raw const (*self.work.get()).timer.expires).read_volatile() };
        let sooner = time::jiffies().wrapping_add(delay);
        // The counter wraps: what seems more than half of it ahead is in the past.
        let gain = expires.wrapping_sub(sooner);
        if gain != 0 && gain <= usize::MAX / 2 {
            // SAFETY: The timer is initialised with the work. This changes it only if it is still pending, which leaves
            // the work pending, with its reference.
            unsafe { bindings::mod_timer_pending(&raw mut (*self.work.get()).timer, sooner) };
        }
    }

    /// Schedules the task after `delay` jiffies, whether it is scheduled already or not.
    ///
    /// Any context. Does nothing once the queue is closed.
    #[inline]
    pub fn reschedule(object: &Arc<T>, delay: usize) {
        let task = Self::of(object);
        if !task.queue.0.enter() {
            return;
        }
        let mut reference = ManuallyDrop::new(object.clone());
        // `mod_delayed_work` would not tell whether the work is pending afterwards if a `cancel_sync` runs at the same
        // time, so this is done in steps that do. Whoever schedules the task between two steps may want it later than
        // this call does, so the steps are repeated. During a `cancel_sync` nothing can be scheduled: that, and no
        // other case, lasts for all turns.
        for _ in 0..RESCHEDULE_TURNS {
            // SAFETY: As in `schedule`.
            let queued = unsafe {
                bindings::weft_helper_queue_delayed_work(
                    task.queue.0.queue.as_ptr(),
                    task.work.get(),
                    delay,
                )
            };
            if queued {
                return;
            }
            // SAFETY: The work is initialised.
            if unsafe { bindings::cancel_delayed_work(task.work.get()) } {
                // SAFETY: It was pending, so by the type invariants one reference was leaked for it, which is ours now.
                drop(unsafe { Arc::from_raw(Arc::as_ptr(object)) });
                task.queue.0.leave();
            }
        }
        // SAFETY: Taken once, and not used again.
        drop(unsafe { ManuallyDrop::take(&mut reference) });
        task.queue.0.leave();
    }

    /// Takes a scheduled task off the queue and waits for it if it runs now. Sleeps.
    ///
    /// Must not be called from the task itself (it would wait for itself) nor under a lock that the task takes.
    pub fn cancel_sync(object: &Arc<T>) {
        let task = Self::of(object);
        // SAFETY: The work is initialised.
        if unsafe { bindings::cancel_delayed_work_sync(task.work.get()) } {
            // SAFETY: It was pending, so by the type invariants one reference was leaked for it, which is ours now.
            drop(unsafe { Arc::from_raw(Arc::as_ptr(object)) });
            task.queue.0.leave();
        }
    }

    /// The work function of every task.
    ///
    /// # Safety
    ///
    /// To be called by a work queue, with the work of a [`Task<T, ID>`] that was pending.
    unsafe extern "C" fn run_callback(work: *mut bindings::work_struct) {
        // SAFETY: `work` is the first field of a `delayed_work`, itself the first field of a `Task`.
        let task =
            unsafe { &*kernel::container_of!(work, bindings::delayed_work, work).cast::<Self>() };
        let queue = task.queue.clone();
        // SAFETY: By the type invariants a reference of the object was leaked for this run.
        let object = unsafe { Arc::from_raw(T::container_of(task)) };
        T::run(object);
        queue.0.leave();
    }
}
