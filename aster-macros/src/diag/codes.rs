//! The catalogue of misuses that the macros report themselves. Each code has one test in `tests/ui/`, which a test of
//! the repository demands of this file's text.
//!
//! Some misuses are better told by others, and only have a test that nobody makes them worse:
//!
//! | code | misuse | told by |
//! |---|---|---|
//! | A0109 | a future that is not `Send` | rustc |
//! | A0111 | the state of a server that cannot be shared between threads | rustc |
//! | A0209 | a parameter's type without its derives | `ToolArg` |
//! | A0213 | a default of a type without `Serialize` | `ToolDefault` |
//! | A0214 | a URL that is no text | `UrlText` |
//! | A0215 | a range of something that is no number | `Ranged` |
//! | A0216 | suggestions that are no list of texts | `Suggestions` |
//! | A0219 | a header of something that cannot stand in one | `HeaderValue` |
//! | A0223 | a length of something that has none | `Measured` |
//! | A0224 | a pattern on something that is no text | `PatternText` |
//! | A0228 | a default of another type than the argument's | rustc, `TextDefault` |
//! | A0229 | a schema of one's own that is no text | `SchemaText` |
//! | A0301 | a result that is none | `IntoToolResult` |
//! | A0302 | an error that is none | `IntoToolError` |
//! | A0303 | `Json` of something that has no JSON | `ToolOutput` |
//! | A0304 | the value of a resource that is none | `IntoResource` |
//! | A0305 | the value of a prompt that is none | `IntoPrompt` |
//! | A0501 | an unknown tier | rustc |
//! | A0502 | an unknown group | rustc |
//! | A0503 | a raised tool that is none | rustc |
//! | A0504 | a tier that `catalogue!` would lower | `check_raises` |
//! | A0505 | a group that `catalogue!` does not name | `check_groups` |
//! | A0508 | an agent with a tool that is none | rustc |
//! | A0509 | an agent with a group that is none | rustc |
//! | A0603 | a server that stands twice in `catalogue!` | `check_catalogue` |
//! | A0604 | two resources of one URI in `catalogue!` | `check_catalogue` |
//! | A0605 | a crate of servers that is a dependency and not linked | rustc, and `catalogue_tests!` |
//! | A0607 | a raised tool that is not in the catalogue | `check_raises` |
//! | A0608 | an entry of `catalogue!` that is none | `Listed` |

/// One misuse: the rule that it breaks, and what to type instead.
#[derive(Debug)]
pub(crate) struct Code {
    pub id: &'static str,
    pub title: &'static str,
    pub help: &'static str,
}

pub(crate) static UNKNOWN_OPTION: Code =
    Code { id: "A0001", title: "an attribute has the options that it documents", help: "remove it" };

pub(crate) static GIVEN_TWICE: Code =
    Code { id: "A0002", title: "an option is given once", help: "remove one" };

pub(crate) static WRONG_VALUE: Code =
    Code { id: "A0003", title: "an option takes one kind of value", help: "write a value of that kind" };

pub(crate) static NO_TIER: Code = Code {
    id: "A0004",
    title: "tiers are never guessed",
    help: "add `tier = Standard`, `Elevated` or `Restricted`",
};

pub(crate) static NOT_A_FUNCTION: Code = Code {
    id: "A0005",
    title: "what is published is a function, a server is an `impl` or a `mod`",
    help: "put `#[mcp_tool]` on a function; for a group of tools put `#[mcp_server]` on the `impl`",
};

pub(crate) static NO_BODY: Code = Code {
    id: "A0006",
    title: "what is published can be called",
    help: "put the attribute on the method that implements it; a function of its own needs a body",
};

pub(crate) static FILE_MODULE: Code = Code {
    id: "A0007",
    title: "stable Rust does not show a module's file to an attribute (E0658)",
    help: "write the module's body here, or put `#[mcp_server]` on an `impl` inside the file",
};

pub(crate) static TRAIT_IMPL: Code = Code {
    id: "A0008",
    title: "a server is an inherent `impl`",
    help: "move the tools to an `impl` of the type itself",
};

pub(crate) static CONFLICTING: Code = Code {
    id: "A0009",
    title: "a function is published once, and is no entry point",
    help: "remove one of them",
};

pub(crate) static OTHER_ATTRIBUTE: Code =
    Code { id: "A0010", title: "each attribute has its own options", help: "move it there" };

pub(crate) static CONTRADICTION: Code =
    Code { id: "A0011", title: "hints do not contradict each other", help: "remove one of them" };

pub(crate) static HOST: Code = Code {
    id: "A0012",
    title: "`egress` lists hosts, in lower case, that the URLs of a call may name",
    help: "write `egress(\"api.example.com\", \"*.example.org\")`",
};

pub(crate) static SYNTAX: Code = Code {
    id: "A0013",
    title: "options are `key`, `key = value` and `key(…)`, with commas between them",
    help: "write a comma between them",
};

pub(crate) static HIDDEN: Code = Code {
    id: "A0014",
    title: "a server's macro takes the attributes of its functions as they are written, before any condition is judged",
    help: "write it itself",
};

