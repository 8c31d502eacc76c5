//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use aster_runtime::provider::Provider;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::exit;

/// All your MCP servers behind one bridge.
#[derive(Debug, Parser)]
#[command(name = "aster", version, after_help = exit::HELP, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// The user's own configuration, in place of the one in the configuration directory.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Write JSON to standard output; failures as JSON to standard error.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Keep notes, warnings and progress to yourself.
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Do not look for a project's `aster.yaml`.
    #[arg(long, global = true)]
    pub(crate) no_project: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Tools and servers: list, search, describe, call, serve, trust, scan.
    #[command(subcommand)]
    Mcp(Mcp),
    /// Rules: what they make of a call, and what is wrong with them.
    #[command(subcommand)]
    Policy(Policy),
    /// Write a commented `aster.yaml`.
    Init(Init),
    /// Check the configuration and the native catalogue, and name every problem.
    Check(Check),
    /// Calls that wait for your approval where `aster mcp serve --approvals` runs: list, show, answer.
    Approve(Approve),
    /// The audit: tail, query, export, verify.
    #[command(subcommand)]
    Audit(Box<Audit>),
    /// What the calls, searches and refusals in the audit come to.
    Stats(Stats),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// The newest records.
    Tail(Tail),
    /// The records that fit, oldest first.
    Query(Selection),
    /// The records that fit, as they were written: JSON lines.
    Export(Selection),
    /// Whether the records are those that were written, and every dispatched call has its intent.
    Verify(Verify),
}

/// Which records.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Selection {
    /// Of tools whose id this glob matches, such as `github/*`.
    #[arg(long, value_name = "GLOB")]
    pub(crate) tool: Option<String>,
    /// Of this server's tools.
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// Of tools of this group.
    #[arg(long)]
    pub(crate) group: Option<String>,
    /// Of calls of this tier, such as `restricted`.
    #[arg(long)]
    pub(crate) tier: Option<String>,
    /// Of this stage: `intent`, `outcome`, `search` or `describe`.
    #[arg(long)]
    pub(crate) stage: Option<String>,
    /// With this outcome, such as `denied` or `failed`.
    #[arg(long)]
    pub(crate) outcome: Option<String>,
    /// Refused by this check, such as `rule` or `approval`.
    #[arg(long)]
    pub(crate) check: Option<String>,
    /// Of this agent.
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Of this team's agents.
    #[arg(long)]
    pub(crate) team: Option<String>,
    /// Of this project, by its folder as the records have it.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) project: Option<String>,
    /// Of this client.
    #[arg(long)]
    pub(crate) client: Option<String>,
    /// Of this session.
    #[arg(long)]
    pub(crate) session: Option<String>,
    /// Of this call.
    #[arg(long, value_name = "ID")]
    pub(crate) call: Option<String>,
    #[command(flatten)]
    pub(crate) period: Period,
}

/// From where, and of which time.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Period {
    /// Since this time, such as `2026-11-30T12:00:00Z`, or this long ago, such as `2h`.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Until this time.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Read this file of JSON lines, and its segments, in place of the configured audit.
    #[arg(long, value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// How many.
    #[arg(long, short = 'n', default_value_t = 20)]
    pub(crate) lines: usize,
    /// Go on showing what is written.
    #[arg(long, short)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) selection: Selection,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Check that the audit still has what this file, of an earlier `aster --json audit verify`, says of it.
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Option<PathBuf>,
    /// Read this file of JSON lines, and its segments, in place of the configured audit.
    #[arg(long, value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// In the text format that Prometheus reads.
    #[arg(long)]
    pub(crate) prometheus: bool,
    #[command(flatten)]
    pub(crate) period: Period,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// The servers, what was left out and why, and what the manifest costs.
    List(List),
    /// Tools that fit some words.
    Search(Search),
    /// The whole definition of tools.
    Describe(Describe),
    /// Call a tool.
    Call(Call),
    /// Serve all tools, behind the bridge or each by itself, over standard input and output or HTTP; with a name, one
    /// native server alone.
    Serve(Serve),
    /// Consent to the servers that the project's file declares, and to what has changed since you trusted it.
    Trust(Trust),
    /// Look through what the servers list for hidden text, orders to a model, references to other servers, and names that
    /// look alike.
    Scan,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// What the rules make of a call, which of them decides, and why. Nothing is called.
    Test(PolicyTest),
    /// Find what is wrong with the rules: mistakes, what can never match, what another rule already decides.
    Lint,
}

