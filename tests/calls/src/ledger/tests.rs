// SPDX-License-Identifier: GPL-2.0

use super::*;
use std::net::Ipv6Addr;

const HERE: u64 = 1;
const THREAD: u32 = 3;

fn name(port: u16) -> Name {
    let ip = Ipv6Addr::new(0xfd08, 0, 0, 0, 0, 0, 0, 1);
    Name { ip, port, scope: 0 }
}

/// A ledger with a sender and a receiver.
fn ledger() -> (Ledger, u32, Receiver) {
    let mut ledger = Ledger::default();
    let sender = ledger.open(HERE);
    let id = ledger.open(HERE);
    let by = Receiver {
        id,
        name: Some(name(2)),
        namespace: HERE,
    };
    (ledger, sender, by)
}

fn message(sender: u32, number: u32) -> Header {
    Header {
        sender,
        thread: THREAD,
        number,
        len: 64,
        start: 0,
        to: Some(name(2)),
    }
}

#[test]
fn in_order_is_fine_with_gaps() {
    let (mut ledger, sender, by) = ledger();
    for _ in 0..200 {
        ledger.send(sender, THREAD);
    }
    for number in [0, 1, 5, 64, 199] {
        let begin = ledger.now();
        assert_eq!(ledger.receive(&message(sender, number), by, begin), Ok(()));
    }
}

#[test]
fn nobody_sent_it() {
    let (mut ledger, sender, by) = ledger();
    assert!(ledger.receive(&message(sender, 0), by, 0).is_err());
    ledger.send(sender, THREAD);
    assert!(ledger.receive(&message(sender, 1), by, 0).is_err());
    assert!(ledger.receive(&message(99, 0), by, 0).is_err());
    assert!(ledger.receive(&message(sender, 0), by, 0).is_ok());
}

#[test]
fn twice_to_one_is_wrong_but_not_to_two() {
    let (mut ledger, sender, by) = ledger();
    ledger.send(sender, THREAD);
    let second = Receiver {
        id: ledger.open(HERE),
        ..by
    };
    assert!(ledger.receive(&message(sender, 0), by, 0).is_ok());
    assert!(ledger.receive(&message(sender, 0), second, 0).is_ok());
    assert!(ledger.receive(&message(sender, 0), by, 0).is_err());
}

#[test]
fn out_of_order_is_wrong_unless_the_calls_overlapped() {
    let (mut ledger, sender, by) = ledger();
    for _ in 0..3 {
        ledger.send(sender, THREAD);
    }
    let early = ledger.now();
    assert!(ledger.receive(&message(sender, 2), by, early).is_ok());
    assert!(ledger.receive(&message(sender, 1), by, early).is_ok());
    let late = ledger.now();
    assert!(ledger.receive(&message(sender, 0), by, late).is_err());
}

#[test]
fn what_was_refused_does_not_come() {
    let (mut ledger, sender, by) = ledger();
    ledger.send(sender, THREAD);
    ledger.send(sender, THREAD);
    assert!(ledger.refuse(sender, THREAD, 0).is_ok());
    assert!(ledger.receive(&message(sender, 0), by, 0).is_err());
    assert!(ledger.receive(&message(sender, 1), by, 0).is_ok());
    assert!(ledger.refuse(sender, THREAD, 1).is_err());
}

#[test]
fn addresses_fit() {
    let (mut ledger, sender, by) = ledger();
    ledger.send(sender, THREAD);
    ledger.bound(sender, name(1));
    let sent = message(sender, 0);
    assert!(ledger.addresses(&sent, by, Some(name(1))).is_ok());
    assert!(ledger.addresses(&sent, by, Some(name(7))).is_err());
    let elsewhere = Receiver {
        name: Some(name(7)),
        ..by
    };
    assert!(ledger.addresses(&sent, elsewhere, None).is_err());
}

#[test]
fn loopback_stays_in_its_namespace() {
    let (mut ledger, sender, by) = ledger();
    ledger.send(sender, THREAD);
    let mut sent = message(sender, 0);
    sent.to = Some(Name {
        ip: Ipv6Addr::LOCALHOST,
        ..name(2)
    });
    let elsewhere = Receiver {
        namespace: HERE + 1,
        ..by
    };
    assert!(ledger.receive(&sent, elsewhere, 0).is_err());
    assert!(ledger.receive(&sent, by, 0).is_ok());
}

#[test]
fn memory_comes_back_once() {
    let (mut ledger, sender, _) = ledger();
    ledger.lend(sender, 5, 640);
    ledger.lend(sender, 6, 704);
    assert_eq!(ledger.give_back(sender, 5), Ok(640));
    assert!(ledger.give_back(sender, 5).is_err());
    assert_eq!(ledger.close(sender), [704]);
}

#[test]
fn senders_of_long_ago_are_forgotten() {
    let (mut ledger, sender, by) = ledger();
    for _ in 0..SENDERS {
        ledger.open(HERE);
    }
    assert!(ledger.receive(&message(sender, 7), by, 0).is_ok());
}