pub(crate) static GENERIC: Code =
    Code { id: "A0102", title: "a JSON schema is fixed at compile time", help: "name a concrete type" };

pub(crate) static QUALIFIED: Code = Code {
    id: "A0103",
    title: "what is published is a plain or an async safe function",
    help: "wrap it in a safe function without the qualifier",
};

pub(crate) static NO_SERVER: Code = Code {
    id: "A0104",
    title: "a method needs its server",
    help: "put `#[mcp_server]` on the `impl`, or take `ctx: &ToolContext` instead",
};

pub(crate) static RECEIVER: Code = Code {
    id: "A0105",
    title: "a server is lent to its tools, which are called at the same time",
    help: "take `&self`; keep what changes behind a lock in `Self`",
};

pub(crate) static BORROWED: Code = Code {
    id: "A0106",
    title: "arguments are owned: the JSON does not outlive the call",
    help: "use an owned type",
};

pub(crate) static OUTPUT: Code = Code {
    id: "A0107",
    title: "a tool returns a value that the model can read",
    help: "name the type: `Json<T>`, `String`, `()` or a `Result`",
};

pub(crate) static ASSOCIATED: Code = Code {
    id: "A0110",
    title: "a function of an `impl` is published by its server",
    help: "put `#[mcp_server]` on the `impl`, or move the function out of it",
};

pub(crate) static BORROWING: Code = Code {
    id: "A0112",
    title: "a server lives as long as its host",
    help: "let its fields own what they hold, or share it in an `Arc`",
};

pub(crate) static PATTERN: Code = Code {
    id: "A0201",
    title: "an argument's name is its JSON property",
    help: "bind a name, and take the value apart in the body",
};

pub(crate) static UNNAMED: Code = Code {
    id: "A0202",
    title: "an argument's name is its JSON property",
    help: "name it, or give it a name on the wire with `#[arg(name = \"…\")]`",
};

pub(crate) static TWO_CONTEXTS: Code =
    Code { id: "A0203", title: "there is one `&ToolContext`", help: "remove one" };

pub(crate) static CONTEXT_NOT_FIRST: Code =
    Code { id: "A0204", title: "`&ToolContext` comes before the arguments", help: "move it to the front" };

pub(crate) static CONTEXT_OWNED: Code = Code {
    id: "A0205",
    title: "the context is lent to the tool",
    help: "write `ctx: &ToolContext`; it is cheap to clone where it must be owned",
};

pub(crate) static RESERVED: Code = Code {
    id: "A0206",
    title: "some names mean something to MCP or to Aster",
    help: "rename the argument, or give it another name on the wire with `#[arg(name = \"…\")]`",
};

pub(crate) static TOO_MANY: Code = Code {
    id: "A0207",
    title: "a model fills in few arguments well",
    help: "group them in one struct: `query: Query`",
};

pub(crate) static SAME_ARGUMENT: Code =
    Code { id: "A0208", title: "an argument's name on the wire is its own", help: "rename one" };

pub(crate) static EMPTY_RANGE: Code =
    Code { id: "A0210", title: "a range has numbers in it", help: "write the smaller bound first" };

pub(crate) static DEFAULT_OUTSIDE: Code = Code {
    id: "A0211",
    title: "a default is one of the values that a caller may give",
    help: "choose a default inside, or widen the range",
};

pub(crate) static CONDITIONAL: Code = Code {
    id: "A0212",
    title: "arguments are the same wherever their function is compiled",
    help: "put the `cfg` on the function, or make the argument an `Option`",
};

pub(crate) static HEADER: Code = Code {
    id: "A0217",
    title: "a header's name is a token of HTTP (RFC 9110, section 5.6.2)",
    help: "use letters, digits and `-`",
};

pub(crate) static SAME_HEADER: Code =
    Code { id: "A0218", title: "a header carries one argument; its case does not count", help: "rename one" };

pub(crate) static OWN_SCHEMA: Code = Code {
    id: "A0220",
    title: "a schema of one's own describes all arguments as one value",
    help: "take one parameter, such as `arguments: JsonObject`, without `#[arg]`",
};

pub(crate) static FLATTEN: Code = Code {
    id: "A0221",
    title: "a flattened struct is the whole object of arguments",
    help: "flatten one struct, alone; or take its fields as arguments",
};

pub(crate) static REGEX: Code = Code {
    id: "A0222",
    title: "a pattern is a regular expression without look-around and back-references, which no provider takes",
    help: "write it as in `^[A-Z]{2}$`",
};

pub(crate) static SECRET_SHOWN: Code = Code {
    id: "A0225",
    title: "a secret stands neither in a schema nor in a header",
    help: "remove it, or `secret`",
};

pub(crate) static DESCRIBED_NOTHING: Code = Code {
    id: "A0226",
    title: "a section `# Arguments` describes the function's own",
    help: "correct the name, or remove the line",
};

pub(crate) static DESCRIBED_TWICE: Code = Code {
    id: "A0227",
    title: "an argument is described in one place",
    help: "remove the line here, or the doc comment there",
};

