// SPDX-License-Identifier: GPL-2.0

//! Socket addresses: the calls agree on which are good, and those survive being written and read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_proto::rds::addr::{
    check_bind,
    check_connect,
    check_send, //
};

fuzz_target!(|name: &[u8]| {
    let bind = check_bind(name).ok();
    assert_eq!(bind, check_connect(name).ok());
    assert_eq!(bind, check_send(name).ok());

    let Some(endpoint) = bind else { return };
    assert!(!endpoint.addr.is_any() && !endpoint.addr.is_multicast());
    assert!(endpoint.addr.is_link_local() == (endpoint.scope_id != 0));
    let _ = endpoint.addr.to_string();

    let mut out = [0xff; 128];
    let len = endpoint.to_sockaddr(&mut out);
    assert_eq!(check_bind(&out[..len]).ok(), bind);
});
