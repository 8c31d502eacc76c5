//! The edge to external MCP servers: a supervised connection to each, over the pipes of a child process.
//!
//! A server is a stranger's program. It may print what it likes, answer late, wrongly or never, and die at any time:
//! whatever it does costs its own tools only, is over within a deadline, and has a reason that can be shown.
//!
//! With the feature `serve` besides, `MountedServer` takes a server of the official SDK into this process.
//!
//! ```no_run
//! use aster_runtime::dispatch::Upstream;
//! use aster_runtime::upstream::{StdioServer, StdioUpstream};
//!
//! # async fn start() {
//! let files = StdioServer::new("files", "npx").args(["-y", "@modelcontextprotocol/server-filesystem", "."]);
//! let upstream = StdioUpstream::spawn(files);
//! let mut listing = upstream.listing();
//! while listing.changed().await.is_ok() {
//!     let listing = listing.borrow_and_update().clone();
//!     println!("{}: {} tools", listing.health, listing.tools.len());
//! }
//! # }
//! ```

mod connection;
mod diagnostics;
#[cfg(feature = "serve")]
mod mounted;
mod outbox;
mod raw;
mod requests;
mod stdio;
mod supervisor;

#[cfg(feature = "serve")]
pub use mounted::MountedServer;
pub use stdio::StdioServer;
pub use supervisor::StdioUpstream;
