//! The `aster` command.

mod args;
mod commands;
mod compose;
mod exit;
mod progress;
mod render;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use args::{Cli, Command, Mcp};
use commands::{call, check, describe, init, list, search, serve, trust};
use compose::Start;
use exit::{Exit, Failure};
use render::Output;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_env("ASTER_LOG").unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let output = Output::new(&cli.global);
    let exit = run(&cli, output).await.unwrap_or_else(|failure| {
        output.failure(&failure);
        failure.exit()
    });
    exit.into()
}

async fn run(cli: &Cli, output: Output) -> Result<Exit, Failure> {
    let global = &cli.global;
    let (command, start) = match &cli.command {
        Command::Init(arguments) => return init::run(global, arguments, output),
        Command::Check(arguments) => return interruptible(check::run(global, arguments, output)).await,
        Command::Mcp(Mcp::Trust(arguments)) => return trust::run(global, arguments, output),
        Command::Mcp(Mcp::Serve(arguments)) => return serve::run(global, arguments, output).await,
        Command::Mcp(command @ Mcp::Describe(arguments)) => (command, Start::For(&arguments.ids)),
        Command::Mcp(command @ Mcp::Call(arguments)) => {
            (command, Start::For(std::slice::from_ref(&arguments.id)))
        }
        Command::Mcp(command) => (command, Start::All),
    };
    let running = interruptible(compose::start(global, start, output)).await?;
    let exit = interruptible(async {
        match command {
            Mcp::List(arguments) => Ok(list::run(&running, arguments, output)),
            Mcp::Search(arguments) => Ok(search::run(&running, arguments, output)),
            Mcp::Describe(arguments) => describe::run(&running, arguments, output),
            Mcp::Call(arguments) => call::run(&running, arguments, output).await,
            Mcp::Serve(_) | Mcp::Trust(_) => Ok(Exit::Success),
        }
    })
    .await;
    running.host.close().await;
    exit
}

/// Gives up on Ctrl-C, so that what was started is closed rather than left behind.
async fn interruptible<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::select! {
        done = work => done,
        _ = tokio::signal::ctrl_c() => Err(Failure::new(Exit::Interrupted, "interrupted")),
    }
}