#[derive(Debug, Args)]
pub(crate) struct PolicyTest {
    #[command(flatten)]
    pub(crate) call: Call,
    /// The agent that would call; `client` is whoever is served, `aster` this command.
    #[arg(long, default_value = "client", value_name = "NAME")]
    pub(crate) agent: String,
    /// The team that it would belong to.
    #[arg(long, value_name = "NAME")]
    pub(crate) team: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// List the tools too, and the resources and prompts.
    #[arg(long)]
    pub(crate) tools: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// What to look for, in a few words. Without any, everything is listed, page by page.
    pub(crate) query: Vec<String>,
    /// Look on one server only.
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// How many tools to show.
    #[arg(long)]
    pub(crate) limit: Option<usize>,
    /// How many to skip.
    #[arg(long, default_value_t = 0)]
    pub(crate) offset: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Ids, `server/tool`.
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Show the arguments as this provider's models are told of them, and what that leaves out.
    #[arg(long, value_name = "NAME", default_value_t = Provider::Plain, value_parser = providers())]
    pub(crate) provider: Provider,
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The id, `server/tool`.
    pub(crate) id: String,
    /// The arguments: a JSON object, `@FILE` with one, or `-` for standard input.
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// One argument, `name=value`. A value that is JSON counts as JSON, else as text.
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pub(crate) pairs: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// A native server to serve alone, its tools under their own names.
    pub(crate) name: Option<String>,
    /// What a client sees of all the servers.
    #[arg(long, value_enum, default_value_t = Mode::Bridge, conflicts_with = "name")]
    pub(crate) mode: Mode,
    /// Whose model will call the tools: schemas are written as that provider takes them.
    #[arg(long, value_name = "NAME", default_value_t = Provider::Plain, value_parser = providers())]
    pub(crate) provider: Provider,
    /// Serve over HTTP at this address, such as `127.0.0.1:8080`, instead; port 0 is any that is free.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    /// Demand the bearer token that this environment variable has. Off loopback there must be one.
    #[arg(long, value_name = "VARIABLE", requires = "http")]
    pub(crate) token_env: Option<String>,
    /// A name that the server may be reached under, in place of loopback's and the address; can be repeated.
    #[arg(long = "allow-host", value_name = "HOST", requires = "http")]
    pub(crate) hosts: Vec<String>,
    /// A site whose pages may ask, such as `https://app.example`, in place of loopback's; can be repeated.
    #[arg(long = "allow-origin", value_name = "ORIGIN", requires = "http")]
    pub(crate) origins: Vec<String>,
    /// Let calls that need an approval wait for `aster approve`, at an address of this machine of its own.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:0")]
    pub(crate) approvals: Option<SocketAddr>,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// A call that waits, by its id; without one, all that wait are listed.
    pub(crate) id: Option<String>,
    /// Approve it, without being asked.
    #[arg(long, short, requires = "id")]
    pub(crate) yes: bool,
    /// Deny it.
    #[arg(long, requires = "id", conflicts_with = "yes")]
    pub(crate) no: bool,
    /// How far the approval goes; once, unless said.
    #[arg(long, value_enum, requires = "yes")]
    pub(crate) scope: Option<Scope>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// This call.
    Once,
    /// Calls of this tool with exactly these arguments, in this session.
    Arguments,
    /// All calls of this tool in this session.
    Session,
}

/// Reads the name of a provider.
fn providers() -> impl TypedValueParser<Value = Provider> {
    PossibleValuesParser::new(Provider::ALL.map(Provider::name))
        .map(|name| Provider::named(&name).unwrap_or_default())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// One tool, `aster_mcp`, that finds, describes and calls the others.
    Bridge,
    /// Every tool with its own definition, named `server__tool`.
    Direct,
}

#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// Servers, or tools as `server/tool`; none means all that need consent.
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// List what was consented to.
    #[arg(long, conflicts_with_all = ["remove", "yes", "names"])]
    pub(crate) list: bool,
    /// Take consent back.
    #[arg(long, requires = "names", conflicts_with = "yes")]
    pub(crate) remove: bool,
    /// Consent without being asked, for scripts.
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Write `./aster.yaml`, the project's file.
    #[arg(long, conflicts_with = "config")]
    pub(crate) project: bool,
    /// Overwrite a file that is there.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Start the servers too, and check what they list.
    #[arg(long)]
    pub(crate) start: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
