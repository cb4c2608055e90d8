// SPDX-License-Identifier: GPL-2.0

//! Measures RDS: request/response and streaming, with little in the way.
//!
//! A server process serves one client after the other; a client asks for one sample at a time on a
//! control port and then exchanges bare messages on data ports. Both are single-threaded and use
//! blocking sockets, so that one message costs one system call on each side and nothing else, but for
//! the few in which the kernel tells that it is done with messages that it did not copy.

#![forbid(unsafe_code)]

mod args;
mod client;
mod guest;
mod lane;
mod paths;
mod port;
mod protocol;
mod result;
mod ring;
mod server;
mod stamp;

use anyhow::Result;
use args::{Args, Role};
use rds_sys::signal::{self, Signal};
use std::process::ExitCode;

fn main() -> ExitCode {
    rds_cli::main(run)
}

fn run(args: Args) -> Result<ExitCode> {
    signal::catch(&[Signal::Interrupt, Signal::Terminate])?;
    match args.role()? {
        Role::Server(plan) => server::serve(&plan)?,
        Role::Client(plan) => rds_cli::print_json(&client::run(&plan)?)?,
    }
    Ok(ExitCode::SUCCESS)
}
