//! The `aster` command.

mod args;
mod commands;
mod compose;
mod exit;
mod log;
mod progress;
mod render;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use args::{Cli, Command, Mcp, Policy};
use commands::{
    approve, audit, call, check, describe, init, list, policy, scan, search, serve, stats, trust,
};
use compose::{Start, with_host};
use exit::{Exit, Failure};
use render::Output;

/// How long what still runs has to end.
const LAST_MOMENT: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misuse(&error),
    };
    let log = log::start();
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
    // What still runs is dropped, and with it the servers that are left; but a thread that waits for an answer on the
    // terminal must not keep the process.
    runtime.shutdown_timeout(LAST_MOMENT);
    log.end();
    exit.into()
}

/// Help and the version, or what is wrong with the command line.
fn misuse(error: &clap::Error) -> ExitCode {
    let wrong = error.use_stderr();
    if wrong && std::env::args_os().any(|argument| argument == "--json") {
        let text = error.to_string();
        let (message, help) = match text.strip_prefix("error: ") {
            Some(text) => text.split_once("\n\n").unwrap_or((text, "")),
            // Where only a subcommand is missing, clap answers with the help itself.
            None => ("a subcommand is missing", &*text),
        };
        let message = message.trim_end();
        Output::JSON.failure(&Failure::new(Exit::Usage, message).help(help.trim()));
        return Exit::Usage.into();
    }
    // A reader that went away is no failure.
    let _ = error.print();
    if wrong { Exit::Usage.into() } else { Exit::Success.into() }
}

async fn run(cli: &Cli, output: Output) -> Result<Exit, Failure> {
    let global = &cli.global;
    match &cli.command {
        Command::Init(arguments) => init::run(global, arguments, output),
        Command::Check(arguments) => check::run(global, arguments, output).await,
        Command::Policy(Policy::Lint) => policy::check(global, output),
        Command::Policy(Policy::Test(arguments)) => {
            let input = call::read_arguments(&arguments.call)?;
            let start = Start::For(std::slice::from_ref(&arguments.call.id));
            with_host(global, start, output, async |running| policy::test(running, arguments, &input, output))
                .await
        }
        Command::Approve(arguments) => approve::run(arguments, output).await,
        Command::Audit(command) => audit::run(global, command, output).await,
        Command::Stats(arguments) => stats::run(global, arguments, output).await,
        Command::Mcp(Mcp::Trust(arguments)) => trust::run(global, arguments, output),
        Command::Mcp(Mcp::Serve(arguments)) => serve::run(global, arguments, output).await,
        Command::Mcp(Mcp::List(arguments)) => {
            with_host(global, Start::All, output, async |running| list::run(running, arguments, output)).await
        }
        Command::Mcp(Mcp::Scan) => {
            with_host(global, Start::Look, output, async |running| scan::run(running, output)).await
        }
        Command::Mcp(Mcp::Search(arguments)) => {
            with_host(global, Start::All, output, async |running| search::run(running, arguments, output))
                .await
        }
        Command::Mcp(Mcp::Describe(arguments)) => {
            let start = Start::For(&arguments.ids);
            with_host(global, start, output, async |running| describe::run(running, arguments, output)).await
        }
        Command::Mcp(Mcp::Call(arguments)) => {
            // Before anything is started, and while a signal still ends the process: they may be waited for.
            let input = call::read_arguments(arguments)?;
            let start = Start::For(std::slice::from_ref(&arguments.id));
            with_host(global, start, output, async |running| {
                call::run(running, &arguments.id, input, output).await
            })
            .await
        }
    }
}
