// SPDX-License-Identifier: GPL-2.0

//! How a work request failed.

use crate::bindings;
use kernel::{
    fmt,
    prelude::*,
    str::CStr, //
};

/// The status of a work request that failed; `enum ib_wc_status` without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WcStatus(bindings::ib_wc_status);

impl WcStatus {
    /// The queue pair was in its error state before the work request was done.
    pub const FLUSHED: Self = Self(bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR);
    /// The device reported an error of the queue pair outside of any work request.
    pub const FATAL: Self = Self(bindings::ib_wc_status_IB_WC_FATAL_ERR);
    /// A completion that makes no sense.
    pub(crate) const GENERAL: Self = Self(bindings::ib_wc_status_IB_WC_GENERAL_ERR);

    /// The status in a completion; `None` for success.
    #[inline]
    pub(crate) fn of(wc: &bindings::ib_wc) -> Option<Self> {
        if wc.status == bindings::ib_wc_status_IB_WC_SUCCESS {
            None
        } else {
            Some(Self(wc.status))
        }
    }

    /// Whether it only says that something else went wrong before, or that the connection was closed.
    #[inline]
    pub fn is_flushed(self) -> bool {
        self == Self::FLUSHED
    }

    /// What it means.
    pub fn message(self) -> &'static CStr {
        // SAFETY: Gives a string constant for every value.
        unsafe { CStr::from_char_ptr(bindings::ib_wc_status_msg(self.0)) }
    }
}

impl fmt::Display for WcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.message(), f)
    }
}