pub(crate) static BOUND: Code = Code {
    id: "A0230",
    title: "a bound of `range` is one of the argument's numbers, a bound of `length` is a count",
    help: "write a number that the argument, or its length, can be; or leave that end open, as in `1..`",
};

pub(crate) static NO_PATH: Code = Code {
    id: "A0231",
    title: "the path of a file or folder is a text",
    help: "remove `path`, or take a `String` or a `PathBuf`",
};

pub(crate) static CHARACTER: Code =
    Code { id: "A0401", title: "names must suit every model provider", help: "use `[a-z0-9_-]`" };

pub(crate) static LENGTH: Code = Code {
    id: "A0402",
    title: "a name has between 1 and 64 characters, counted as `server__tool`",
    help: "shorten one of the names with `name = \"…\"`",
};

pub(crate) static START: Code = Code {
    id: "A0403",
    title: "a name begins with a letter, has no `__`, and is not Aster's own",
    help: "rename it, or set `name = \"…\"`",
};

pub(crate) static NO_DESCRIPTION: Code = Code {
    id: "A0404",
    title: "the model, or its user, chooses by the description",
    help: "add a doc comment that says what it does and when to use it: `/// …`",
};

pub(crate) static PLACEHOLDER: Code = Code {
    id: "A0405",
    title: "the model, or its user, chooses by the description",
    help: "say what it does and when to use it",
};

pub(crate) static LONG_DESCRIPTION: Code = Code {
    id: "A0406",
    title: "a description is read in every request, and providers cut it off at 1,024 characters",
    help: "move what concerns one argument to that argument",
};

pub(crate) static SAME_TOOL: Code = Code {
    id: "A0407",
    title: "a name stands once on a server, whatever has it",
    help: "rename one, or set `name = \"…\"`",
};

pub(crate) static SAME_VARIANT: Code = Code {
    id: "A0408",
    title: "each tool of a server is a variant of its tool enum",
    help: "rename one of the functions; `name = \"…\"` keeps the tool's name",
};

pub(crate) static PRIMITIVE: Code = Code {
    id: "A0409",
    title: "beside a free function stands a type of its name, which holds its `TOOL`",
    help: "rename the function; `name = \"…\"` keeps the tool's name",
};

pub(crate) static ALIAS: Code = Code {
    id: "A0410",
    title: "an alias is an old name of a tool",
    help: "remove it, or write the name that the tool had before",
};

pub(crate) static NAMESAKE: Code = Code {
    id: "A0411",
    title: "beside a free function stands a type of its name, which holds its `TOOL`",
    help: "rename the function; `name = \"…\"` keeps the tool's name",
};

pub(crate) static TAKEN: Code = Code {
    id: "A0412",
    title: "a server has its own `SERVER`, `TIERS` and `GROUPS`, and the enum of its tools: `WebTool`, in a module `Tool`",
    help: "rename it",
};

pub(crate) static NO_URL: Code = Code {
    id: "A0507",
    title: "egress governs an argument by its type, or by a name such as `page_url` or `domain`",
    help: "remove it",
};

pub(crate) static NO_TOOLS: Code = Code {
    id: "A0601",
    title: "a server is a set of tools, resources and prompts",
    help: "add `#[mcp_tool(tier = …)]` to its functions, or remove `#[mcp_server]`",
};

pub(crate) static TWO_BLOCKS: Code = Code {
    id: "A0602",
    title: "a type is one server, whose tools stand in one block",
    help: "move these functions there; what is no tool may stand in an `impl` without the attribute",
};

pub(crate) static CRATE_NOT_A_PATH: Code =
    Code { id: "A0606", title: "`crate` says where the runtime is re-exported", help: "write a path" };

pub(crate) static NO_URI: Code = Code {
    id: "A0701",
    title: "a resource is read by its URI",
    help: "add `uri = \"notes://today\"`, or a template such as `uri = \"notes://{id}\"`",
};

pub(crate) static URI: Code = Code {
    id: "A0702",
    title: "a URI has a scheme, and of RFC 6570 the variables `{name}` and `{+name}`, which can be told apart",
    help: "write it as in `notes://{id}` or `files:///{+path}`",
};

pub(crate) static NO_PARAMETER: Code = Code {
    id: "A0703",
    title: "the variables of a URI are the parameters of its function",
    help: "add the parameter, or give one that name with `#[arg(name = \"…\")]`",
};

pub(crate) static NO_VARIABLE: Code = Code {
    id: "A0704",
    title: "the variables of a URI are the parameters of its function",
    help: "write it into the URI, or remove the parameter",
};

pub(crate) static SIZE: Code = Code {
    id: "A0705",
    title: "a size is that of one resource, and a template means many",
    help: "remove `size`",
};

pub(crate) static ALWAYS_THERE: Code = Code {
    id: "A0706",
    title: "a URI has a value for each of its variables, or it is not one of the template's",
    help: "take the value itself, and publish the URI without the variable as a resource of its own",
};

pub(crate) static MIME_TYPE: Code = Code {
    id: "A0707",
    title: "a MIME type is a type and a subtype, with parameters where it has some (RFC 6838)",
    help: "write it as in `text/plain` or `text/html; charset=utf-8`",
};
