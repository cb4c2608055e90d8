// SPDX-License-Identifier: GPL-2.0

//! How urgent the calling thread is.

use crate::sys;
use std::io;

/// Makes the calling thread give way to others by `steps`; 19 and more are the most there is.
pub fn give_way(steps: u8) -> io::Result<()> {
    sys::nice(steps.into())
}

/// Gives the calling thread precedence over all ordinary ones (`SCHED_RR`, priority 1).
pub fn realtime() -> io::Result<()> {
    sys::set_round_robin(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anybody_may_give_way() {
        let thread = std::thread::spawn(|| give_way(5).and_then(|()| give_way(200)));
        assert!(thread.join().unwrap().is_ok());
    }
}
