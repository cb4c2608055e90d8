// SPDX-License-Identifier: GPL-2.0

//! What a memory region takes, and who may do what with it.

use crate::bindings;
use kernel::ffi;

/// What memory a region takes; `enum ib_mr_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Segments that fill pages, but for the beginning of the first and the end of the last.
    Pages,
    /// Any segments. Needs [`Limits::sg_gaps`](crate::device::Limits::sg_gaps).
    Gaps,
}

/// Who may do what with registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The peer may write it.
    RemoteWrite,
    /// The peer may read it.
    RemoteRead,
    /// Work requests of the queue pair may read it, through [`Registered::sge`](super::Registered::sge).
    Local,
}

impl Kind {
    /// For C.
    pub(super) fn as_raw(self) -> bindings::ib_mr_type {
        match self {
            Self::Pages => bindings::ib_mr_type_IB_MR_TYPE_MEM_REG,
            Self::Gaps => bindings::ib_mr_type_IB_MR_TYPE_SG_GAPS,
        }
    }
}

impl Access {
    /// For C.
    #[inline]
    pub(super) fn flags(self) -> ffi::c_int {
        let flags = match self {
            Self::RemoteWrite => {
                bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE
                    | bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE
            }
            Self::RemoteRead => bindings::ib_access_flags_IB_ACCESS_REMOTE_READ,
            Self::Local => 0,
        };
        // CAST: Small bits.
        flags as ffi::c_int
    }
}
