//! Attributes inside a function, behind a `cfg`, and written by `macro_rules!`.
#![deny(warnings)]

use aster_runtime::{NativeCatalogue, catalogue, mcp_server, mcp_tool};

macro_rules! doubling {
    ($name:ident, $ty:ty, $tier:ident, $title:expr) => {
        /// Doubles a number.
        #[mcp_tool(tier = $tier, title = $title)]
        fn $name(number: $ty, more: Option<$ty>) -> $ty {
            number + more.unwrap_or(number)
        }
    };
}

doubling!(double_u32, u32, Standard, "Double");
doubling!(double_f64, f64, Elevated, "Double");

struct Web;

#[mcp_server]
impl Web {
    /// Is never there.
    #[cfg(any())]
    #[mcp_tool(tier = Standard)]
    fn fetch(page: NoSuchType) {}

    /// Is there.
    #[cfg(not(doc))]
    #[mcp_tool(tier = Restricted)]
    fn post(mut page: String, r#type: String) -> String {
        page.push_str(&r#type);
        page
    }

    /// Gives the server back, by the name of its type.
    #[mcp_tool(tier = Standard)]
    fn again<'a>(&'a self, ctx: &'a aster_runtime::ToolContext) -> Result<&'static str, std::fmt::Error> {
        let _ = ctx;
        Ok("again")
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    name: String,
}

/// The type is private, and the alias hides an `Option`.
type Maybe = Option<Place>;

fn main() {
    struct Local;

    #[mcp_server(name = "here")]
    impl Local {
        #[doc = include_str!("../README.md")]
        #[mcp_tool(tier = Standard)]
        fn inner(&self, place: Maybe) -> String {
            place.map(|place| place.name).unwrap_or_default()
        }
    }

    /// Names a place.
    #[mcp_tool(tier = Standard, server = "free")]
    async fn name(place: Maybe) -> String {
        place.map(|place| place.name).unwrap_or_default()
    }

    const CATALOGUE: NativeCatalogue =
        catalogue![double_u32::TOOL, double_f64::TOOL, Web::SERVER, Local::SERVER, name::TOOL];
    assert_eq!(CATALOGUE.entries.len(), 5);
    assert!(Web::SERVER.tools[WebTool::Post as usize].name == "post");
    assert_eq!(double_f64::TOOL.title, Some("Double"));
    assert!((name::TOOL.input_schema)().get("required").is_none());
    assert!(Local::SERVER.tools[0].description.starts_with("# UI tests"));
}
