//! A whole binary from a catalogue: what [`serve_main!`](crate::serve_main) expands to.
//!
//! Meant for a server of one's own, without a configuration: everything a client or a person needs of it, and nothing
//! of what the `aster` command adds.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Interrupt, Parent, Shape, stdio};
use crate::call::{Check, Outcome};
use crate::catalogue::{Catalogue, Health, NativeCatalogue};
use crate::gate::approval::Terminal;
use crate::host::{CallOptions, Host, HostBuilder, HostError, HostSession};
use crate::lint;
use crate::provider::Provider;
use crate::session::Profile;
use crate::text;

/// Makes `main` of a binary that offers a catalogue: `list`, `search`, `describe`, `call`, `serve` and `check`.
///
/// `serve` speaks MCP on standard input and output and offers `aster_mcp`, or with `--mode direct` every tool as
/// `server__tool`; `serve NAME` offers one server's tools under their own names. With the feature `serve-http`,
/// `--http ADDRESS` serves over HTTP instead. The first signal ends serving in order: calls that run over HTTP may finish.
/// A Restricted call asks on the terminal; where there is none it is denied. Exit codes: 0 it worked, 1 the tool reported
/// an error, 2 the command line or an id is wrong, 3 the catalogue or the binary has a problem, 4 the call was denied, 5 it could not be
/// finished.
///
/// ```no_run
/// use aster_runtime::{NativeCatalogue, catalogue, mcp_tool};
///
/// /// Adds two whole numbers.
/// #[mcp_tool(tier = Standard)]
/// fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// const CATALOGUE: NativeCatalogue = catalogue![add::TOOL];
///
/// aster_runtime::serve_main!(CATALOGUE);
/// ```
#[macro_export]
macro_rules! serve_main {
    ($catalogue:expr) => {
        fn main() -> ::std::process::ExitCode {
            let built = $crate::serve::binary::Built {
                package: ::core::env!("CARGO_PKG_NAME"),
                folder: if ::core::cfg!(debug_assertions) {
                    ::core::option::Option::Some(::core::env!("CARGO_MANIFEST_DIR"))
                } else {
                    ::core::option::Option::None
                },
            };
            $crate::serve::binary::main($catalogue, built)
        }
    };
}

const USAGE: &str = "\
  list                     the tools, resources and prompts, a line each
  search QUERY             the tools that match
  describe ID              a tool's description and schema
  call ID [JSON]           calls a tool with an object of arguments
  serve                    speaks MCP on standard input and output, and offers `aster_mcp`
  serve --mode direct      the same, and offers every tool, named `server__tool`
    --provider NAME        with schemas as this provider takes them: openai, openai-strict, anthropic, gemini
  serve SERVER             the same, and offers the tools of one server under their own names
    --http ADDRESS         or over HTTP, at this address
    --token-env VARIABLE   to whoever has the token in this variable
    --allow-host NAMES     under these names, with commas between them, in place of loopback's
  check                    checks the catalogue, what is linked, and starts its servers
";

/// What the binary was built from.
#[derive(Debug, Clone, Copy)]
pub struct Built {
    /// The package, which is the program's name.
    pub package: &'static str,
    /// The folder of its `Cargo.toml`, of a debug build: a release does not say where it was built.
    pub folder: Option<&'static str>,
}

/// Runs the command that the process was started with.
#[must_use]
pub fn main(catalogue: NativeCatalogue, built: Built) -> ExitCode {
    let parent = Parent::current();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(5, &format!("the runtime cannot be started: {error}")),
    };
    let code = runtime.block_on(run(catalogue, built, &arguments, parent));
    // A thread that still waits for input must not hold the process.
    runtime.shutdown_background();
    code
}

