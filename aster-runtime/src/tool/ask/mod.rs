//! What a tool may ask of the client while it runs: its user, by a form or an address; its model; its folders.
//!
//! The client says what it can be asked ([`ClientInfo`]). A question is a [`ClientRequest`] in the protocol's own words,
//! and what comes back is a [`ClientAnswer`] that was checked before the tool sees it.

mod form;

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{JsonObject, ToolError};

/// What can be asked of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AskKind {
    /// That its user fills in a form.
    Form,
    /// That its user visits an address.
    Url,
    /// An answer of its model.
    Sampling,
    /// An answer of its model, which may use tools on the way.
    SamplingTools,
    /// The folders that it works in.
    Roots,
}

impl AskKind {
    /// The capabilities that a client declares for it, as the protocol writes them.
    #[must_use]
    pub fn required(self) -> Value {
        match self {
            Self::Form => json!({"elicitation": {"form": {}}}),
            Self::Url => json!({"elicitation": {"url": {}}}),
            Self::Sampling => json!({"sampling": {}}),
            Self::SamplingTools => json!({"sampling": {"tools": {}}}),
            Self::Roots => json!({"roots": {}}),
        }
    }
}

impl fmt::Display for AskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "to fill in a form (`elicitation`)",
            Self::Url => "to visit an address (`elicitation.url`)",
            Self::Sampling => "for an answer of its model (`sampling`)",
            Self::SamplingTools => "for an answer of its model with tools (`sampling.tools`)",
            Self::Roots => "for its folders (`roots`)",
        })
    }
}

/// Who the client of a call says it is, and what it can be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientInfo {
    /// The name it gives itself: a claim. None where it gives none, or one that cannot be shown as it is, since it is longer
    /// than 100 characters or has control characters or spaces in the wrong places.
    pub name: Option<String>,
    /// Who it has proved to be: the label of a token or of another authentication, and never a secret.
    pub principal: Option<String>,
    /// Whether the connection itself speaks for it: the user started it, or it has proved who it is.
    pub vouched: bool,
    /// Its user can fill in forms.
    pub forms: bool,
    /// Its user can be sent to an address.
    pub urls: bool,
    /// Its model can be asked.
    pub sampling: bool,
    /// Its model can use tools of the question.
    pub sampling_tools: bool,
    /// It has folders to tell of.
    pub roots: bool,
}

impl ClientInfo {
    /// Whether it can be asked this.
    #[must_use]
    pub fn can(&self, kind: AskKind) -> bool {
        match kind {
            AskKind::Form => self.forms,
            AskKind::Url => self.urls,
            AskKind::Sampling => self.sampling,
            AskKind::SamplingTools => self.sampling_tools,
            AskKind::Roots => self.roots,
        }
    }
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client did not declare that it can be asked this. A tool that fails with this message fails for that reason, and
    /// a client of 2026-07-28 is then told by a protocol error which capability is missing.
    #[error("the client cannot be asked {0}")]
    Unsupported(AskKind),
    /// The client has gone, or never listened.
    #[error("the client went before it answered")]
    Closed,
    /// The client did not answer in time.
    #[error("the client was asked and did not answer in time")]
    TimedOut,
    /// The call has waited for its client as long as one call may, [`ASK_LIMIT`](super::ASK_LIMIT).
    #[error(
        "the call has waited {} minutes in all for answers of its client, and can ask it nothing more",
        super::ASK_LIMIT.as_secs() / 60
    )]
    Exhausted,
    /// As many calls as may do so wait for their clients already.
    #[error(
        "too many calls wait for their clients' answers here; answer or cancel one of them, or try again in {} seconds",
        .retry_after.as_secs()
    )]
    Busy {
        /// When the oldest of them is given up at the latest.
        retry_after: Duration,
    },
    /// The question cannot be put, or the answer is not one to it.
    #[error("{0}")]
    Invalid(String),
    /// The client answered that it will not, or cannot.
    #[error("the client refused to answer: {message} (code {code})")]
    Refused {
        /// The JSON-RPC error code.
        code: i64,
        /// The client's message.
        message: String,
    },
}

impl From<AskError> for ToolError {
    fn from(error: AskError) -> Self {
        Self::new(error.to_string())
    }
}

