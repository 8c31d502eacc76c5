//! What the providers of models take of JSON Schema, and a tool's schema in the form of each.
//!
//! An export is a copy: references are followed, and what a provider refuses is written otherwise where that says the same,
//! and left out with a [`Loss`] where it does not. Every loss is by a [`Rule`], which says why and where that is written. What
//! is left out mostly widens the schema, so arguments are checked against the tool's own; a rule that
//! [narrows](field@Rule::narrows) keeps a model from arguments that the tool would take. Pure, and bounded in depth and size:
//! schemas come from strangers too.

mod dialect;
mod size;
mod writer;

use std::fmt;

use serde_json::Value;

use self::dialect::{ANTHROPIC, Dialect, GEMINI, GENERAL, OPENAI, STRICT};
use self::writer::Writer;

/// Whose model is to call the tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Provider {
    /// JSON Schema 2020-12 as it is.
    #[default]
    Plain,
    /// OpenAI, function calling without `strict`.
    OpenAi,
    /// OpenAI, function calling with `strict: true`: every property is required, an optional one may be null.
    OpenAiStrict,
    /// Anthropic, the messages API.
    Anthropic,
    /// Gemini, `parameters` of a function declaration. A function whose schema has no property is declared without.
    Gemini,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Plain, Self::OpenAi, Self::OpenAiStrict, Self::Anthropic, Self::Gemini];

    /// What it is called on a command line: `openai-strict`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::OpenAi => "openai",
            Self::OpenAiStrict => "openai-strict",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The provider of this [name](Self::name).
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.name() == name)
    }

    /// The schema as the provider takes it.
    ///
    /// ```
    /// use aster_runtime::provider::Provider;
    /// use serde_json::json;
    ///
    /// let schema = json!({"type": "object", "properties": {"page": {"type": "string", "minLength": 1}}});
    /// let export = Provider::OpenAiStrict.export(&schema);
    /// assert_eq!(
    ///     export.schema,
    ///     json!({
    ///         "type": "object",
    ///         "properties": {"page": {"type": ["string", "null"]}},
    ///         "required": ["page"],
    ///         "additionalProperties": false,
    ///     })
    /// );
    /// assert_eq!(export.losses[0].keyword, "minLength");
    /// assert!(export.losses[0].rule.source.starts_with("https://developers.openai.com/"));
    /// ```
    #[must_use]
    pub fn export(self, schema: &Value) -> Export {
        let Some(dialect) = self.dialect() else {
            return Export { schema: schema.clone(), losses: Vec::new() };
        };
        Writer::new(dialect, schema).write()
    }

    /// The rules by which an export loses something; none for [`Plain`](Self::Plain).
    pub fn rules(self) -> impl Iterator<Item = &'static Rule> {
        self.dialect().into_iter().flat_map(|dialect| {
            let is_told_better = |rule: &&Rule| dialect.rules.iter().any(|own| own.what == rule.what);
            dialect.rules.iter().chain(GENERAL.iter().filter(move |rule| !is_told_better(rule)))
        })
    }

    /// Whether the provider takes this keyword below the root.
    #[must_use]
    pub fn takes(self, keyword: &str) -> bool {
        self.dialect().is_none_or(|dialect| dialect.takes(keyword))
    }

    fn dialect(self) -> Option<&'static Dialect> {
        match self {
            Self::Plain => None,
            Self::OpenAi => Some(&OPENAI),
            Self::OpenAiStrict => Some(&STRICT),
            Self::Anthropic => Some(&ANTHROPIC),
            Self::Gemini => Some(&GEMINI),
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What it is that a provider does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum What {
    /// Anything at the root but an object with properties.
    Root,
    /// A reference.
    Reference,
    /// What stands beside a reference.
    Beside,
    /// More schemas, or deeper ones, than there is room for.
    Size,
    /// A keyword.
    Keyword,
    /// A format.
    Format,
    /// That exactly one of several schemas holds.
    OneOf,
    /// A list whose places differ.
    Tuple,
    /// That an object has no other properties.
    Closed,
    /// Properties without fixed names, beside others.
    Open,
    /// An object without fixed names.
    Map,
    /// A value of any kind.
    Anything,
    /// A list of values that are not texts.
    Values,
    /// A longer list of values than there is room for.
    Listed,
    /// Objects and lists that stand deeper in each other than there is room for.
    Depth,
    /// The name of a property.
    Name,
}

/// Something that a provider does not take of JSON Schema.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// What is not taken.
    pub what: What,
    /// Why, and what stands in its place where something does.
    pub reason: &'static str,
    /// Where that is written: the provider's documentation, or where its answer was reported.
    pub source: &'static str,
    /// Whether what stands there takes fewer values than the tool does, not more.
    pub narrows: bool,
}

impl Rule {
    const fn widens(what: What, reason: &'static str, source: &'static str) -> Self {
        Self { what, reason, source, narrows: false }
    }

    const fn narrows(what: What, reason: &'static str, source: &'static str) -> Self {
        Self { what, reason, source, narrows: true }
    }
}

/// A schema in a provider's form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Export {
    /// The schema.
    pub schema: Value,
    /// What it no longer says, in the order of the schema.
    pub losses: Vec<Loss>,
}

/// Something that a tool's schema says and an export does not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// Where, as a JSON pointer into the tool's own schema.
    pub path: String,
    /// Which keyword.
    pub keyword: String,
    /// Why.
    pub rule: &'static Rule,
}
