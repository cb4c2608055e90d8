// SPDX-License-Identifier: GPL-2.0

//! Sends messages between two groups of tasks over RDS sockets, as the program of the same name of
//! rds-tools does, and works together with it.
//!
//! One side is started first and waits; the other one connects to it by TCP and tells it the options.
//! Then both have as many tasks, each with a socket, and each task exchanges requests and acks with
//! every task of the other side.
//!
//! * [`options`] is what both sides agree on, [`wire`] how it goes over the [`control`] connection.
//! * [`header`] says what messages look like, [`flow`] which one comes next between two tasks.
//! * [`task`] has a socket and a thread, [`crew`] all tasks of a side.
//! * [`session`] is a run; [`stats`], [`soak`] and [`perf`] are measured, [`report`] prints it.

#![forbid(unsafe_code)]

mod args;
mod control;
mod crew;
mod flow;
mod header;
mod options;
mod perf;
mod report;
mod session;
mod soak;
mod stats;
mod task;
mod wire;

use anyhow::Result;
use args::{Active, Args, Local, Role};
use control::Control;
use crew::Crew;
use options::Options;
use rds_sys::signal;
use report::Output;
use session::Session;
use soak::Soakers;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use task::{Plan, Task};

/// What is said when both sides know the options.
const NEGOTIATED: &str = "negotiated options, tasks will start in 2 seconds\n";

fn main() -> ExitCode {
    rds_cli::main(run)
}

fn run(args: Args) -> Result<ExitCode> {
    let local = args.local();
    let output = Output { quiet: local.json };
    let role = args.role()?;
    let soakers = local.report_cpu.then(Soakers::start).transpose()?;
    if let Some(soakers) = &soakers {
        let count = soakers.len();
        output.text(&format!("started {count} cycle soaking threads\n"))?;
    }
    let side = match role {
        Role::Active(active) => begin_active(active, local, output)?,
        Role::Passive { local: own, port } => {
            begin_passive(Control::accept(own, port, output)?, local)?
        }
    };
    // From here on the user gets a summary, however early the run is ended.
    signal::catch_stop()?;
    output.text(NEGOTIATED)?;
    let session = Session {
        role: side.role,
        options: side.options,
        control: side.control,
        soakers,
        output,
        histogram: local.histogram,
    };
    session.run(side.tasks)?;
    Ok(ExitCode::SUCCESS)
}

/// What a side has when both are ready.
struct Side {
    role: report::Role,
    control: Control,
    options: Options,
    tasks: Vec<Task>,
}

/// Connects, tells the other side the options and waits until it is ready.
fn begin_active(active: Active, local: Local, output: Output) -> Result<Side> {
    let mut options = active.options;
    if options.show_params {
        output.text(&report::params(&options))?;
    }
    let retries = options.connect_retries;
    let mut control = Control::connect(active.local, active.peer, retries, output)?;
    options.receive_addr = control.local.ip();
    control.send_options(&options, &active.version)?;
    let tasks = open(&control, &options, true, local)?;
    control.send_ready()?;
    control.await_ready()?;
    Ok(Side {
        role: report::Role::Active,
        control,
        options,
        tasks,
    })
}

/// Does what the other side says.
fn begin_passive(mut control: Control, local: Local) -> Result<Side> {
    let options = control.receive_options()?.swapped(control.local.ip());
    options.check()?;
    let tasks = open(&control, &options, !options.one_way, local)?;
    control.await_ready()?;
    control.send_ready()?;
    Ok(Side {
        role: report::Role::Passive,
        control,
        options,
        tasks,
    })
}

/// Binds all sockets; `requests` says whether the tasks send requests.
fn open(control: &Control, options: &Options, requests: bool, local: Local) -> Result<Vec<Task>> {
    let plan = Plan {
        options: options.clone(),
        local: control.local,
        remote: remote(control.peer, options),
        requests,
        outlier_usec: local.outlier_usec,
    };
    Crew::open(&Arc::new(plan))
}

/// Where messages go: to the address that was agreed on, on the interface of the control connection.
fn remote(mut peer: SocketAddr, options: &Options) -> SocketAddr {
    peer.set_ip(options.send_addr);
    peer
}
