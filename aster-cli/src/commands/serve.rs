//! `aster mcp serve`: the bridge, all tools, or one server, for an MCP client over standard input and output.

use aster_runtime::serve::{self, ServeError, Shape};

use crate::args::{Global, Mode, Serve};
use crate::compose::{self, Start};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::render::Output;

pub(crate) async fn run(global: &Global, arguments: &Serve, output: Output) -> Result<Exit, Failure> {
    let (shape, start) = match &arguments.name {
        // It is a native one.
        Some(name) => (Shape::Server(name.clone()), Start::For(&[])),
        None if arguments.mode == Mode::Direct => (Shape::Direct, Start::All),
        None => (Shape::Bridge, Start::All),
    };
    let config = compose::load(global)?;
    let interrupt = Interrupt::listen();
    let (host, profile) = compose::serving(&config, start, output).await?;
    let served = tokio::select! {
        served = serve::stdio(host, profile, shape, interrupt.stop) => served,
        () = interrupt.now.cancelled() => return Err(compose::interrupted()),
    };
    served.map(|()| Exit::Success).map_err(|error| match error {
        ServeError::UnknownServer(_) => Failure::new(Exit::Usage, error.to_string()),
        ServeError::Filter(_) => Failure::new(Exit::Configuration, error.to_string()),
        _ => Failure::new(Exit::Failed, error.to_string()),
    })
}