/// One question to the client, in the protocol's words.
///
/// Made of an [`Elicitation`], a [`Sampling`] or [`ClientRequest::roots`].
#[derive(Debug, Clone, PartialEq)]
pub struct ClientRequest {
    kind: AskKind,
    key: Option<String>,
    params: JsonObject,
    fresh: bool,
}

impl ClientRequest {
    /// Asks for the folders that the client works in.
    #[must_use]
    pub fn roots() -> Self {
        Self::new(AskKind::Roots, Map::new())
    }

    fn new(kind: AskKind, params: JsonObject) -> Self {
        Self { kind, key: None, params, fresh: false }
    }

    /// Names the question. Where a client answers by repeating its call (2026-07-28), this is the answer's key, and it is
    /// made up where none is given.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Takes no answer that came before the question was put.
    #[must_use]
    pub(crate) fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    /// The same, with what its message becomes.
    pub(crate) fn reworded(mut self, reword: impl FnOnce(&str) -> String) -> Self {
        if let Some(Value::String(message)) = self.params.get_mut("message") {
            *message = reword(message);
        }
        self
    }

    /// What is asked.
    #[must_use]
    pub fn kind(&self) -> AskKind {
        self.kind
    }

    /// The question's name, where it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Whether an answer counts that was given before the question was put.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// The protocol's method.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self.kind {
            AskKind::Form | AskKind::Url => "elicitation/create",
            AskKind::Sampling | AskKind::SamplingTools => "sampling/createMessage",
            AskKind::Roots => "roots/list",
        }
    }

    /// The protocol's parameters.
    #[must_use]
    pub fn params(&self) -> &JsonObject {
        &self.params
    }

    /// Reads a client's result as the answer to this question.
    ///
    /// # Errors
    ///
    /// What is wrong with it, where it is no answer.
    pub fn read(&self, result: &Value) -> Result<ClientAnswer, AskError> {
        let wrong = |what: &str| {
            let what = crate::text::one_line(what, 500);
            AskError::Invalid(format!("the client's answer to `{}` cannot be used: {what}", self.method()))
        };
        match self.kind {
            AskKind::Form => {
                let answer = match action(result).map_err(wrong)? {
                    Elicited::Declined => Elicited::Declined,
                    Elicited::Cancelled => Elicited::Cancelled,
                    Elicited::Accepted(()) => {
                        let content = match result.get("content") {
                            None | Some(Value::Null) => Map::new(),
                            Some(Value::Object(content)) => content.clone(),
                            Some(_) => return Err(wrong("`content` is not an object")),
                        };
                        let schema = self.params.get("requestedSchema").unwrap_or(&Value::Null);
                        let content = Value::Object(content);
                        form::validate(schema, &content).map_err(|error| wrong(&error))?;
                        match content {
                            Value::Object(content) => Elicited::Accepted(content),
                            _ => return Err(wrong("`content` is not an object")),
                        }
                    }
                };
                Ok(ClientAnswer::Form(answer))
            }
            AskKind::Url => Ok(ClientAnswer::Url(action(result).map_err(wrong)?)),
            AskKind::Sampling | AskKind::SamplingTools => match result {
                Value::Object(message)
                    if message.contains_key("content") && message.contains_key("model") =>
                {
                    Ok(ClientAnswer::Sampled(Sampled(message.clone())))
                }
                _ => Err(wrong("it is no message of a model")),
            },
            AskKind::Roots => {
                let roots = result.get("roots").and_then(Value::as_array);
                let roots = roots.ok_or_else(|| wrong("it has no list of `roots`"))?;
                let roots = roots.iter().map(Root::read).collect::<Option<Vec<_>>>();
                Ok(ClientAnswer::Roots(roots.ok_or_else(|| wrong("one of the `roots` has no `uri`"))?))
            }
        }
    }
}

fn action(result: &Value) -> Result<Elicited<()>, &'static str> {
    match result.get("action").and_then(Value::as_str) {
        Some("accept") => Ok(Elicited::Accepted(())),
        Some("decline") => Ok(Elicited::Declined),
        Some("cancel") => Ok(Elicited::Cancelled),
        _ => Err("its `action` is none of `accept`, `decline` and `cancel`"),
    }
}

/// The answer to one question.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ClientAnswer {
    /// To a form.
    Form(Elicited<JsonObject>),
    /// To an address. `Accepted` says that the user agreed to go there, not that anything happened there.
    Url(Elicited<()>),
    /// To a question for the model.
    Sampled(Sampled),
    /// To the question for folders.
    Roots(Vec<Root>),
}

