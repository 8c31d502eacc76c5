//! What a tool gives back, as the MCP result that it becomes.
//!
//! A result is kept as JSON and not as closed types: what an external server sends passes through unchanged, unknown
//! fields and all.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::JsonObject;

/// One piece of a result: text, image, audio or resource (MCP `ContentBlock`).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Content(Value);

impl Content {
    /// Text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self(json!({"type": "text", "text": text.into()}))
    }

    /// The content block as JSON.
    #[must_use]
    pub fn as_value(&self) -> &Value {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Content {
    fn from(text: T) -> Self {
        Self::text(text)
    }
}

/// An image as a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The encoded bytes.
    pub data: Vec<u8>,
    /// For example `image/png`.
    pub mime_type: String,
}

impl Image {
    /// An image of this type from its encoded bytes.
    #[must_use]
    pub fn new(mime_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self { data: data.into(), mime_type: mime_type.into() }
    }
}

impl From<Image> for Content {
    fn from(image: Image) -> Self {
        Self(json!({"type": "image", "data": STANDARD.encode(image.data), "mimeType": image.mime_type}))
    }
}

/// A sound as a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audio {
    /// The encoded bytes.
    pub data: Vec<u8>,
    /// For example `audio/wav`.
    pub mime_type: String,
}

impl Audio {
    /// A sound of this type from its encoded bytes.
    #[must_use]
    pub fn new(mime_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self { data: data.into(), mime_type: mime_type.into() }
    }
}

impl From<Audio> for Content {
    fn from(audio: Audio) -> Self {
        Self(json!({"type": "audio", "data": STANDARD.encode(audio.data), "mimeType": audio.mime_type}))
    }
}

/// A resource as a result: its contents, or a link to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource(Value);

impl Resource {
    /// A text with its URI and type.
    #[must_use]
    pub fn text(uri: impl Into<String>, mime_type: impl Into<String>, text: impl Into<String>) -> Self {
        Self(json!({"type": "resource", "resource": {
            "uri": uri.into(), "mimeType": mime_type.into(), "text": text.into(),
        }}))
    }

    /// Bytes with their URI and type.
    #[must_use]
    pub fn bytes(uri: impl Into<String>, mime_type: impl Into<String>, data: impl AsRef<[u8]>) -> Self {
        Self(json!({"type": "resource", "resource": {
            "uri": uri.into(), "mimeType": mime_type.into(), "blob": STANDARD.encode(data),
        }}))
    }

    /// A link that the client may follow.
    #[must_use]
    pub fn link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self(json!({"type": "resource_link", "uri": uri.into(), "name": name.into()}))
    }
}

impl From<Resource> for Content {
    fn from(resource: Resource) -> Self {
        Self(resource.0)
    }
}

/// Any serialisable value as a structured result, with an output schema. A value that is not an object is wrapped as
/// `{"result": …}`, since MCP clients before 2026-07-28 accept objects only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// The result of one call, as the JSON of MCP's `CallToolResult`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult(JsonObject);

impl ToolResult {
    /// These content blocks.
    #[must_use]
    pub fn content(content: impl IntoIterator<Item = Content>) -> Self {
        let content = content.into_iter().map(|block| block.0).collect();
        Self(Map::from_iter([("content".to_owned(), Value::Array(content))]))
    }

