// SPDX-License-Identifier: GPL-2.0

//! What the RDS programs share: reading arguments, finding addresses, opening sockets, ending.

#![forbid(unsafe_code)]

mod address;
mod completion;
mod number;

pub use address::{bind_socket, open_socket, resolve, resolve_near, source_address};
pub use number::{parse_count, parse_duration, parse_size};

use anyhow::Context;
use clap::Parser;
use serde::Serialize;
use std::io::{self, Write};
use std::process::ExitCode;

/// Exit status of a program that could not do what it was asked for.
pub const FAILED: u8 = 1;
/// Exit status of a program that was called in a wrong way.
pub const USAGE: u8 = 2;

/// Reads the arguments, runs the program and turns what it returns into the exit status.
///
/// An error is printed as one line after the program's name. With `--completions SHELL` alone the program
/// prints the shell's completions and does nothing else.
pub fn main<A: Parser>(run: impl FnOnce(A) -> anyhow::Result<ExitCode>) -> ExitCode {
    let command = completion::with_option(A::command());
    let name = command.get_name().to_owned();
    let result = match completion::wanted(std::env::args_os()) {
        Some(shell) => completion::print(shell, command),
        None => {
            let args = A::from_arg_matches(&command.get_matches());
            run(args.unwrap_or_else(|error| error.exit()))
        }
    };
    match result {
        Ok(code) => code,
        Err(error) if closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}

/// Whether the reader of our output went away, as `head` does: no failure of ours.
fn closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The text of an error without its number, as `strerror(3)` gives it.
pub fn error_text(error: &io::Error) -> String {
    let text = error.to_string();
    match (error.raw_os_error(), text.rfind(" (os error ")) {
        (Some(_), Some(at)) => text[..at].to_owned(),
        _ => text,
    }
}

/// Writes `value` to standard output as one JSON document and a line end.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value).context("cannot write JSON")?;
    text.push('\n');
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_text_is_that_of_strerror() {
        assert_eq!(
            error_text(&io::Error::from_raw_os_error(22)),
            "Invalid argument"
        );
        assert_eq!(
            error_text(&io::Error::other("odd (os error 1)")),
            "odd (os error 1)"
        );
    }
}
