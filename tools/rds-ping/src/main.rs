// SPDX-License-Identifier: GPL-2.0

//! Tests whether a host answers over RDS.
//!
//! A message to port 0 is answered by the peer's kernel with an empty one. The answer carries nothing
//! that tells which message it belongs to, so each outstanding ping has a socket of its own.

#![forbid(unsafe_code)]

mod args;
mod pinger;
mod report;
mod slot;

use anyhow::Result;
use args::Args;
use pinger::Pinger;
use std::process::ExitCode;

fn main() -> ExitCode {
    rds_cli::main(run)
}

/// Success means that there was at least one answer.
fn run(args: Args) -> Result<ExitCode> {
    rds_sys::signal::catch_stop()?;
    let json = args.json;
    let report = Pinger::new(args.plan()?)?.run()?;
    if json {
        rds_cli::print_json(&report.summary())?;
    } else {
        report.print_summary()?;
    }
    let answered = report.received() > 0;
    Ok(if answered {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(rds_cli::FAILED)
    })
}
