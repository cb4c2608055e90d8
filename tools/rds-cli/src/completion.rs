// SPDX-License-Identifier: GPL-2.0

//! Completions of the command line, which each program can print itself.

use clap::builder::EnumValueParser;
use clap::{Arg, Command, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

/// Name of the option.
const OPTION: &str = "completions";

/// The command with the option for completions, which stands alone if it is used.
pub(crate) fn with_option(command: Command) -> Command {
    let option = Arg::new(OPTION)
        .long(OPTION)
        .value_name("SHELL")
        .value_parser(EnumValueParser::<Shell>::new())
        .hide_possible_values(true)
        .exclusive(true)
        .help("Print completions for a shell, such as bash");
    command.arg(option)
}

/// The shell, if the line is nothing but the program's name and the option.
///
/// The parser does not have to see such a line, which has nothing of what a program may require.
pub(crate) fn wanted(mut line: impl Iterator<Item = OsString>) -> Option<Shell> {
    let (_, option, shell) = (line.next()?, line.next()?, line.next()?);
    let whole = line.next().is_none();
    let asked = option.to_str()?.strip_prefix("--") == Some(OPTION);
    let shell = Shell::from_str(shell.to_str()?, false).ok()?;
    (whole && asked).then_some(shell)
}

/// Prints the completions of `command`.
pub(crate) fn print(shell: Shell, mut command: Command) -> anyhow::Result<ExitCode> {
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut text);
    io::stdout().lock().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted_by(line: &str) -> Option<Shell> {
        wanted(line.split(' ').map(OsString::from))
    }

    #[test]
    fn only_alone() {
        assert_eq!(wanted_by("rds-ping --completions bash"), Some(Shell::Bash));
        assert_eq!(wanted_by("rds-ping --completions nosh"), None);
        assert_eq!(wanted_by("rds-ping --completions"), None);
        assert_eq!(wanted_by("rds-ping --completions bash ::1"), None);
        assert_eq!(wanted_by("rds-ping -c bash"), None);
    }

    #[test]
    fn with_other_arguments_it_is_refused() {
        let command = || with_option(Command::new("x").arg(Arg::new("peer")));
        let parse = |line: &str| command().try_get_matches_from(line.split(' '));
        assert!(parse("x --completions nosh").is_err());
        assert!(parse("x --completions bash ::1").is_err());
        assert!(parse("x ::1").is_ok());
    }
}
