//! Why something, or a part of it, is not in the catalogue.

use std::fmt;

use serde::Serialize;

use crate::id::NameError;
use crate::spec::Tier;
use crate::text;

/// One thing that is wrong with one tool or one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The server.
    pub server: String,
    /// The tool's name or, where it has none, its place in the list (`#3`); `None` where the whole server is meant.
    pub tool: Option<String>,
    /// What is wrong.
    pub reason: Reason,
}

/// What is wrong, and by how much.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The tool is not a JSON object; what it is.
    NotAnObject(&'static str),
    /// A field that must be a non-empty string is missing, empty or something else.
    Missing(&'static str),
    /// Its server does not offer it at the moment; the server's own reason.
    Withheld(String),
    /// It is not trusted as it is now; why, and what the user can do.
    Quarantined(String),
    /// Of its definition, or of what its server says of itself, only a secret is left out.
    Secret {
        /// Where, as a JSON pointer (RFC 6901).
        pointer: String,
        /// What it is, as [`Finding::kind`](crate::gate::secrets::Finding::kind) says.
        kind: &'static str,
    },
    /// The name breaks the grammar.
    Name(NameError),
    /// An earlier tool of the same server has the name; where the two were declared, as far as known.
    DuplicateTool {
        /// Where the first was declared.
        first: Option<String>,
        /// Where this one was declared.
        second: Option<String>,
    },
    /// Another server has the name; where the two were declared, as far as known.
    DuplicateServer {
        /// Where the first was declared.
        first: Option<String>,
        /// Where this one was declared.
        second: Option<String>,
    },
    /// Another resource has the URI; where the two were declared.
    DuplicateUri {
        /// The URI, or the template of URIs.
        uri: String,
        /// Where the first was declared.
        first: String,
        /// Where this one was declared.
        second: String,
    },
    /// The tool's own tier is not the one that `TIERS` of its server has in its place.
    OtherTier {
        /// What its attribute says.
        said: Tier,
        /// What `TIERS` has; nothing where it is too short.
        listed: Option<Tier>,
    },
    /// An argument of a native tool has a name that not every provider takes: one outside `[A-Za-z0-9_.-]{1,64}`.
    ArgumentName(String),
    /// The URI of a resource cannot be used; why.
    Uri(String),
    /// The definition is larger than the limit.
    TooLarge {
        /// Its size in bytes of JSON.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The definitions of the server's tools up to this one are larger than the limit.
    ServerTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The schema is nested more deeply than the limit.
    TooDeep {
        /// The limit in levels.
        limit: usize,
    },
    /// The input schema does not describe an object.
    SchemaNotObject(String),
    /// The input schema breaks the rules of JSON Schema.
    SchemaInvalid(String),
    /// The input schema refers to itself without end.
    SchemaCycle,
    /// The references of the input schema add up to more than can be followed in good time.
    SchemaTooComplex,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let both = |f: &mut fmt::Formatter<'_>, first: &Option<String>, second: &Option<String>| match (
            first, second,
        ) {
            (Some(first), Some(second)) => write!(f, ": first at {first}, again at {second}"),
            _ => Ok(()),
        };
        match self {
            Self::NotAnObject(kind) => write!(f, "the tool is {kind} where an object is due"),
            Self::Missing(field) => write!(f, "`{field}` is missing or not a non-empty string"),
            Self::Withheld(reason) => write!(f, "not offered at the moment: {reason}"),
            Self::Quarantined(why) => write!(f, "quarantined: {why}"),
            Self::Secret { pointer, kind } => {
                write!(f, "only the secret at {} ({kind})", text::one_line(pointer, 200))
            }
            Self::Name(error) => error.fmt(f),
            Self::DuplicateTool { first, second } => {
                f.write_str("another tool of the server has this name")?;
                both(f, first, second)
            }
            Self::DuplicateServer { first, second } => {
                f.write_str("another server has this name")?;
                both(f, first, second)
            }
            Self::DuplicateUri { uri, first, second } => {
                write!(f, "another resource has the URI `{uri}`: first at {first}, again at {second}")
            }
            Self::OtherTier { said, listed: Some(listed) } => {
                write!(f, "its attribute says {said}, and `TIERS` of its server says {listed}")
            }
            Self::OtherTier { said, listed: None } => {
                write!(f, "its attribute says {said}, and `TIERS` of its server says nothing")
            }
            Self::ArgumentName(name) => write!(
                f,
                "the argument `{}` has a name that not every provider takes; use `[A-Za-z0-9_.-]`, at most 64 characters",
                text::one_line(name, 100)
            ),
            Self::Uri(why) => write!(f, "the URI cannot be used: {why}"),
            Self::TooLarge { bytes, limit } => {
                write!(f, "the definition has {bytes} bytes, the limit is {limit}")
            }
            Self::ServerTooLarge { limit } => {
                write!(f, "with this tool the server's definitions have more than {limit} bytes")
            }
            Self::TooDeep { limit } => write!(f, "the schema is nested deeper than {limit} levels"),
            Self::SchemaNotObject(kind) => {
                write!(f, "the input schema describes {kind}; arguments are always an object")
            }
            Self::SchemaInvalid(why) => write!(f, "the input schema is not valid JSON Schema: {why}"),
            Self::SchemaCycle => f.write_str("the input schema refers to itself without end"),
            Self::SchemaTooComplex => f.write_str(
                "the input schema is too complex: its references add up to more than can be followed",
            ),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = text::one_line(&self.server, 100);
        match &self.tool {
            Some(tool) => write!(f, "{server}/{}: {}", text::one_line(tool, 100), self.reason),
            None => write!(f, "server {server}: {}", self.reason),
        }
    }
}

impl Serialize for Problem {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut out = serializer.serialize_struct("Problem", 3)?;
        out.serialize_field("server", &text::one_line(&self.server, 100))?;
        out.serialize_field("tool", &self.tool.as_deref().map(|tool| text::one_line(tool, 100)))?;
        out.serialize_field("reason", &self.reason.to_string())?;
        out.end()
    }
}

/// A list of tools that cannot be a catalogue, with every reason at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueError {
    problems: Vec<Problem>,
}

impl CatalogueError {
    pub(crate) fn check(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }

    /// Everything that is wrong, in the order of the list.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.problems.len();
        write!(f, "the catalogue has {count} problem{}", if count == 1 { "" } else { "s" })?;
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CatalogueError {}
