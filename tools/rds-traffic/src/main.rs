// SPDX-License-Identifier: GPL-2.0

//! Verified traffic over RDS sockets.
//!
//! Two processes exchange datagrams of many sizes, both ways at once, over one or more pairs of
//! sockets. Each checks that what arrives is what the other sent: in order, exactly once, unaltered
//! and from the right address. They agree about everything else over a pair of control sockets, so
//! it does not matter which one starts first.
//!
//! * [`sizes`] and [`content`] say what the messages look like.
//! * [`link`] is the conversation on the control sockets, [`channel`] its transport.
//! * [`tx`] and [`rx`] are the two directions of a stream, [`stream`] puts them on a socket.
//! * [`endpoint`] runs everything in one loop, [`report`] tells how it went.

#![forbid(unsafe_code)]

mod args;
mod channel;
mod config;
mod content;
mod endpoint;
mod link;
mod report;
mod rtt;
mod rx;
mod sizes;
mod stream;
mod tx;
mod watch;

use anyhow::{anyhow, Result};
use args::{Args, Run};
use config::Config;
use endpoint::Endpoint;
use report::Report;
use std::process::ExitCode;
use std::thread;

fn main() -> ExitCode {
    rds_cli::main(run)
}

fn run(args: Args) -> Result<ExitCode> {
    rds_sys::signal::catch_stop()?;
    let Run { configs, json } = args.resolve()?;
    let reports = run_all(&configs)?;
    match reports.as_slice() {
        [report] if json => rds_cli::print_json(report)?,
        reports if json => rds_cli::print_json(&reports)?,
        reports => reports.iter().try_for_each(Report::print)?,
    }
    let ok = reports.iter().all(Report::ok);
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(rds_cli::FAILED)
    })
}

/// Runs the endpoints side by side; normally there is only one.
///
/// All sockets are bound before the first endpoint starts, so that a busy port is a plain error.
fn run_all(configs: &[Config]) -> Result<Vec<Report>> {
    let endpoints: Vec<Endpoint> = configs
        .iter()
        .map(|config| Endpoint::new(config.clone()))
        .collect::<Result<_>>()?;
    thread::scope(|scope| {
        let threads: Vec<_> = endpoints
            .into_iter()
            .map(|endpoint| scope.spawn(|| endpoint.run()))
            .collect();
        let join = |thread: thread::ScopedJoinHandle<'_, Report>| {
            thread.join().map_err(|_| anyhow!("an endpoint broke off"))
        };
        threads.into_iter().map(join).collect()
    })
}
