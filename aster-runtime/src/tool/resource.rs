//! What a resource gives back.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{IntoToolError, Json, JsonObject, ToolError, ToolOutput};

/// The code of the error that says that a template matches, but there is no such resource.
pub const NOT_FOUND: &str = "resource_not_found";

/// One part of a resource's contents (MCP `TextResourceContents`, `BlobResourceContents`). Its URI is the one that was
/// read and its type the resource's, unless it says otherwise.
///
/// ```
/// use aster_runtime::{ResourceContents, mcp_resource};
///
/// /// The icon in both of its forms.
/// #[mcp_resource(uri = "app://icon", tier = Standard)]
/// fn icon() -> Vec<ResourceContents> {
///     vec![
///         ResourceContents::text("<svg/>").mime_type("image/svg+xml"),
///         ResourceContents::bytes(b"\x89PNG").uri("app://icon.png").mime_type("image/png"),
///     ]
/// }
/// # fn main() {}
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceContents {
    uri: Option<String>,
    mime_type: Option<String>,
    /// `text` or `blob`, and its value.
    body: (&'static str, String),
}

impl ResourceContents {
    /// Text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { uri: None, mime_type: None, body: ("text", text.into()) }
    }

    /// Bytes.
    #[must_use]
    pub fn bytes(data: impl AsRef<[u8]>) -> Self {
        Self { uri: None, mime_type: None, body: ("blob", STANDARD.encode(data)) }
    }

    /// The same, of this type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// The same, under a URI of its own: a part of what was read.
    #[must_use]
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// As JSON, in the specification's order of fields; the type is `mime_type` where it has none.
    pub(crate) fn into_value(self, mime_type: Option<&str>) -> Value {
        let mut value = JsonObject::new();
        value.extend(self.uri.map(|uri| ("uri".to_owned(), json!(uri))));
        let mime_type = self.mime_type.as_deref().or(mime_type);
        value.extend(mime_type.map(|mime_type| ("mimeType".to_owned(), json!(mime_type))));
        value.insert(self.body.0.to_owned(), json!(self.body.1));
        Value::Object(value)
    }
}

/// What a resource may return. Implemented for text, which may be borrowed from the server, `Vec<u8>`, [`Json`], which is
/// text of the type `application/json`, [`ResourceContents`] and several of them, `Option` of these, where `None` says that
/// there is no such resource, and `Result` of these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned from a resource",
    label = "not the contents of a resource",
    note = "return text, `Vec<u8>`, `ResourceContents`, or a serialisable value as `Json<{Self}>`",
    note = "[A0304] see docs/errors/A0304.md"
)]
pub trait IntoResource {
    /// The contents.
    ///
    /// # Errors
    ///
    /// Where the resource cannot be read, or its value cannot be written as JSON.
    fn into_contents(self) -> Result<Vec<ResourceContents>, ToolError>;
}

impl IntoResource for ResourceContents {
    fn into_contents(self) -> Result<Vec<ResourceContents>, ToolError> {
        Ok(vec![self])
    }
}

impl IntoResource for Vec<ResourceContents> {
    fn into_contents(self) -> Result<Vec<ResourceContents>, ToolError> {
        Ok(self)
    }
}

impl IntoResource for Vec<u8> {
    fn into_contents(self) -> Result<Vec<ResourceContents>, ToolError> {
        Ok(vec![ResourceContents::bytes(self)])
    }
}

impl IntoResource for &[u8] {
    fn into_contents(self) -> Result<Vec<ResourceContents>, ToolError> {
        Ok(vec![ResourceContents::bytes(self)])
    }
}

impl IntoResource for String {
    fn into_contents(self) -> Result<Vec<ResourceContents>, ToolError> {
        Ok(vec![ResourceContents::text(self)])
    }
}

impl IntoResource for &str {
    fn into_contents(self) -> Result<Vec<ResourceContents>, ToolError> {
        Ok(vec![ResourceContents::text(self)])
    }
}

impl IntoResource for Cow<'_, str> {
    fn into_contents(self) -> Result<Vec<ResourceContents>, ToolError> {
        Ok(vec![ResourceContents::text(self)])
    }
}

impl<T: ToolOutput> IntoResource for Json<T> {
    fn into_contents(self) -> Result<Vec<ResourceContents>, ToolError> {
        let text = serde_json::to_string(&self.0)
            .map_err(|error| ToolError::new(format!("the resource cannot be written as JSON: {error}")))?;
        Ok(vec![ResourceContents::text(text).mime_type("application/json")])
    }
}

impl<T: IntoResource> IntoResource for Option<T> {
    fn into_contents(self) -> Result<Vec<ResourceContents>, ToolError> {
        let missing = || ToolError::new("there is no such resource").with_code(NOT_FOUND);
        self.ok_or_else(missing)?.into_contents()
    }
}

impl<T: IntoResource, E: IntoToolError> IntoResource for Result<T, E> {
    fn into_contents(self) -> Result<Vec<ResourceContents>, ToolError> {
        self.map_err(IntoToolError::into_tool_error)?.into_contents()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(resource: impl IntoResource) -> Value {
        let contents = resource.into_contents().unwrap();
        contents.into_iter().map(|contents| contents.into_value(Some("text/plain"))).collect()
    }

    #[test]
    fn what_becomes_contents() {
        assert_eq!(contents("a"), json!([{"mimeType": "text/plain", "text": "a"}]));
        assert_eq!(contents(vec![0_u8, 1]), json!([{"mimeType": "text/plain", "blob": "AAE="}]));
        assert_eq!(contents(Json([1])), json!([{"mimeType": "application/json", "text": "[1]"}]));
        let part = ResourceContents::text("b").uri("x:b").mime_type("text/html");
        assert_eq!(contents(vec![part]), json!([{"uri": "x:b", "mimeType": "text/html", "text": "b"}]));
        let missing = None::<String>.into_contents().unwrap_err();
        assert_eq!(missing.code(), Some(NOT_FOUND));
        let failed = Err::<String, _>(std::io::Error::other("no disk")).into_contents().unwrap_err();
        assert_eq!(failed.message(), "no disk");
    }
}
