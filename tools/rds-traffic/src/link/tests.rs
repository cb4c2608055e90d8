// SPDX-License-Identifier: GPL-2.0

//! Conversations between two links, with messages lost and out of date.

use super::*;

fn link(session: u64) -> Link {
    Link::new(
        2,
        Recipe {
            key: session * 10,
            session,
            sizes: Sizes::Mixed { max: 100 },
        },
    )
}

/// Carries the news of `from` to `to`, if there is any.
fn tell(from: &mut Link, to: &mut Link) -> bool {
    let changed = from.changed();
    if changed {
        from.sent();
        to.receive(from.own().clone()).unwrap();
    }
    changed
}

/// Carries all news both ways until nobody has any.
fn talk(a: &mut Link, b: &mut Link) {
    while tell(a, b) | tell(b, a) {}
}

fn linked() -> (Link, Link) {
    let (mut a, mut b) = (link(1), link(2));
    talk(&mut a, &mut b);
    (a, b)
}

#[test]
fn comes_up_whoever_is_first() {
    let (a, b) = linked();
    assert!(a.up() && b.up());
    assert_eq!(a.peer_recipe().unwrap().key, 20);
    assert_eq!(b.peer_recipe().unwrap().session, 1);
}

#[test]
fn comes_up_when_the_first_words_are_lost() {
    let (mut a, mut b) = (link(1), link(2));
    a.sent();
    assert!(tell(&mut b, &mut a));
    assert!(!a.up() && !b.up());
    assert!(tell(&mut a, &mut b));
    assert!(!a.up() && b.up());
    assert_eq!(a.peer_recipe().unwrap().session, 2);
    talk(&mut a, &mut b);
    assert!(a.up() && b.up());
}

#[test]
fn ends_when_both_know_that_both_are_complete() {
    let (mut a, mut b) = linked();
    a.set_totals(vec![3, 4]);
    b.set_totals(vec![0, 0]);
    talk(&mut a, &mut b);
    assert_eq!(b.peer_totals(), Some(&[3, 4][..]));
    a.set_complete();
    talk(&mut a, &mut b);
    assert!(b.confirmed() && !a.confirmed());
    assert!(!a.finished() && !b.finished());
    b.set_complete();
    talk(&mut a, &mut b);
    assert!(a.finished() && b.finished());
    assert!(!a.changed() && !b.changed());
}

#[test]
fn the_one_that_ends_first_has_told_all_there_is() {
    let (mut a, mut b) = linked();
    a.set_complete();
    b.set_complete();
    tell(&mut a, &mut b);
    tell(&mut b, &mut a);
    assert!(a.finished());
    // `a` leaves now; what it has still to say is enough for `b`.
    tell(&mut a, &mut b);
    assert!(b.finished());
}

#[test]
fn words_of_an_earlier_run_do_no_harm() {
    let mut old = link(9);
    let mut a = link(1);
    old.receive(link(8).own().clone()).unwrap();
    a.receive(old.own().clone()).unwrap();
    assert!(!a.up());
    assert_eq!(a.peer_recipe().unwrap().session, 9);
    old.set_failed("broken");
    a.receive(old.own().clone()).unwrap();
    let mut b = link(2);
    talk(&mut a, &mut b);
    assert!(a.up() && b.up());
    a.receive(old.own().clone()).unwrap();
    assert_eq!(a.peer_recipe().unwrap().session, 2);
}

#[test]
fn a_new_run_is_noticed() {
    let (mut a, _) = linked();
    let error = a.receive(link(3).own().clone()).unwrap_err();
    assert!(error.to_string().contains("started again"));
}

#[test]
fn failure_is_told() {
    let (mut a, mut b) = linked();
    a.set_failed("no reason");
    assert!(a.changed());
    let error = b.receive(a.own().clone()).unwrap_err();
    assert_eq!(error.to_string(), "the other side failed: no reason");
}

#[test]
fn disagreements_are_errors() {
    let (mut a, b) = (link(1), link(2));
    for spoil in [
        |s: &mut Status| s.version = 2,
        |s: &mut Status| s.session = 1,
        |s: &mut Status| s.streams = 3,
        |s: &mut Status| s.sizes = Sizes::Even { min: 2, max: 1 },
        |s: &mut Status| s.totals = Some(vec![1]),
    ] {
        let mut status = b.own().clone();
        spoil(&mut status);
        assert!(a.receive(status).is_err());
    }
}

#[test]
fn packets_survive_the_round_trip() {
    for packet in [
        Packet::Status(link(1).own().clone()),
        Packet::Ping(3),
        Packet::Pong(u64::MAX),
    ] {
        assert_eq!(Packet::decode(&packet.encode().unwrap()).unwrap(), packet);
    }
    assert!(Packet::decode(b"hello").is_err());
}
