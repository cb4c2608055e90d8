// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::options::tests::options;

fn parse(line: &str) -> Result<Args, clap::Error> {
    Args::try_parse_from(line.split(' '))
}

fn active(line: &str) -> (Options, String) {
    match parse(line).unwrap().role().unwrap() {
        Role::Active(active) => (active.options, active.version),
        Role::Passive { .. } => panic!("{line} is passive"),
    }
}

#[test]
fn defaults_are_those_of_rds_tools() {
    let (defaults, version) = active("rds-stress -s 10.0.0.2 -r 10.0.0.1");
    assert_eq!(defaults, options());
    assert_eq!(version, "2.0.7");
}

#[test]
fn the_options_of_rds_tools() {
    let line = "rds-stress -s 10.0.0.2 -r 10.0.0.1 -p 5000 -q 4k -a 0x80 -d 8 -t 4 -T 60 -o -Q 9 \
                -I 4 -M 2 -R -v -V -z --show-params --show-perfdata --connect-retries 3 \
                --use-cong-monitor 0 --rdma-alignment 16 --rdma-use-fence 0";
    let (got, _) = active(line);
    let mut expected = options();
    (expected.port, expected.req_size, expected.ack_size) = (5000, 4096, 128);
    (expected.depth, expected.tasks, expected.run_time) = (8, 4, 60);
    (expected.one_way, expected.tos, expected.realtime) = (true, 9, true);
    (expected.verify, expected.trace, expected.summary_only) = (true, true, true);
    (expected.show_params, expected.show_perfdata) = (true, true);
    (expected.connect_retries, expected.cong_monitor) = (3, false);
    (
        expected.rdma.vector,
        expected.rdma.mode,
        expected.rdma.alignment,
    ) = (4, 2, 16);
    expected.rdma.use_fence = false;
    assert_eq!(got, expected);
}

#[test]
fn long_names_are_the_same() {
    let short = active("rds-stress -s 10.0.0.2 -a 99 -q 2k -d 2 -t 3 -T 4 -Q 5 -p 6");
    let long = active(
        "rds-stress --send-addr 10.0.0.2 --ack-bytes 99 --req-bytes 2k --depth 2 --tasks 3 --time 4 \
         --tos 5 --port 6",
    );
    assert_eq!(short, long);
}

#[test]
fn ipv6_has_longer_acks_and_newer_peers() {
    let (options, version) = active("rds-stress -s fd08::2");
    assert_eq!((options.ack_size, version.as_str()), (96, "2.3.0"));
    let (_, version) = active("rds-stress -s fd08::2 --peer-version 2.2.0");
    assert_eq!(version, "2.2.0");
}

#[test]
fn without_a_destination_it_waits() {
    let role = parse("rds-stress -r 10.0.0.2 -p 4100").unwrap().role();
    let Role::Passive { local, port } = role.unwrap() else {
        panic!("it is active");
    };
    assert_eq!(
        (local.unwrap().to_string(), port),
        ("10.0.0.2:0".into(), 4100)
    );
}

#[test]
fn bad_lines() {
    for line in [
        "rds-stress -d",
        "rds-stress -d x",
        "rds-stress -t 65536",
        "rds-stress -p -1",
        "rds-stress -Q 256",
        "rds-stress -I 513",
        "rds-stress -M 3",
        "rds-stress --use-cong-monitor 2",
        "rds-stress --no-such-option",
        "rds-stress 10.0.0.2",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn lines_that_ask_for_what_is_not_there() {
    for rest in [
        "-D 4096",
        "--async",
        "--reset",
        "-q 62",
        "-a 1",
        "-q 2m",
        "-t 0",
        "-d 0",
        "-p 65535",
        "-r fd08::1",
    ] {
        let args = parse(&format!("rds-stress -s 10.0.0.2 {rest}")).unwrap();
        let error = args.role().err().unwrap().to_string();
        assert!(!error.contains('\n'), "{rest}: {error}");
    }
}
