// SPDX-License-Identifier: GPL-2.0

//! Processor time.

use crate::sys;
use serde::{Deserialize, Serialize};
use std::io;
use std::ops::Sub;

/// Processor time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// Spent in the program.
    pub user_ns: u64,
    /// Spent in the kernel on its behalf.
    pub system_ns: u64,
}

impl CpuTime {
    /// What this process has used so far.
    pub fn now() -> io::Result<Self> {
        let usage = sys::rusage()?;
        Ok(Self {
            user_ns: nanoseconds(usage.ru_utime),
            system_ns: nanoseconds(usage.ru_stime),
        })
    }
}

impl Sub for CpuTime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let micros = u64::try_from(time.tv_usec).unwrap_or_default();
    seconds * 1_000_000_000 + micros * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_of_readings() {
        let later = CpuTime {
            user_ns: 5,
            system_ns: 9,
        };
        let earlier = CpuTime {
            user_ns: 2,
            system_ns: 9,
        };
        assert_eq!(
            later - earlier,
            CpuTime {
                user_ns: 3,
                system_ns: 0
            }
        );
        assert!(CpuTime::now().is_ok());
    }
}
