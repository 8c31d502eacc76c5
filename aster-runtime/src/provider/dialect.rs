//! What each provider takes, and the rules by which it does not take the rest: facts, each with where it is written.

use super::size::Limits;
use super::{Rule, What};

/// What holds for every provider, since every export is written out.
pub(super) static GENERAL: &[Rule] = &[
    Rule::widens(
        What::Reference,
        "it leads back to itself or out of the schema; one that cannot be resolved costs a client the whole list",
        "https://github.com/anthropics/claude-code/issues/76040",
    ),
    Rule::widens(
        What::Beside,
        "it stands beside a reference, whose target is written here",
        "https://json-schema.org/draft/2020-12/json-schema-core#section-8.2.3.1",
    ),
    Rule::widens(
        What::Size,
        "it leads through more schemas than are written out; lists of tools have failed over such",
        "https://github.com/wso2/api-manager/issues/5189",
    ),
];

/// What one provider takes, and the rules by which it does not take the rest.
#[derive(Debug)]
pub(super) struct Dialect {
    /// Of keywords; `None` is all but references.
    pub(super) keywords: Option<&'static [&'static str]>,
    /// Of formats; `None` is all.
    pub(super) formats: Option<&'static [&'static str]>,
    /// Every property is required and there are no others.
    pub(super) strict: bool,
    /// `nullable` stands for the type `null`, a type is one word, an `enum` is of texts (OpenAPI 3.0), and nothing stands
    /// beside `anyOf`.
    pub(super) nullable: bool,
    /// Of names of arguments; the names of what is inside of them are free.
    pub(super) names: Option<fn(&str) -> bool>,
    pub(super) limits: Option<&'static Limits>,
    pub(super) rules: &'static [Rule],
}

pub(super) static OPENAI: Dialect = Dialect {
    keywords: None,
    formats: None,
    strict: false,
    nullable: false,
    names: None,
    limits: None,
    rules: &[Rule::widens(
        What::Root,
        "the root can only be an object",
        "https://developers.openai.com/api/docs/guides/function-calling",
    )],
};

pub(super) static ANTHROPIC: Dialect = Dialect {
    names: Some(is_plain_name),
    rules: &[
        Rule::widens(
            What::Root,
            "the root can only be an object",
            "https://github.com/diegosouzapw/OmniRoute/issues/13552",
        ),
        // Only the arguments themselves are looked at; renamed, the model's answer would have to be renamed back.
        Rule::narrows(
            What::Name,
            "an argument's name is of 1 to 64 letters, digits, `_`, `.` and `-`, or the whole request is refused; one of \
             another name cannot be given",
            "https://github.com/aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws/issues/709",
        ),
    ],
    ..OPENAI
};

/// `^[a-zA-Z0-9_.-]{1,64}$`
fn is_plain_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
}

const SUPPORTED: &str = "https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas";

const EVERY_TYPE: &str = "https://github.com/can1357/oh-my-pi/issues/211";

