// SPDX-License-Identifier: GPL-2.0

//! What users write into files: options, addresses, names, numbers, policies.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_proto::{
    errno::Failure,
    rnbd::{
        control::Unmap,
        options::MapOptions,
        path::{
            DevicePath,
            SearchPath, //
        }, //
    },
    rtrs::{
        addr::PathText,
        name::SessionName,
        policy::Policy,
        reconnect::Limit, //
    },
    text, //
};

fuzz_target!(|input: &[u8]| {
    match MapOptions::parse(input, 8) {
        Ok(options) => {
            assert!(options.nr_poll_queues <= 8 && options.paths().count() <= 6);
            assert!(SessionName::new(options.session.as_bytes()).is_ok());
            assert!(DevicePath::new(options.device.as_str().as_bytes()).is_ok());
        }
        Err(error) => {
            assert!(error.errno().number() != 0);
            assert!(error.to_string().len() < 512);
        }
    }
    if let Ok(path) = core::str::from_utf8(input).map(PathText::parse) {
        if let Ok(path) = path {
            let written = path.dst.addr.to_string();
            assert_eq!(PathText::parse(&written).unwrap().dst.addr, path.dst.addr);
        }
    }
    if let Ok(policy) = Policy::from_text(input) {
        assert_eq!(Policy::from_i32(policy.as_i32()), Some(policy));
    }
    if let Ok(limit) = Limit::from_text(input) {
        assert_eq!(
            Limit::from_text(limit.number().to_string().as_bytes()),
            Ok(limit)
        );
    }
    if let Ok(sectors) = text::parse_sectors(input) {
        assert_eq!(
            text::parse_sectors(sectors.to_string().as_bytes()),
            Ok(sectors)
        );
    }
    let _ = text::parse_one(input);
    let _ = Unmap::from_text(input);
    let _ = SearchPath::new(input);
});