    /// One text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::content([Content::text(text)])
    }

    /// Structured content, and the same as text for clients that do not read it.
    #[must_use]
    pub fn structured(value: Value) -> Self {
        let mut result = Self::text(value.to_string());
        result.0.insert("structuredContent".to_owned(), value);
        result
    }

    /// What a server answered, taken as it is. `null` or something that is no object becomes text.
    #[must_use]
    pub fn from_value(value: Value) -> Self {
        match value {
            Value::Object(object) => Self(object),
            Value::String(text) => Self::text(text),
            other => Self::text(other.to_string()),
        }
    }

    /// How many bytes it has as JSON.
    pub(crate) fn size(&self) -> usize {
        let mut bytes = Count(0);
        // It only counts, and of JSON everything can be written.
        let _ = serde_json::to_writer(&mut bytes, &self.0);
        bytes.0
    }

    /// The whole result as JSON.
    #[must_use]
    pub fn as_object(&self) -> &JsonObject {
        &self.0
    }

    /// The whole result as JSON.
    #[must_use]
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// The same, with a text block for each of these after its own, where it is the result of a tool.
    pub(crate) fn with_notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        let mut notes = notes.into_iter().map(|note| Content::text(note).0).peekable();
        let of_tool = self.0.contains_key("content") || self.0.contains_key("structuredContent");
        if notes.peek().is_none() || !of_tool {
            return self;
        }
        match self.0.entry("content").or_insert_with(|| Value::Array(Vec::new())) {
            Value::Array(blocks) => blocks.extend(notes),
            other => *other = std::iter::once(other.take()).chain(notes).collect(),
        }
        self
    }

    /// Whether the tool reported a failure.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.0.get("isError") == Some(&Value::Bool(true))
    }

    /// What it says of its failure, where it is one.
    #[cfg(feature = "serve")]
    pub(crate) fn failure(&self) -> Option<String> {
        self.is_error().then(|| self.to_text())
    }

    /// The structured content, where there is any.
    #[must_use]
    pub fn structured_content(&self) -> Option<&Value> {
        self.0.get("structuredContent")
    }

    /// The text blocks, joined by line feeds; other blocks are named by their type.
    #[must_use]
    pub fn to_text(&self) -> String {
        let blocks = match self.0.get("content") {
            Some(Value::Array(blocks)) => blocks.as_slice(),
            Some(Value::String(text)) => return text.clone(),
            _ => &[],
        };
        let lines: Vec<Cow<'_, str>> = blocks
            .iter()
            .map(|block| {
                let of = |key| block.get(key).and_then(Value::as_str);
                let inner = |key| block.pointer(key).and_then(Value::as_str);
                match (of("text").or(inner("/resource/text")), of("type")) {
                    (Some(text), _) => text.into(),
                    (None, Some("resource_link")) => of("uri").unwrap_or("[resource_link]").into(),
                    (None, kind) => {
                        let mime = of("mimeType").or(inner("/resource/mimeType")).unwrap_or("unknown type");
                        format!("[{}, {mime}]", kind.unwrap_or("content")).into()
                    }
                }
            })
            .collect();
        if lines.is_empty() {
            return self.structured_content().map(Value::to_string).unwrap_or_default();
        }
        lines.join("\n")
    }
}

impl From<ToolError> for ToolResult {
    fn from(error: ToolError) -> Self {
        let mut result = Self::text(error.to_string());
        if error.code.is_some() || error.data.is_some() {
            let mut detail = Map::from_iter([("message".to_owned(), Value::String(error.message))]);
            detail.extend(error.code.map(|code| ("code".to_owned(), Value::String(code))));
            detail.extend(error.data.map(|data| ("data".to_owned(), data)));
            result.0.insert("structuredContent".to_owned(), json!({ "error": detail }));
        }
        result.0.insert("isError".to_owned(), Value::Bool(true));
        result
    }
}

/// Why a tool failed, for the model: a message, and where it helps a code and data. It becomes a result with
/// `isError`, never a protocol error.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolError {
    message: String,
    code: Option<String>,
    data: Option<Value>,
}

impl ToolError {
    /// A failure with this message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: None, data: None }
    }

    /// The same, with a code for programs.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// The same, with details for programs.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The code, where there is one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ToolError {}

/// What a tool may return. Implemented for text, which may be borrowed from the server, numbers, `bool`, `()`, [`Json`],
/// [`Image`], [`Audio`], [`Resource`], [`Content`], `Vec<Content>`, [`ToolResult`], and `Result` of these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned from a tool",
    label = "not a tool result",
    note = "wrap a serialisable value: `Json(value)`, and write `Json<{Self}>` as the return type",
    note = "[A0301] see docs/errors/A0301.md"
)]
pub trait IntoToolResult {
    /// The result, or the error that becomes one.
    ///
    /// # Errors
    ///
    /// Where the tool itself failed, or its value cannot be written as JSON.
    fn into_tool_result(self) -> Result<ToolResult, ToolError>;

    /// The JSON Schema of the structured content, where the type has one.
    #[must_use]
    fn output_schema() -> Option<Value> {
        None
    }
}

/// What a tool may fail with: every `std::error::Error`, text, and boxed errors. The model is shown the messages of
/// the whole chain of sources.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be reported to the model",
    label = "not a tool error",
    note = "implement `std::error::Error` for it, or `IntoToolError`, or convert it: `.map_err(|error| ToolError::new(…))`; a \
            boxed error is `Box<dyn Error + Send + Sync>`",
    note = "[A0302] see docs/errors/A0302.md"
)]
pub trait IntoToolError {
    /// The error as the model will read it.
    fn into_tool_error(self) -> ToolError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<Box<dyn Error + Send + Sync>>> IntoToolError for E {
    fn into_tool_error(self) -> ToolError {
        match self.into().downcast::<ToolError>() {
            Ok(error) => *error,
            Err(error) => ToolError::new(chain(&*error)),
        }
    }
}

/// The messages of an error and its sources, each once: many errors already print their source.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let message = source.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        next = source.source();
    }
    text
}

