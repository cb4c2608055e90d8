// SPDX-License-Identifier: GPL-2.0

//! The gate without a socket.

use super::*;
use crate::sizes::Sizes;

fn tx() -> Tx {
    let recipe = Recipe {
        key: 1,
        session: 2,
        sizes: Sizes::Even { min: 5, max: 5 },
    };
    Tx::new(0, "10.0.0.2:4097".parse().unwrap(), recipe, false)
}

fn error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

const EAGAIN: i32 = 11;
const ENOMEM: i32 = 12;
const ENOBUFS: i32 = 105;

#[test]
fn a_full_queue_waits_for_room() {
    let now = Instant::now();
    let mut tx = tx();
    assert!(!tx.wants_room(now));
    tx.start(Quota::Messages(1));
    tx.refused(error(EAGAIN), now).unwrap();
    assert_eq!(tx.gate, Gate::Full);
    assert!(tx.wants_room(now) && tx.deadline().is_none());
    tx.uncongested();
    assert_eq!(tx.gate, Gate::Full);
    tx.room();
    assert_eq!(tx.gate, Gate::Open);
}

#[test]
fn congestion_waits_for_its_notice() {
    let now = Instant::now();
    let mut tx = tx();
    tx.start(Quota::Messages(1));
    tx.refused(error(ENOBUFS), now).unwrap();
    tx.room();
    assert!(!tx.wants_room(now));
    assert!(tx.concerned(1 << 1) && !tx.concerned(!(1 << 1)));
    tx.uncongested();
    tx.advance();
    assert_eq!(
        tx.retries(),
        Retries {
            enobufs: 1,
            ..Retries::default()
        }
    );
}

#[test]
fn a_lost_notice_is_survived_and_counted() {
    let now = Instant::now();
    let mut tx = tx();
    tx.start(Quota::Messages(1));
    tx.refused(error(ENOBUFS), now).unwrap();
    tx.reopen(now);
    assert!(matches!(tx.gate, Gate::Congested { .. }));
    tx.reopen(now + PATIENCE);
    assert_eq!(tx.gate, Gate::Probing);
    tx.advance();
    assert_eq!(tx.retries().lost_wakeups, 1);
}

#[test]
fn no_memory_is_tried_again() {
    let now = Instant::now();
    let mut tx = tx();
    tx.start(Quota::Messages(1));
    tx.refused(error(ENOMEM), now).unwrap();
    assert_eq!(tx.deadline(), Some(now + STARVED));
    tx.reopen(now + STARVED);
    assert_eq!(tx.gate, Gate::Open);
    assert!(tx.refused(error(1), now).is_err());
}

#[test]
fn totals() {
    let now = Instant::now();
    let mut tx = tx();
    assert_eq!(tx.total(now), None);
    tx.start(Quota::Messages(2));
    tx.advance();
    assert_eq!(tx.total(now), None);
    tx.advance();
    assert_eq!(tx.total(now), Some(2));
    tx.start(Quota::Until(now + PATIENCE));
    assert_eq!(tx.total(now), None);
    assert_eq!(tx.total(now + PATIENCE), Some(2));
}

#[test]
fn zerocopy_completions_come_once() {
    let mut tx = tx();
    assert!(tx.release(&[0]).is_err());
    tx.pinned = Some(HashMap::new());
    for _ in 0..2 {
        tx.message = vec![0];
        tx.advance();
    }
    tx.advance();
    assert_eq!(tx.pinned(), 2);
    tx.release(&[1, 0]).unwrap();
    assert_eq!(tx.pinned(), 0);
    assert!(tx.release(&[1]).is_err());
}
