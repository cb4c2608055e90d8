// SPDX-License-Identifier: GPL-2.0

//! Sysctl tables of a namespace.
//!
//! C header: [`include/linux/sysctl.h`](srctree/include/linux/sysctl.h)
//!
//! The values live in atomics of an object that the table holds a reference to; C's own handlers parse and print them,
//! so that what is accepted and what is refused (`EINVAL`) is what C does. An [`Entry`] says where in the object its
//! value is. What a write sets off gets the object of the table, never the namespace of the writer.

use super::ns::{
    NetBound,
    Resource,
    ScopedNet, //
};
use crate::bindings;
use core::{
    mem::size_of,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    str::CStr,
    sync::{
        atomic::Atomic,
        Arc, //
    },
};

/// The access mode of every entry: everybody reads, root of the namespace writes.
const MODE: bindings::umode_t = 0o644;

/// One limit of a value of type unsigned long.
pub enum Limit<T> {
    /// A constant.
    Value(usize),
    /// The current value of another entry.
    Cell(fn(&T) -> &Atomic<usize>),
}

enum Kind<T> {
    /// `proc_dointvec_minmax`
    Int {
        cell: fn(&T) -> &Atomic<i32>,
        min: i32,
        max: i32,
    },
    /// `proc_doulongvec_minmax` or `proc_doulongvec_ms_jiffies_minmax`
    ULong {
        cell: fn(&T) -> &Atomic<usize>,
        min: Limit<T>,
        max: Limit<T>,
        jiffies: bool,
    },
}

/// One file of a table whose values live in a `T`.
pub struct Entry<T: 'static> {
    name: &'static CStr,
    kind: Kind<T>,
    written: Option<fn(&T)>,
}

impl<T> Entry<T> {
    /// An integer from `min` to `max`.
    pub const fn int(
        name: &'static CStr,
        cell: fn(&T) -> &Atomic<i32>,
        min: i32,
        max: i32,
    ) -> Self {
        Self {
            name,
            kind: Kind::Int { cell, min, max },
            written: None,
        }
    }

    /// An unsigned long from `min` to `max`.
    pub const fn ulong(
        name: &'static CStr,
        cell: fn(&T) -> &Atomic<usize>,
        min: Limit<T>,
        max: Limit<T>,
    ) -> Self {
        Self {
            name,
            kind: Kind::ULong {
                cell,
                min,
                max,
                jiffies: false,
            },
            written: None,
        }
    }

    /// A time from `min` to `max`: milliseconds in the file, jiffies in the cell and the limits.
    pub const fn jiffies(
        name: &'static CStr,
        cell: fn(&T) -> &Atomic<usize>,
        min: Limit<T>,
        max: Limit<T>,
    ) -> Self {
        Self {
            name,
            kind: Kind::ULong {
                cell,
                min,
                max,
                jiffies: true,
            },
            written: None,
        }
    }

    /// Calls `written` in process context after each successful write.
    pub const fn on_write(self, written: fn(&T)) -> Self {
        // Not a struct update: that would have to drop the rest of `self`, which a const function cannot.
        let mut this = self;
        this.written = Some(written);
        this
    }
}

/// A registered table. Dropping it takes the files away and waits for readers and writers.
///
/// It must not be dropped by what a write to it sets off.
pub struct SysctlTable<T: Send + Sync + 'static> {
    _table: NetBound<Table<T>>,
}

impl<T: Send + Sync + 'static> SysctlTable<T> {
    /// Creates the files of `entries` in the folder `path` (such as `net/rds`) of a namespace. Sleeps.
    pub fn new(
        net: &ScopedNet<'_>,
        path: &'static CStr,
        data: Arc<T>,
        entries: &'static [Entry<T>],
    ) -> Result<Self> {
        let table = Table::register(net, path, data, entries)?;
        Ok(Self {
            _table: net.bind(table)?,
        })
    }
}

/// # Invariants
///
/// `header` is the registration of `_ctl`, each element of which points with `data` to a cell of `data` and with
/// `extra1` to an element of `_rows`. None of the three changes until the table is unregistered, which the drop of
/// `header` does first.
struct Table<T: Send + Sync + 'static> {
    header: Header,
    _ctl: KVec<bindings::ctl_table>,
    _rows: KVec<Row<T>>,
    data: Arc<T>,
}

// SAFETY: The C parts may be used from any thread, `T` is `Send + Sync`.
unsafe impl<T: Send + Sync + 'static> Send for Table<T> {}

/// What the handler needs to know of an entry.
///
/// # Invariants
///
/// `data` points to a valid object.
struct Row<T: 'static> {
    data: *const T,
    entry: &'static Entry<T>,
}

impl<T: Send + Sync + 'static> Table<T> {
    fn register(
        net: &ScopedNet<'_>,
        path: &'static CStr,
        data: Arc<T>,
        entries: &'static [Entry<T>],
    ) -> Result<Self> {
        let mut rows = KVec::with_capacity(entries.len(), GFP_KERNEL)?;
        for entry in entries {
            // INVARIANT: The table holds a reference to the object.
            rows.push(
                Row {
                    data: Arc::as_ptr(&data),
                    entry,
                },
                GFP_KERNEL,
            )?;
        }
        let mut ctl = KVec::with_capacity(entries.len(), GFP_KERNEL)?;
        for row in rows.iter() {
            ctl.push(row.ctl(&data), GFP_KERNEL)?;
        }
        // SAFETY: The namespace is valid. `path` and the names live for ever; the vectors do not change any more, stay
        // where they are when they are moved into the table, and outlive the registration.
        let header = unsafe {
            bindings::register_net_sysctl_sz(
                net.as_raw(),
                path.as_char_ptr(),
                ctl.as_ptr(),
                ctl.len(),
            )
        };
        Ok(Self {
            header: Header(NonNull::new(header).ok_or(ENOMEM)?),
            _ctl: ctl,
            _rows: rows,
            data,
        })
    }
}

