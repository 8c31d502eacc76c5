//! `shortcuts`: the user's own Apple Shortcuts, on macOS.

pub mod cli;

use std::path::Path;
use std::time::Duration;

use aster_runtime::{Json, McpServer, ServerEnv, ServerSpec, StartError, mcp_server, mcp_tool, text};

use crate::groups::DESKTOP;
use cli::{Cli, CliError};

/// The server, for `catalogue![…]`.
pub const SERVER: &ServerSpec = Shortcuts::SERVER;

const PROGRAM: &str = "/usr/bin/shortcuts";

const RUN_TIMEOUT: Duration = Duration::from_secs(110);

/// The server's state: the command that it runs.
#[derive(Debug, Clone)]
pub struct Shortcuts {
    cli: Cli,
}

impl Shortcuts {
    /// A server that runs this command.
    #[must_use]
    pub fn new(cli: Cli) -> Self {
        Self { cli }
    }
}

impl McpServer for Shortcuts {
    async fn start(_: &ServerEnv) -> Result<Self, StartError> {
        if !cfg!(target_os = "macos") {
            return Err(StartError::new(format_args!(
                "Apple Shortcuts exist on macOS only, and this is {}",
                std::env::consts::OS
            )));
        }
        if !Path::new(PROGRAM).exists() {
            return Err(StartError::new(format_args!(
                "`{PROGRAM}` is missing; it comes with macOS 12 and later"
            )));
        }
        Ok(Self::new(Cli::new(PROGRAM, RUN_TIMEOUT)))
    }
}

/// Runs the user's own Apple Shortcuts.
#[mcp_server(name = "shortcuts", group = DESKTOP)]
impl Shortcuts {
    /// Lists the names of the user's Apple Shortcuts.
    #[mcp_tool(tier = Standard, read_only, open_world = false, timeout = "30s")]
    async fn list(&self) -> Result<Json<Vec<String>>, CliError> {
        let names = self.cli.list().await?;
        Ok(Json(names.iter().map(|name| text::one_line(name, 200)).collect()))
    }

    /// Runs one of the user's Apple Shortcuts and returns what it puts out as text.
    ///
    /// Take the name from `list`. A shortcut does whatever its author put in it: it may send, change or delete things.
    #[mcp_tool(tier = Restricted, destructive, open_world, timeout = "120s")]
    async fn run(
        &self,
        /// The shortcut's name, exactly as `list` gives it.
        name: String,
        /// The text to give to the shortcut as its input.
        input: Option<String>,
    ) -> Result<String, CliError> {
        let output = self.cli.run(&name, input.as_deref()).await?;
        let mut text = text::block(output.text.trim_end(), usize::MAX);
        if output.cut {
            text.push_str("\n\n[the shortcut put out more than is shown here]");
        } else if text.is_empty() {
            text.push_str("done; the shortcut put out nothing");
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(target_os = "macos"))]
    #[tokio::test]
    async fn elsewhere_it_is_absent_with_the_reason() {
        let error = Shortcuts::start(&ServerEnv::default()).await.unwrap_err().to_string();
        assert_eq!(
            error,
            format!("Apple Shortcuts exist on macOS only, and this is {}", std::env::consts::OS)
        );
    }
}