pub(super) static STRICT: Dialect = Dialect {
    keywords: Some(&[
        "type",
        "description",
        "enum",
        "const",
        "anyOf",
        "items",
        "properties",
        "required",
        "additionalProperties",
        "pattern",
        "format",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minItems",
        "maxItems",
    ]),
    formats: Some(&["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]),
    strict: true,
    nullable: false,
    names: None,
    limits: Some(&Limits {
        levels: 10,
        properties: 5_000,
        values: 1_000,
        free_values: 250,
        enum_characters: 15_000,
        characters: 120_000,
    }),
    rules: &[
        Rule::widens(
            What::Root,
            "the root can only be an object",
            "https://developers.openai.com/api/docs/guides/structured-outputs#root-objects-must-not-be-anyof-and-must-be-an-object",
        ),
        Rule::widens(What::Keyword, "the keyword is not taken", SUPPORTED),
        Rule::widens(
            What::Format,
            "the format is not taken",
            "https://github.com/can1357/oh-my-pi/issues/206",
        ),
        Rule::widens(
            What::OneOf,
            "that only one holds cannot be said; `anyOf` stands in its place",
            SUPPORTED,
        ),
        Rule::widens(What::Tuple, "the places of a tuple cannot be told apart", SUPPORTED),
        Rule::narrows(
            What::Open,
            "properties without fixed names cannot be said",
            "https://developers.openai.com/api/docs/guides/structured-outputs#additionalproperties-false-must-always-be-set-in-objects",
        ),
        Rule::widens(
            What::Map,
            "an object without fixed names cannot be said; it is written as JSON text",
            "https://developers.openai.com/api/docs/guides/structured-outputs#additionalproperties-false-must-always-be-set-in-objects",
        ),
        Rule::narrows(
            What::Anything,
            "every schema has a type; of any value those remain that are no list and no object",
            EVERY_TYPE,
        ),
        Rule::narrows(
            What::Reference,
            "it leads back to itself or out of the schema; a value that is no list and no object stands there",
            EVERY_TYPE,
        ),
        Rule::widens(
            What::Depth,
            "objects and lists stand at most ten deep in each other; what is deeper is written as JSON text",
            "https://developers.openai.com/api/docs/guides/structured-outputs#objects-have-limitations-on-nesting-depth-and-size",
        ),
        Rule::widens(
            What::Listed,
            "an enum lists at most 1000 values, and of more than 250 texts at most 15000 characters",
            "https://developers.openai.com/api/docs/guides/structured-outputs#limitations-on-enum-size",
        ),
        Rule::narrows(
            What::Size,
            "the schema has more properties, listed values or characters than are taken together; a text or a number \
             stands there, or nothing",
            "https://developers.openai.com/api/docs/guides/structured-outputs#limitations-on-total-string-size",
        ),
    ],
};

const SCHEMA: &str = "https://ai.google.dev/api/caching#Schema";

pub(super) static GEMINI: Dialect = Dialect {
    keywords: Some(&[
        "type",
        "format",
        "description",
        "nullable",
        "enum",
        "items",
        "properties",
        "required",
        "anyOf",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "minProperties",
        "maxProperties",
        "pattern",
    ]),
    formats: Some(&["date-time", "enum", "float", "double", "int32", "int64"]),
    strict: false,
    nullable: true,
    names: None,
    limits: None,
    rules: &[
        Rule::widens(What::Root, "the root can only be an object", SCHEMA),
        Rule::widens(What::Keyword, "the keyword is not taken", SCHEMA),
        Rule::widens(What::Format, "the format is not taken", SCHEMA),
        Rule::widens(What::OneOf, "that only one holds cannot be said; `anyOf` stands in its place", SCHEMA),
        Rule::widens(What::Tuple, "the places of a tuple cannot be told apart", SCHEMA),
        Rule::widens(
            What::Closed,
            "that there are no others cannot be said",
            "https://github.com/TableProApp/TablePro/pull/1276",
        ),
        Rule::widens(What::Open, "properties without fixed names cannot be said", SCHEMA),
        Rule::widens(
            What::Map,
            "an object has named properties; one without is written as JSON text",
            SCHEMA,
        ),
        Rule::narrows(
            What::Anything,
            "every schema has one type; of any value texts, numbers and booleans remain",
            SCHEMA,
        ),
        Rule::narrows(
            What::Reference,
            "it leads back to itself or out of the schema; a text, a number or a boolean stands there",
            SCHEMA,
        ),
        Rule::narrows(
            What::Size,
            "it leads through more schemas than are written out; a text, a number or a boolean stands there",
            SCHEMA,
        ),
        Rule::widens(What::Values, "only texts can be listed", SCHEMA),
    ],
};

impl Dialect {
    pub(super) fn takes(&self, keyword: &str) -> bool {
        // References are followed, whoever takes them: a describe that answers with one has been refused as well.
        !matches!(keyword, "$ref" | "$defs" | "$schema" | "definitions")
            && self.keywords.is_none_or(|keywords| keywords.contains(&keyword))
    }

    /// Whether every schema has a type, and every object properties.
    pub(super) fn is_typed(&self) -> bool {
        self.keywords.is_some()
    }

    pub(super) fn rule(&'static self, what: What) -> &'static Rule {
        let mut rules = self.rules.iter().chain(GENERAL);
        // A test holds that there is one wherever one is asked for.
        rules.find(|rule| rule.what == what).unwrap_or(&GENERAL[0])
    }
}