/// What a user made of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elicited<T> {
    /// They answered.
    Accepted(T),
    /// They said no.
    Declined,
    /// They closed it without a choice.
    Cancelled,
}

impl<T> Elicited<T> {
    /// The answer, where there is one.
    #[must_use]
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(answer) => Some(answer),
            Self::Declined | Self::Cancelled => None,
        }
    }
}

/// A question to the client's user (MCP, client features, elicitation).
///
/// ```
/// use aster_runtime::tool::Elicitation;
/// use serde_json::json;
///
/// let question = Elicitation::form(
///     "Which branch?",
///     json!({
///         "type": "object",
///         "properties": {"branch": {"type": "string", "enum": ["main", "next"], "default": "main"}},
///     }),
/// )?;
/// # let _ = question;
/// # Ok::<(), aster_runtime::tool::AskError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation(ClientRequest);

impl Elicitation {
    /// Asks for what `schema` describes: an object of texts, numbers, truth values and choices, and nothing inside them.
    ///
    /// # Errors
    ///
    /// [`AskError::Invalid`] where the schema is no such form.
    pub fn form(message: impl Into<String>, schema: Value) -> Result<Self, AskError> {
        form::check(&schema).map_err(|error| AskError::Invalid(format!("no form can ask this: {error}")))?;
        let params = Map::from_iter([
            ("message".to_owned(), Value::String(message.into())),
            ("requestedSchema".to_owned(), schema),
        ]);
        Ok(Self(ClientRequest::new(AskKind::Form, params)))
    }

    /// Asks for a value of this type, a struct of texts, numbers, `bool`s, enums without data, and lists of these.
    ///
    /// # Errors
    ///
    /// [`AskError::Invalid`] where the type is more than a form can ask.
    pub fn of<T: JsonSchema>(message: impl Into<String>) -> Result<Self, AskError> {
        let schema = form::of(crate::schema::form::<T>()).map_err(|error| {
            AskError::Invalid(format!("no form can ask for `{}`: {error}", T::schema_name()))
        })?;
        Self::form(message, schema)
    }

    /// Sends the user to an address, for what must not pass through the client, such as a password. `id` is what the
    /// server knows the errand by.
    #[must_use]
    pub fn url(message: impl Into<String>, url: impl Into<String>, id: impl Into<String>) -> Self {
        let params = Map::from_iter([
            ("mode".to_owned(), "url".into()),
            ("message".to_owned(), Value::String(message.into())),
            ("url".to_owned(), Value::String(url.into())),
            ("elicitationId".to_owned(), Value::String(id.into())),
        ]);
        Self(ClientRequest::new(AskKind::Url, params))
    }

    /// Names the question; see [`ClientRequest::key`].
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        Self(self.0.key(key))
    }
}

impl From<Elicitation> for ClientRequest {
    fn from(elicitation: Elicitation) -> Self {
        elicitation.0
    }
}

/// A question to the client's model (MCP, client features, sampling).
///
/// ```
/// use aster_runtime::tool::Sampling;
///
/// let question = Sampling::new(200).user("What is the capital of France?").system("Answer in one word.");
/// # let _ = question;
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling(ClientRequest);

impl Sampling {
    /// A question without messages yet, whose answer may take so many tokens.
    #[must_use]
    pub fn new(max_tokens: u32) -> Self {
        let params = json!({"messages": [], "maxTokens": max_tokens});
        Self::from_params(params.as_object().cloned().unwrap_or_default())
    }

    /// A question with these parameters of `sampling/createMessage`.
    #[must_use]
    pub fn from_params(params: JsonObject) -> Self {
        let tools = params.contains_key("tools") || params.contains_key("toolChoice");
        let kind = if tools { AskKind::SamplingTools } else { AskKind::Sampling };
        Self(ClientRequest::new(kind, params))
    }

    /// Adds a message of the user.
    #[must_use]
    pub fn user(self, text: impl Into<String>) -> Self {
        self.message("user", text.into())
    }

    /// Adds a message of the model.
    #[must_use]
    pub fn assistant(self, text: impl Into<String>) -> Self {
        self.message("assistant", text.into())
    }

