// SPDX-License-Identifier: GPL-2.0

//! Shows what the RDS kernel modules know: counters, sockets, connections and queues.

#![forbid(unsafe_code)]

mod args;
mod column;
mod print;
mod section;

use anyhow::Result;
use args::Args;
use rds_sys::info::Family;
use section::{Content, Section};
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    rds_cli::main(run)
}

/// Prints the sections one after the other. One that the kernel does not have is reported and left
/// out, which is no failure: which ones there are depends on the transports that are loaded.
fn run(args: Args) -> Result<ExitCode> {
    let socket = rds_cli::open_socket()?;
    let family = if args.all { Family::V6 } else { Family::V4 };
    let mut document = Map::new();
    for section in args.sections() {
        let content = Content::read(&socket, section, family);
        if let Err(error) = &content {
            complain(section, error);
        }
        match (content, args.json) {
            (Ok(content), true) => {
                document.insert(section.key().to_owned(), content.json()?);
            }
            (Err(_), true) => {
                document.insert(section.key().to_owned(), Value::Null);
            }
            (Ok(content), false) => {
                let text = print::text(section, &content, args.verbose > 0);
                io::stdout().lock().write_all(text.as_bytes())?;
            }
            (Err(_), false) => {}
        }
    }
    if args.json {
        rds_cli::print_json(&document)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn complain(section: Section, error: &io::Error) {
    eprintln!(
        "rds-info: Unable to get statistics to process the \"{}\" info request: {}",
        section.description(),
        rds_cli::error_text(error)
    );
}
