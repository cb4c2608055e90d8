// SPDX-License-Identifier: GPL-2.0

//! Signals as flags: a caught signal interrupts the running system call and is seen afterwards.

use crate::sys;
use std::ffi::c_int;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// One bit for each [`Signal`] that arrived.
static ARRIVED: AtomicU32 = AtomicU32::new(0);

/// The signals a program can catch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The user pressed the interrupt key.
    Interrupt,
    /// Somebody asked the program to end.
    Terminate,
    /// The time given to [`watchdog`] is over.
    Alarm,
}

impl Signal {
    fn number(self) -> c_int {
        match self {
            Self::Interrupt => libc::SIGINT,
            Self::Terminate => libc::SIGTERM,
            Self::Alarm => libc::SIGALRM,
        }
    }

    fn bit(number: c_int) -> u32 {
        1 << (number & 31)
    }

    /// Whether the signal has arrived.
    pub fn arrived(self) -> bool {
        // ORDERING: The flag stands alone; nothing else is published through it.
        ARRIVED.load(Ordering::Relaxed) & Self::bit(self.number()) != 0
    }
}

extern "C" fn note(number: c_int) {
    // ORDERING: As in `Signal::arrived`.
    ARRIVED.fetch_or(Signal::bit(number), Ordering::Relaxed);
}

/// From now on `signals` set their flag instead of ending the process.
pub fn catch(signals: &[Signal]) -> io::Result<()> {
    signals
        .iter()
        .try_for_each(|signal| sys::sigaction(signal.number(), note))
}

/// Catches interrupt and termination; [`stop_requested`] tells whether one arrived.
pub fn catch_stop() -> io::Result<()> {
    catch(&[Signal::Interrupt, Signal::Terminate])
}

/// Whether the user or somebody else asked the program to end.
pub fn stop_requested() -> bool {
    Signal::Interrupt.arrived() || Signal::Terminate.arrived()
}

/// Catches [`Signal::Alarm`] and raises it after `limit`.
///
/// It is raised again every second, so that a system call that begins right after the flag was looked
/// at is interrupted too.
pub fn watchdog(limit: Duration) -> io::Result<()> {
    catch(&[Signal::Alarm])?;
    sys::set_alarm(limit, Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchdog_sets_the_flag() {
        assert!(!Signal::Alarm.arrived());
        watchdog(Duration::from_millis(1)).unwrap();
        let mut rounds = 0;
        while !Signal::Alarm.arrived() && rounds < 1000 {
            std::thread::sleep(Duration::from_millis(10));
            rounds += 1;
        }
        assert!(Signal::Alarm.arrived());
        assert!(!Signal::Interrupt.arrived());
        sys::set_alarm(Duration::ZERO, Duration::ZERO).unwrap();
    }
}
