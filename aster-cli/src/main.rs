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

/// Gives up when interrupted, so that what was started is closed rather than left behind.
async fn interruptible<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::select! {
        done = work => done,
        () = interrupted() => Err(Failure::new(Exit::Interrupted, "interrupted")),
    }
}

/// Waits for Ctrl-C, or for the signal with which clients and service managers end a process.
async fn interrupted() {
    #[cfg(unix)]
    if let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        return;
    }
    let _ = tokio::signal::ctrl_c().await;
}
