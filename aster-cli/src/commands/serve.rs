//! `aster mcp serve`: the bridge, or one server, for an MCP client over standard input and output.

use aster_runtime::serve::{self, ServeError, Shape};

use crate::args::{Global, Serve};
use crate::compose::{self, Start};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::render::Output;

pub(crate) async fn run(global: &Global, arguments: &Serve, output: Output) -> Result<Exit, Failure> {
    let (shape, ids) = match &arguments.name {
        Some(name) => (Shape::Server(name.clone()), vec![format!("{name}/*")]),
        None => (Shape::Bridge, Vec::new()),
    };
    let start = if ids.is_empty() { Start::All } else { Start::For(&ids) };
    let stop = interrupt::token();
    let (host, profile) = compose::serving(global, start, output).await?;
    let served = serve::stdio(host, profile, shape, stop).await;
    served.map(|()| Exit::Success).map_err(|error| match error {
        ServeError::UnknownServer(_) => Failure::new(Exit::Usage, error.to_string()),
        ServeError::Filter(_) => Failure::new(Exit::Configuration, error.to_string()),
        _ => Failure::new(Exit::Failed, error.to_string()),
    })
}