async fn run(catalogue: NativeCatalogue, built: Built, arguments: &[String], parent: Parent) -> ExitCode {
    let program = built.package;
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if matches!(words.as_slice(), ["help" | "-h" | "--help"]) {
        return show(&format!("{program}: tools for agents\n\n{USAGE}"));
    }
    // `check` tells of it as of all else. What is listed works without the rest, so nobody is kept from it.
    if !matches!(words.as_slice(), ["check"]) {
        for finding in lint::unlisted(&catalogue) {
            let _ =
                writeln!(io::stderr().lock(), "warning: {}", text::block(&finding.to_string(), usize::MAX));
        }
    }
    let mut builder = Host::builder().catalogue(catalogue);
    match provider(&words) {
        Ok(provider) => builder = builder.provider(provider),
        Err(message) => return fail(2, &message),
    }
    if !matches!(words.as_slice(), ["serve", ..])
        && let Some(terminal) = Terminal::new()
    {
        builder = builder.approver(Arc::new(terminal));
    }
    if let ["check"] = words.as_slice() {
        return match check(&catalogue, built.folder.map(Path::new), builder).await {
            Ok(told) => show(&told),
            Err(wrong) => fail(3, &wrong),
        };
    }
    let host = match builder.build().await {
        Ok(host) => host,
        Err(error) => return fail(3, &error.to_string()),
    };
    let profile = Profile::new(program);
    if let ["serve", rest @ ..] = words.as_slice() {
        let Interrupt { stop, now } = Interrupt::listen();
        return match now.run_until_cancelled(serve(host, profile, rest, parent, stop)).await {
            Some(Ok(())) => ExitCode::SUCCESS,
            Some(Err(message)) => fail(2, &message),
            None => fail(5, "interrupted"),
        };
    }
    let session = match host.session(profile) {
        Ok(session) => session,
        Err(error) => return fail(3, &error.to_string()),
    };
    match words.as_slice() {
        ["list"] => show(&list(&host.catalogue())),
        ["search", query @ ..] => {
            answer(&session, json!({"action": "search", "query": query.join(" ")})).await
        }
        ["describe", id] => answer(&session, json!({"action": "describe", "name": id})).await,
        ["call", id] => call(&session, id, "{}").await,
        ["call", id, arguments] => call(&session, id, arguments).await,
        [] => fail(2, &format!("say what to do:\n{USAGE}")),
        other => fail(2, &format!("`{}` is no command:\n{USAGE}", text::one_line(&other.join(" "), 100))),
    }
}

/// Whose model is served: the host has to know before it is built.
fn provider(words: &[&str]) -> Result<Provider, String> {
    let mut words = words.iter();
    let Some(word) = words.find(|word| **word == "--provider" || word.starts_with("--provider=")) else {
        return Ok(Provider::Plain);
    };
    let name = word.split_once('=').map(|(_, name)| name).or_else(|| words.next().copied());
    name.and_then(Provider::named).ok_or_else(|| {
        format!("`--provider` needs one of {}", Provider::ALL.map(|known| format!("`{known}`")).join(", "))
    })
}

async fn serve(
    host: Host,
    profile: Profile,
    words: &[&str],
    parent: Parent,
    stop: CancellationToken,
) -> Result<(), String> {
    let (mut server, mut mode, mut provider) = (None, None, None);
    let (mut address, mut variable, mut hosts) = (None, None, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').map_or((*word, None), |(name, value)| (name, Some(value)));
        let (place, value) = match name {
            "--mode" => (&mut mode, value.or_else(|| words.next().copied())),
            "--provider" => (&mut provider, value.or_else(|| words.next().copied())),
            "--http" => (&mut address, value.or_else(|| words.next().copied())),
            "--token-env" => (&mut variable, value.or_else(|| words.next().copied())),
            "--allow-host" => (&mut hosts, value.or_else(|| words.next().copied())),
            _ if word.starts_with('-') => return Err(format!("`{name}` is no option of serve")),
            _ => (&mut server, Some(*word)),
        };
        let value = value.ok_or_else(|| format!("`{name}` needs a value"))?;
        if place.replace(value).is_some() {
            return Err("serve takes one server, and each option once".to_owned());
        }
    }
    let shape = match (server, mode) {
        (None, None | Some("bridge")) => Shape::Bridge,
        (None, Some("direct")) => Shape::Direct,
        (Some(server), None) => Shape::Server(server.to_owned()),
        (None, Some(_)) => return Err("the modes are `bridge` and `direct`".to_owned()),
        (Some(_), Some(_)) => return Err("serve takes a server or a mode, not both".to_owned()),
    };
    if let Some(address) = address {
        return over_http(host, profile, shape, Edge { address, variable, hosts }, stop).await;
    }
    if variable.is_some() || hosts.is_some() {
        return Err("`--token-env` and `--allow-host` go with `--http`".to_owned());
    }
    // A client's process ends with the client; what listens for many outlives who started it.
    parent.cancel_at_death(stop.clone());
    stdio(host, profile, shape, stop).await.map_err(|error| error.to_string())
}

/// Where to serve over HTTP, to whom, and under which names.
#[cfg_attr(not(feature = "serve-http"), expect(dead_code, reason = "it is not served over HTTP"))]
struct Edge<'a> {
    address: &'a str,
    variable: Option<&'a str>,
    hosts: Option<&'a str>,
}

#[cfg(feature = "serve-http")]
async fn over_http(
    host: Host,
    profile: Profile,
    shape: Shape,
    edge: Edge<'_>,
    stop: CancellationToken,
) -> Result<(), String> {
    let address =
        edge.address.parse().map_err(|_| "an address is one like 127.0.0.1:8080 or [::1]:8080".to_owned())?;
    let mut options = super::http::Options::default();
    if let Some(variable) = edge.variable {
        let token = std::env::var(variable).map_err(|_| format!("`{variable}` is not set"))?;
        options = options.token("token", token);
    }
    if let Some(hosts) = edge.hosts {
        options = options.allowed_hosts(hosts.split(','));
    }
    let bound = super::http::bind(host, profile, shape, options, address).await;
    let listener = bound.map_err(|error| error.to_string())?;
    let _ = writeln!(io::stderr().lock(), "listening on {}", listener.url());
    if listener.is_nameless() {
        let _ = writeln!(io::stderr().lock(), "note: {}", super::http::NAMELESS);
    }
    listener.serve(stop).await;
    Ok(())
}

