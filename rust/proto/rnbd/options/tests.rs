// SPDX-License-Identifier: GPL-2.0

use super::*;
use std::{
    string::{
        String,
        ToString, //
    },
    vec::Vec, //
};

/// Options that are enough.
const BASE: &str = "sessname=s device_path=/dev/ram0";

fn with(more: &str) -> String {
    std::format!("{BASE} {more}")
}

fn error(text: &str) -> (String, Errno) {
    let error = MapOptions::parse(text.as_bytes(), 4).unwrap_err();
    (error.to_string(), error.errno())
}

#[test]
fn everything_in_any_order() {
    let mut words = [
        "sessname=vec",
        "device_path=/dev/ram0",
        "path=ip:10.9.0.2@ip:10.9.0.1",
        "path=ip:10.9.1.1",
        "dest_port=5000",
        "access_mode=migration",
        "nr_poll_queues=-1",
    ];
    for _ in 0..words.len() {
        words.rotate_left(1);
        let text = std::format!("  {}\n", words.join("  "));
        let options = MapOptions::parse(text.as_bytes(), 4).unwrap();
        assert_eq!(options.session.as_str(), "vec");
        assert_eq!(options.device.as_str(), "/dev/ram0");
        assert_eq!(options.paths().count(), 2);
        assert_eq!(options.dest_port, 5000);
        assert_eq!(options.access, Access::Migration);
        assert_eq!(options.nr_poll_queues, 4);
    }
}

#[test]
fn defaults() {
    let options = MapOptions::parse(BASE.as_bytes(), 4).unwrap();
    assert_eq!(options.paths().count(), 0);
    assert_eq!(
        (options.dest_port, options.access, options.nr_poll_queues),
        (1234, Access::ReadWrite, 0)
    );
}

#[test]
fn nothing() {
    for text in ["", " ", "  \n", "\n"] {
        assert_eq!(error(text).0, "option 'sessname' is missing");
    }
    assert_eq!(error("sessname=s").0, "option 'device_path' is missing");
    assert_eq!(
        error("device_path=d"),
        ("option 'sessname' is missing".to_string(), Errno::EINVAL)
    );
}

#[test]
fn bad_values() {
    // Each with the key that the message names.
    for (word, key) in [
        ("nr_poll_queues=abc", "nr_poll_queues"),
        ("nr_poll_queues=-2", "nr_poll_queues"),
        ("nr_poll_queues=5", "nr_poll_queues"),
        ("nr_poll_queues=99999", "nr_poll_queues"),
        ("nr_poll_queues=", "nr_poll_queues"),
        ("dest_port=-1", "dest_port"),
        ("dest_port=65536", "dest_port"),
        ("dest_port=0x10", "dest_port"),
        ("dest_port=", "dest_port"),
        ("access_mode=RW", "access_mode"),
        ("access_mode=", "access_mode"),
        ("path=ip:", "path"),
        ("path=ip:1.2.3.4,", "path"),
        ("sessname=", "sessname"),
        ("device_path=", "device_path"),
        ("sessname=t", "sessname"),
        ("device_path=/dev/ram0", "device_path"),
        ("Sessname=s", "Sessname"),
        ("sessname", "sessname"),
        ("=", "="),
        ("mp_policy=rr", "mp_policy"),
        ("device_path=..", "device_path"),
        ("sessname=a.b", "sessname"),
    ] {
        let (text, errno) = error(&with(word));
        assert!(text.contains(key), "{word}: {text}");
        let kind = if word.ends_with(',') {
            Errno::EPROTONOSUPPORT
        } else {
            Errno::EINVAL
        };
        assert_eq!(errno, kind, "{word}");
    }
    for key in ["path=", "path=10.0.0.1", "path=ip:1.2.3.4@"] {
        assert_eq!(error(&with(key)).1, Errno::EPROTONOSUPPORT, "{key}");
    }
}

#[test]
fn numbers_of_paths() {
    let paths = |n: usize| with(&["path=ip:1.2.3.4"].repeat(n).join(" "));
    let six = paths(6);
    assert_eq!(
        MapOptions::parse(six.as_bytes(), 4)
            .unwrap()
            .paths()
            .count(),
        6
    );
    assert_eq!(error(&paths(7)).1, Errno::ENOMEM);
}

#[test]
fn twice() {
    for word in ["dest_port=1", "access_mode=ro", "nr_poll_queues=1"] {
        let (text, errno) = error(&with(&[word, word].join(" ")));
        assert!(text.ends_with("stands there twice"), "{text}");
        assert_eq!(errno, Errno::EINVAL);
    }
}

#[test]
fn lengths() {
    let names = |session, device| {
        std::format!(
            "sessname={} device_path={}",
            "s".repeat(session),
            "d".repeat(device)
        )
    };
    assert!(MapOptions::parse(names(200, 54).as_bytes(), 4).is_ok());
    assert_eq!(error(&names(240, 240)).1, Errno::ENAMETOOLONG);
    assert_eq!(error(&names(254, 1)).1, Errno::ENAMETOOLONG);
    for (session, device) in [(255, 1), (256, 1), (1, 255), (1, 256)] {
        assert_eq!(error(&names(session, device)).1, Errno::EINVAL);
    }
    let word = with(&"x".repeat(4000));
    assert!(error(&word).0.len() < 200);
}

#[test]
fn characters() {
    for bytes in [
        &b"sessname=s\0 device_path=d"[..],
        b"sessname=s\tdevice_path=d",
        b"sessname=\xff device_path=d",
    ] {
        let parsed: Vec<_> = MapOptions::parse(bytes, 4).err().into_iter().collect();
        assert_eq!(parsed, [OptionsError::Character]);
    }
}

#[test]
fn usage_is_that_of_c() {
    let lines: Vec<&str> = USAGE.lines().collect();
    let [usage, "", "addr ::= [ ip:<ipv4> | ip:<ipv6> | gid:<gid> ]"] = lines[..] else {
        panic!("{lines:?}");
    };
    let expected = "Usage: echo \"[dest_port=server port number] sessname=<name of the rtrs session> \
                    path=<[srcaddr@]dstaddr> [path=<[srcaddr@]dstaddr>] device_path=<full path on remote side> \
                    [access_mode=<ro|rw|migration>] [nr_poll_queues=<number of queues>]\" > map_device";
    assert_eq!(usage, expected);
}
