//! The `aster` command.

mod args;
mod commands;
mod compose;
mod exit;
mod render;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, Mcp};
use exit::{Exit, Failure};
use render::Output;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(&cli.global);
    let exit = run(&cli, output).unwrap_or_else(|failure| {
        output.failure(&failure);
        failure.exit()
    });
    exit.into()
}

fn run(cli: &Cli, output: Output) -> Result<Exit, Failure> {
    let global = &cli.global;
    match &cli.command {
        Command::Mcp(Mcp::Trust(arguments)) => commands::trust::run(global, arguments, output),
        Command::Init(arguments) => commands::init::run(global, arguments, output),
        _ => Ok(Exit::Success),
    }
}