impl<T: Send + Sync + 'static> Resource for Table<T> {
    type Rest = Arc<T>;

    fn close(self) -> Arc<T> {
        drop(self.header);
        self.data
    }
}

/// The registration of a table. Dropping it waits for handlers.
///
/// # Invariants
///
/// The pointer is what the registration returned.
struct Header(NonNull<bindings::ctl_table_header>);

impl Drop for Header {
    fn drop(&mut self) {
        // SAFETY: By the type invariants this is a registration; it ends here.
        unsafe { bindings::unregister_net_sysctl_table(self.0.as_ptr()) }
    }
}

impl<T: Send + Sync + 'static> Row<T> {
    /// The C description of the entry, whose cell is in `data`.
    fn ctl(&self, data: &T) -> bindings::ctl_table {
        let (cell, size): (*mut c_void, usize) = match self.entry.kind {
            Kind::Int { cell, .. } => (cell(data).as_ptr().cast(), size_of::<i32>()),
            Kind::ULong { cell, .. } => (cell(data).as_ptr().cast(), size_of::<usize>()),
        };
        bindings::ctl_table {
            procname: self.entry.name.as_char_ptr(),
            data: cell,
            // CAST: 4 or 8.
            maxlen: size as c_int,
            mode: MODE,
            proc_handler: Some(Self::handler_callback),
            extra1: ptr::from_ref(self).cast_mut().cast(),
            ..Default::default()
        }
    }

    /// Lets `handler` read or write the value described by `ctl`, between the two limits.
    ///
    /// # Safety
    ///
    /// All but the limits must be what C gave to [`Self::handler_callback`]; the limits must point to values of the
    /// type that `handler` takes.
    unsafe fn run(
        call: Call,
        handler: unsafe extern "C" fn(
            *const bindings::ctl_table,
            c_int,
            *mut c_void,
            *mut usize,
            *mut bindings::loff_t,
        ) -> c_int,
        min: *const c_void,
        max: *const c_void,
    ) -> c_int {
        // SAFETY: The caller got the description from C.
        let mut ctl = unsafe { *call.ctl };
        ctl.extra1 = min.cast_mut();
        ctl.extra2 = max.cast_mut();
        // SAFETY: The cell that `ctl` names is of the handler's type, and an atomic, so that C may write it while Rust
        // reads it. The rest is as the caller promises.
        unsafe { handler(&ctl, call.write, call.buffer, call.lenp, call.ppos) }
    }

    /// # Safety
    ///
    /// To be called by C, as the handler of an entry made by [`Self::ctl`].
    unsafe extern "C" fn handler_callback(
        ctl: *const bindings::ctl_table,
        write: c_int,
        buffer: *mut c_void,
        lenp: *mut usize,
        ppos: *mut bindings::loff_t,
    ) -> c_int {
        // SAFETY: By the invariants of `Table`, `extra1` points to a row, which is valid until C has unregistered the
        // table, which waits for handlers.
        let row = unsafe { &*(*ctl).extra1.cast::<Self>() };
        // SAFETY: By the type invariants; the table, which is still there, holds a reference to the object.
        let data = unsafe { &*row.data };
        let call = Call {
            ctl,
            write,
            buffer,
            lenp,
            ppos,
        };
        let result = match &row.entry.kind {
            // SAFETY: The limits are integers, as the handler expects, and valid during the call.
            Kind::Int { min, max, .. } => unsafe {
                Self::run(
                    call,
                    bindings::proc_dointvec_minmax,
                    ptr::from_ref(min).cast(),
                    ptr::from_ref(max).cast(),
                )
            },
            Kind::ULong {
                min, max, jiffies, ..
            } => {
                let handler = if *jiffies {
                    bindings::proc_doulongvec_ms_jiffies_minmax
                } else {
                    bindings::proc_doulongvec_minmax
                };
                // SAFETY: The limits are unsigned longs, as the handlers expect, and valid during the call.
                unsafe { Self::run(call, handler, min.as_ptr(data), max.as_ptr(data)) }
            }
        };
        if result == 0 && write != 0 {
            if let Some(written) = row.entry.written {
                written(data);
            }
        }
        result
    }
}

/// The arguments of a handler.
struct Call {
    ctl: *const bindings::ctl_table,
    write: c_int,
    buffer: *mut c_void,
    lenp: *mut usize,
    ppos: *mut bindings::loff_t,
}

impl<T> Limit<T> {
    /// Where C finds the limit.
    fn as_ptr(&self, data: &T) -> *const c_void {
        match self {
            Limit::Value(value) => ptr::from_ref(value).cast(),
            Limit::Cell(cell) => cell(data).as_ptr().cast_const().cast(),
        }
    }
}
