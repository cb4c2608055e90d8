// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::options::tests::options;
use std::net::IpAddr;

const QUIET: Output = Output { quiet: true };
const SECOND: Duration = Duration::from_secs(1);

/// Both ends of a control connection.
fn pair(listen: IpAddr, connect: IpAddr) -> (Control, Control) {
    let listener = TcpListener::bind((listen, 0)).unwrap();
    let peer = (connect, listener.local_addr().unwrap().port()).into();
    let active = Control::connect(None, peer, 0, QUIET).unwrap();
    let (stream, _) = listener.accept().unwrap();
    (active, Control::new(stream).unwrap())
}

fn v4_pair() -> (Control, Control) {
    let here = Ipv4Addr::LOCALHOST.into();
    pair(here, here)
}

#[test]
fn both_sides_agree_on_the_options() {
    let (mut active, mut passive) = v4_pair();
    let mut options = options();
    for tos in [0, 7] {
        options.tos = tos;
        active.send_options(&options, "2.0.7").unwrap();
        assert_eq!(passive.receive_options().unwrap(), options);
    }
    assert_eq!(active.local, passive.peer);
}

#[test]
fn ipv4_stays_ipv4_on_a_listener_for_both() {
    let Ok(listener) = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)) else {
        return;
    };
    drop(listener);
    let (active, passive) = pair(Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::LOCALHOST.into());
    assert_eq!(passive.peer, active.local);
    assert!(passive.local.is_ipv4());
}

#[test]
fn one_byte_there_and_back() {
    let (mut active, mut passive) = v4_pair();
    active.send_ready().unwrap();
    passive.await_ready().unwrap();
    passive.send_ready().unwrap();
    active.await_ready().unwrap();
}

#[test]
fn a_peer_that_is_done_is_told_from_one_that_is_gone() {
    let (mut active, passive) = v4_pair();
    let moment = Duration::from_millis(10);
    assert_eq!(passive.wait(moment).unwrap(), Heard::Nothing);
    active.send_done().unwrap();
    assert_eq!(passive.wait(SECOND).unwrap(), Heard::Done);
    assert_eq!(active.wait(moment).unwrap(), Heard::Nothing);
    drop(passive);
    assert_eq!(active.wait(SECOND).unwrap(), Heard::Gone);
}

#[test]
fn nobody_is_ready_who_is_gone() {
    let (mut active, passive) = v4_pair();
    drop(passive);
    assert!(active.await_ready().is_err());
    assert_eq!(active.wait(SECOND).unwrap(), Heard::Gone);
}

#[test]
fn nobody_listens() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let peer = listener.local_addr().unwrap();
    drop(listener);
    let error = Control::connect(None, peer, 0, QUIET).err().unwrap();
    assert_eq!(
        error.to_string(),
        format!("cannot connect to {peer}: Connection refused")
    );
}