impl<T: IntoToolResult, E: IntoToolError> IntoToolResult for Result<T, E> {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        self.map_err(IntoToolError::into_tool_error)?.into_tool_result()
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }
}

/// What [`Json`] can carry: every type that is `serde::Serialize` and `schemars::JsonSchema`. It is implemented for
/// these, so that a type which lacks both derives is one error.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned as JSON",
    label = "cannot be written as JSON, or has no schema",
    note = "derive both on your type: `#[derive(serde::Serialize, schemars::JsonSchema)]`",
    note = "[A0303] see docs/errors/A0303.md"
)]
pub trait ToolOutput: Serialize + JsonSchema + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema + 'static> ToolOutput for T {}

impl<T: ToolOutput> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        let value = serde_json::to_value(self.0).map_err(|error| {
            ToolError::new(format!("the tool's result cannot be written as JSON: {error}"))
        })?;
        // The schema, not the value, decides: one tool must not answer now wrapped, now bare.
        let wrap = crate::schema::is_wrapped::<T>();
        Ok(ToolResult::structured(if wrap { json!({ "result": value }) } else { value }))
    }

    fn output_schema() -> Option<Value> {
        Some(crate::schema::output::<T>())
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text("done"))
    }
}

impl IntoToolResult for ToolResult {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(self)
    }
}

impl IntoToolResult for Vec<Content> {
    fn into_tool_result(self) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::content(self))
    }
}

macro_rules! as_text {
    ($($type:ty),*) => {$(
        impl IntoToolResult for $type {
            fn into_tool_result(self) -> Result<ToolResult, ToolError> {
                Ok(ToolResult::text(self.to_string()))
            }
        }
    )*};
}
as_text!(String, &str, Cow<'_, str>, bool, char);
as_text!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64);

macro_rules! as_content {
    ($($type:ty),*) => {$(
        impl IntoToolResult for $type {
            fn into_tool_result(self) -> Result<ToolResult, ToolError> {
                Ok(ToolResult::content([self.into()]))
            }
        }
    )*};
}
as_content!(Content, Image, Audio, Resource);

/// Counts what is written: a result may have megabytes, of which only the number is kept.
struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the page")]
    struct Outer(#[source] io::Error);

    #[test]
    fn an_error_shows_its_chain_and_keeps_its_code() {
        let error = Outer(io::Error::other("connection reset")).into_tool_error();
        assert_eq!(error.message(), "cannot read the page: connection reset");
        assert_eq!("plain".into_tool_error().message(), "plain");

        let coded = ToolError::new("no").with_code("quota");
        assert_eq!(coded.clone().into_tool_error(), coded);
        let result = ToolResult::from(coded);
        assert!(result.is_error());
        assert_eq!(result.structured_content(), Some(&json!({"error": {"message": "no", "code": "quota"}})));
    }

    #[test]
    fn notes_stand_with_whatever_a_tool_answered() {
        let noted =
            |value: Value| ToolResult::from_value(value).with_notes(["a note".to_owned()]).into_value();
        let note = json!({"type": "text", "text": "a note"});
        assert_eq!(
            noted(json!({"content": [{"type": "text", "text": "x"}]})),
            json!({"content": [{"type": "text", "text": "x"}, note]})
        );
        assert_eq!(
            noted(json!({"structuredContent": {"a": 1}})),
            json!({"structuredContent": {"a": 1}, "content": [note]})
        );
        assert_eq!(noted(json!({"content": "x"})), json!({"content": ["x", note]}));
        assert_eq!(noted(json!({"contents": []})), json!({"contents": []}));
    }

    #[test]
    fn json_wraps_what_is_no_object() {
        let list = Json(vec![1, 2]).into_tool_result().unwrap();
        assert_eq!(list.structured_content(), Some(&json!({"result": [1, 2]})));
        let schema = <Json<Vec<i32>>>::output_schema().unwrap();
        assert_eq!(schema["properties"]["result"]["type"], "array");
        assert_eq!(schema["type"], "object");
    }

    #[test]
    fn text_of_mixed_content() {
        let result = ToolResult::content([
            "a".into(),
            Image::new("image/png", [1]).into(),
            Resource::text("file:///x", "text/plain", "b").into(),
            Resource::link("file:///y", "y").into(),
        ]);
        assert_eq!(result.to_text(), "a\n[image, image/png]\nb\nfile:///y");
        assert_eq!(ToolResult::from_value(json!({"structuredContent": {"n": 1}})).to_text(), r#"{"n":1}"#);
    }
}
