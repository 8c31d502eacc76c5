//! The `aster` command.

mod args;
mod commands;
mod compose;
mod exit;
mod interrupt;
mod progress;
mod render;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use args::{Cli, Command, Mcp};
use commands::{call, check, describe, init, list, search, serve, trust};
use compose::{Start, with_host};
use exit::{Exit, Failure};
use render::Output;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_env("ASTER_LOG").unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let output = Output::new(&cli.global);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            output.failure(&Failure::new(Exit::Failed, format!("no thread can be started: {error}")));
            return Exit::Failed.into();
        }
    };
    let exit = runtime.block_on(run(&cli, output)).unwrap_or_else(|failure| {
        output.failure(&failure);
        failure.exit()
    });
    // A thread that still waits for an answer on the terminal must not keep the process.
    runtime.shutdown_background();
    exit.into()
}

async fn run(cli: &Cli, output: Output) -> Result<Exit, Failure> {
    let global = &cli.global;
    match &cli.command {
        Command::Init(arguments) => init::run(global, arguments, output),
        Command::Check(arguments) => check::run(global, arguments, output).await,
        Command::Mcp(Mcp::Trust(arguments)) => trust::run(global, arguments, output),
        Command::Mcp(Mcp::Serve(arguments)) => serve::run(global, arguments, output).await,
        Command::Mcp(Mcp::List(arguments)) => {
            with_host(global, Start::All, output, async |running| Ok(list::run(running, arguments, output)))
                .await
        }
        Command::Mcp(Mcp::Search(arguments)) => {
            with_host(global, Start::All, output, async |running| Ok(search::run(running, arguments, output)))
                .await
        }
        Command::Mcp(Mcp::Describe(arguments)) => {
            let start = Start::For(&arguments.ids);
            with_host(global, start, output, async |running| describe::run(running, arguments, output)).await
        }
        Command::Mcp(Mcp::Call(arguments)) => {
            let start = Start::For(std::slice::from_ref(&arguments.id));
            with_host(global, start, output, async |running| call::run(running, arguments, output).await)
                .await
        }
    }
}