#[cfg(not(feature = "serve-http"))]
async fn over_http(_: Host, _: Profile, _: Shape, _: Edge<'_>, _: CancellationToken) -> Result<(), String> {
    Err("this binary serves standard input and output alone: build it with the feature `serve-http`"
        .to_owned())
}

fn list(catalogue: &Catalogue) -> String {
    let lines = catalogue
        .tools()
        .iter()
        .map(|tool| format!("{}  [{}]  {}\n", tool.id(), tool.tier(), tool.summary()));
    let resources = catalogue.resources().iter().map(|resource| {
        let (callable, uri) = (resource.callable(), resource.template().as_str());
        format!("{}  [{}]  resource {uri}: {}\n", callable.id(), callable.tier(), callable.summary())
    });
    let prompts = catalogue.prompts().iter().map(|prompt| {
        let callable = prompt.callable();
        format!("{}  [{}]  prompt: {}\n", callable.id(), callable.tier(), callable.summary())
    });
    let away = catalogue.servers().iter().filter(|server| server.health != Health::Ready);
    lines
        .chain(resources)
        .chain(prompts)
        .chain(away.map(|server| format!("{}  {}\n", server.name, server.health)))
        .collect()
}

/// What there is, or what is wrong with the binary and which of its servers are down. A list that is no catalogue starts none.
async fn check(
    list: &NativeCatalogue,
    folder: Option<&Path>,
    builder: HostBuilder,
) -> Result<String, String> {
    // Elsewhere than where it was built there is no manifest to look at.
    let folder = folder.filter(|folder| folder.join("Cargo.toml").exists());
    let findings = lint::binary(list, folder).unwrap_or_else(|(findings, why)| {
        let _ = writeln!(
            io::stderr().lock(),
            "note: dependencies that are not linked were not looked for: {why}"
        );
        findings
    });
    let mut wrong: Vec<String> = findings.iter().map(ToString::to_string).collect();
    let mut told = String::new();
    match builder.build().await {
        Ok(host) => {
            let catalogue = host.catalogue();
            let (tools, servers) = (catalogue.tools().len(), catalogue.servers());
            told = format!("{tools} tools on {} servers, no problem\n", servers.len());
            let down = servers.iter().filter(|server| server.health != Health::Ready);
            wrong.extend(down.map(|server| format!("server {}: {}", server.name, server.health)));
        }
        // Its problems are among the findings.
        Err(HostError::Catalogue(_)) => {}
        Err(error) => wrong.push(error.to_string()),
    }
    if wrong.is_empty() { Ok(told) } else { Err(wrong.join("\n")) }
}

async fn answer(session: &HostSession, request: Value) -> ExitCode {
    let answer = session.call(&request).await;
    if answer.is_error() {
        return fail(2, &answer.to_text());
    }
    let pretty = serde_json::from_str::<Value>(&answer.to_text())
        .and_then(|answer| serde_json::to_string_pretty(&answer));
    show(&format!("{}\n", pretty.unwrap_or_else(|_| answer.to_text())))
}

async fn call(session: &HostSession, id: &str, arguments: &str) -> ExitCode {
    let arguments = match serde_json::from_str(arguments) {
        Ok(Value::Object(arguments)) => arguments,
        Ok(other) => {
            return fail(2, &format!("the arguments are {}; write an object", crate::tool::kind(&other)));
        }
        Err(error) => return fail(2, &format!("the arguments are not JSON: {error}")),
    };
    let completed = session.execute(id, arguments, CallOptions::default()).await;
    let told = completed.result.to_text();
    match completed.outcome {
        Outcome::Ok => show(&format!("{}\n", text::block(&told, usize::MAX))),
        Outcome::ToolError => fail(1, &told),
        // What could not be found or read is a mistake of whoever typed it.
        Outcome::Denied
            if matches!(completed.denied, Some(Check::Scope | Check::Request | Check::Arguments)) =>
        {
            fail(2, &told)
        }
        Outcome::Denied => fail(4, &told),
        _ => fail(5, &told),
    }
}

/// Writes to standard output. A reader that has gone is no failure.
fn show(out: &str) -> ExitCode {
    let _ = io::stdout().lock().write_all(out.as_bytes());
    ExitCode::SUCCESS
}

fn fail(code: u8, message: &str) -> ExitCode {
    let _ = writeln!(io::stderr().lock(), "error: {}", text::block(message, usize::MAX));
    ExitCode::from(code)
}
