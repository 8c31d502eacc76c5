//! A crate that re-exports the runtime, and whose users do not know its name. It forbids what is only allowed where it is done.
#![forbid(deprecated, unreachable_code, unused_imports)]

use aster_runtime as rt;

mod facade {
    pub(crate) use aster_runtime as aster;
}

use crate::facade::aster::{mcp_server, mcp_tool};

/// Adds two whole numbers.
#[mcp_tool(tier = Standard, crate = crate::facade::aster)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

struct Web;

#[mcp_server(crate = crate::facade::aster)]
impl Web {
    /// Fetches a page.
    #[mcp_tool(tier = Elevated)]
    fn fetch(&self) {}
}

/// Has prompts and no tools.
struct Notes;

#[mcp_server(crate = rt)]
impl Notes {
    /// Asks for a note.
    #[rt::mcp_prompt(tier = Standard)]
    fn ask() -> &'static str {
        "Write a note."
    }
}

rt::groups! { TIME }

// A path is written where the module stands, and means there what it means.
#[mcp_server(crate = self::facade::aster)]
mod clock {
    use super::mcp_tool;

    /// Tells the time.
    #[mcp_tool(tier = Standard)]
    fn now(zone: Option<i8>) {
        let _ = zone;
    }
}

#[mcp_server(crate = rt, group = TIME)]
mod calendar {
    use super::mcp_tool;

    /// Tells the day.
    #[mcp_tool(tier = Standard)]
    fn day(zone: Option<i8>) {
        let _ = zone;
    }
}

mod inner {
    #[super::mcp_server(crate = super::facade::aster)]
    pub(super) mod timer {
        use super::super::mcp_tool;

        /// Waits.
        #[mcp_tool(tier = Standard)]
        fn wait() {}
    }
}

#[mcp_server(crate = aster_runtime)]
mod alarm {
    use super::mcp_tool;

    /// Rings.
    #[mcp_tool(tier = Standard)]
    fn ring() {}
}

fn main() {
    let _ = (add::TOOL, Web::SERVER, Notes::SERVER, clock::SERVER, inner::timer::SERVER, alarm::SERVER);
    assert_eq!(calendar::GROUPS, ["time"]);
}
