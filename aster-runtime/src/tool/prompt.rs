//! What a prompt gives back, and what may be suggested for an argument.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{Content, IntoToolError, ToolError};

/// How many values of a completion are looked at.
pub(crate) const MAX_CANDIDATES: usize = 10_000;

/// One message of a prompt (MCP `PromptMessage`): text, an [`Image`](super::Image), [`Audio`](super::Audio) or a
/// [`Resource`](super::Resource).
///
/// ```
/// use aster_runtime::{PromptMessage, mcp_prompt};
///
/// /// Asks for a review.
/// #[mcp_prompt(tier = Standard)]
/// fn review(
///     /// What to review.
///     code: String,
/// ) -> Vec<PromptMessage> {
///     vec![
///         PromptMessage::user(format!("Review this:\n{code}")),
///         PromptMessage::assistant("I look for mistakes first, then for style."),
///     ]
/// }
/// # fn main() {}
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage(Value);

impl PromptMessage {
    /// A message of the user.
    #[must_use]
    pub fn user(content: impl Into<Content>) -> Self {
        Self(json!({"role": "user", "content": content.into()}))
    }

    /// A message of the assistant.
    #[must_use]
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self(json!({"role": "assistant", "content": content.into()}))
    }

    pub(crate) fn into_value(self) -> Value {
        self.0
    }
}

/// What a prompt may return. Implemented for text, which is one message of the user, [`PromptMessage`] and several of them,
/// and `Result` of these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned from a prompt",
    label = "not the messages of a prompt",
    note = "return text, which is a message of the user, or `Vec<PromptMessage>`",
    note = "[A0305] see docs/errors/A0305.md"
)]
pub trait IntoPrompt {
    /// The messages.
    ///
    /// # Errors
    ///
    /// Where the prompt cannot be made.
    fn into_messages(self) -> Result<Vec<PromptMessage>, ToolError>;
}

impl IntoPrompt for PromptMessage {
    fn into_messages(self) -> Result<Vec<PromptMessage>, ToolError> {
        Ok(vec![self])
    }
}

impl IntoPrompt for Vec<PromptMessage> {
    fn into_messages(self) -> Result<Vec<PromptMessage>, ToolError> {
        Ok(self)
    }
}

impl IntoPrompt for String {
    fn into_messages(self) -> Result<Vec<PromptMessage>, ToolError> {
        Ok(vec![PromptMessage::user(self)])
    }
}

impl IntoPrompt for &str {
    fn into_messages(self) -> Result<Vec<PromptMessage>, ToolError> {
        Ok(vec![PromptMessage::user(self)])
    }
}

impl IntoPrompt for Cow<'_, str> {
    fn into_messages(self) -> Result<Vec<PromptMessage>, ToolError> {
        Ok(vec![PromptMessage::user(self)])
    }
}

impl<T: IntoPrompt, E: IntoToolError> IntoPrompt for Result<T, E> {
    fn into_messages(self) -> Result<Vec<PromptMessage>, ToolError> {
        self.map_err(IntoToolError::into_tool_error)?.into_messages()
    }
}

/// What `#[arg(complete = …)]` may give for what has been typed: anything that iterates over text. The runtime keeps what
/// begins with what was typed, and no more than the protocol allows.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no list of suggestions",
    label = "does not iterate over text",
    note = "`#[arg(complete = path)]` takes a function from `&str` to a list of texts, such as `fn(&str) -> Vec<String>`",
    note = "[A0216] see docs/errors/A0216.md"
)]
pub trait Suggestions {
    /// The values.
    fn into_values(self) -> Vec<String>;
}

#[diagnostic::do_not_recommend]
impl<I: IntoIterator<Item: Into<String>>> Suggestions for I {
    fn into_values(self) -> Vec<String> {
        self.into_iter().take(MAX_CANDIDATES).map(Into::into).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Image;

    #[test]
    fn what_becomes_messages() {
        let messages = |prompt: Vec<PromptMessage>| -> Value {
            prompt.into_iter().map(PromptMessage::into_value).collect()
        };
        assert_eq!(
            messages("hello".into_messages().unwrap()),
            json!([{"role": "user", "content": {"type": "text", "text": "hello"}}])
        );
        let image = PromptMessage::assistant(Image::new("image/png", [0_u8]));
        assert_eq!(
            messages(image.into_messages().unwrap()),
            json!([{"role": "assistant", "content": {"type": "image", "data": "AA==", "mimeType": "image/png"}}])
        );
    }
}