    fn message(mut self, role: &str, text: String) -> Self {
        let message = json!({"role": role, "content": {"type": "text", "text": text}});
        match self.0.params.entry("messages").or_insert_with(|| json!([])) {
            Value::Array(messages) => messages.push(message),
            other => *other = json!([message]),
        }
        self
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.0.params.insert("systemPrompt".to_owned(), Value::String(text.into()));
        self
    }

    /// Names the question; see [`ClientRequest::key`].
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        Self(self.0.key(key))
    }
}

impl From<Sampling> for ClientRequest {
    fn from(sampling: Sampling) -> Self {
        sampling.0
    }
}

/// What a client's model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled(JsonObject);

impl Sampled {
    /// The texts of the answer, a line each.
    #[must_use]
    pub fn text(&self) -> String {
        let blocks = match self.0.get("content") {
            Some(Value::Array(blocks)) => blocks.iter().collect(),
            other => Vec::from_iter(other),
        };
        let texts = blocks.into_iter().filter_map(|block| block.get("text").and_then(Value::as_str));
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The model that answered, as the client names it.
    #[must_use]
    pub fn model(&self) -> &str {
        self.0.get("model").and_then(Value::as_str).unwrap_or_default()
    }

    /// Why it stopped, where the client says so.
    #[must_use]
    pub fn stop_reason(&self) -> Option<&str> {
        self.0.get("stopReason").and_then(Value::as_str)
    }

    /// The whole result.
    #[must_use]
    pub fn as_object(&self) -> &JsonObject {
        &self.0
    }
}

/// A folder that a client works in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Root {
    /// Its address, `file://…`.
    pub uri: String,
    /// Its name, where it has one.
    pub name: Option<String>,
}

impl Root {
    fn read(value: &Value) -> Option<Self> {
        let uri = value.get("uri")?.as_str()?.to_owned();
        Some(Self { uri, name: value.get("name").and_then(Value::as_str).map(str::to_owned) })
    }
}

/// A form's answer as the type that it was asked for.
pub(super) fn typed<T: DeserializeOwned>(answer: Elicited<JsonObject>) -> Result<Elicited<T>, AskError> {
    Ok(match answer {
        Elicited::Accepted(content) => {
            Elicited::Accepted(serde_json::from_value(Value::Object(content)).map_err(|error| {
                let error = crate::text::one_line(&error.to_string(), 500);
                AskError::Invalid(format!("the client's answer to the form cannot be used: {error}"))
            })?)
        }
        Elicited::Declined => Elicited::Declined,
        Elicited::Cancelled => Elicited::Cancelled,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_answer_is_refused() {
        let schema = json!({
            "type": "object",
            "properties": {"email": {"type": "string", "format": "email"}, "age": {"type": "integer", "minimum": 0}},
            "required": ["email"],
        });
        let form = ClientRequest::from(Elicitation::form("Who?", schema).unwrap());
        let roots = ClientRequest::roots();
        let sampling = ClientRequest::from(Sampling::new(5).user("a"));
        for (request, result) in [
            (&form, json!(12345)),
            (&form, json!({})),
            (&form, json!({"action": "yes"})),
            (&form, json!({"action": "accept"})),
            (&form, json!({"action": "accept", "content": []})),
            (&form, json!({"action": "accept", "content": {"email": "nobody"}})),
            (&form, json!({"action": "accept", "content": {"email": "a@b.example", "age": -1}})),
            (&roots, json!({"action": "accept"})),
            (&roots, json!({"roots": [{"name": "a"}]})),
            (&sampling, json!({"roots": []})),
        ] {
            let error = request.read(&result).unwrap_err();
            assert!(
                matches!(&error, AskError::Invalid(told) if !told.contains("nobody")),
                "{result}: {error}"
            );
        }
        let accepted = json!({"action": "accept", "content": {"email": "a@b.example", "age": 3}});
        assert!(
            matches!(form.read(&accepted), Ok(ClientAnswer::Form(Elicited::Accepted(content))) if content["age"] == 3)
        );
        // What was typed before a no counts for nothing.
        let declined = json!({"action": "decline", "content": {"age": "x"}});
        assert_eq!(form.read(&declined), Ok(ClientAnswer::Form(Elicited::Declined)));
        let folders = json!({"roots": [{"uri": "file:///a"}]});
        assert!(
            matches!(roots.read(&folders), Ok(ClientAnswer::Roots(roots)) if roots[0].uri == "file:///a")
        );
    }
}
