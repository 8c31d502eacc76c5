//! The fixtures of the official MCP conformance suite, as one server made with Aster's macros.
//!
//! ```text
//! cargo run --example conformance_server                            # speaks MCP on standard input and output
//! cargo run --example conformance_server -- --http 127.0.0.1:8080   # or over HTTP, and says where
//! ```
//!
//! Nothing here is of use but as an example of every kind of thing that a server can publish, and of every question that
//! it can ask. `tests/conformance.rs` runs the suite against it.
#![expect(clippy::print_stdout, reason = "who starts the example reads where it listens")]

use std::error::Error;

use aster_runtime::serve::{self, Shape, http};
use aster_runtime::{Host, NativeCatalogue, Profile, catalogue, mcp_server};
use tokio_util::sync::CancellationToken;

const CATALOGUE: NativeCatalogue = catalogue![conformance::SERVER];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let host = Host::builder().catalogue(CATALOGUE).build().await?;
    let profile = Profile::new("conformance");
    // The suite knows everything by its bare name.
    let shape = Shape::Server("conformance".to_owned());
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => serve::stdio(host, profile, shape, CancellationToken::new()).await?,
        ["--http", address] => {
            let listener =
                http::bind(host, profile, shape, http::Options::default(), address.parse()?).await?;
            println!("{}", listener.url());
            listener.serve(CancellationToken::new()).await;
        }
        _ => return Err("the one option is `--http ADDRESS`".into()),
    }
    Ok(())
}

/// Fixtures of the MCP conformance suite.
#[mcp_server(name = "conformance")]
mod conformance {
    use aster_runtime::tool::{
        AskError, ClientAnswer, ClientRequest, Elicitation, Elicited, Sampled, Sampling,
    };
    use aster_runtime::{
        Audio, Content, Image, Json, JsonObject, LogLevel, PromptMessage, Resource, ToolContext, ToolError,
        mcp_prompt, mcp_resource, mcp_tool,
    };
    use schemars::JsonSchema;
    use serde::Serialize;
    use serde_json::{Value, json};

    /// A red pixel.
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\
        \0\0\0\x0cIDATx\xdac\xf8\xcf\xc0\0\0\x03\x01\x01\0\xf7\x03AC\0\0\0\0IEND\xaeB`\x82";

    /// One sample of silence.
    const WAV: &[u8] =
        b"RIFF&\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0\x80>\0\0\x02\0\x10\0data\x02\0\0\0\0\0";

    // ── What a tool can return ──

    /// Returns a text.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_simple_text() -> &'static str {
        "This is a simple text response for testing."
    }

    /// Returns an image.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_image_content() -> Image {
        Image::new("image/png", PNG)
    }

    /// Returns a sound.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_audio_content() -> Audio {
        Audio::new("audio/wav", WAV)
    }

    /// Returns a resource with its contents.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_embedded_resource() -> Resource {
        Resource::text("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    }

    /// Returns a text, an image and a resource.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_multiple_content_types() -> Vec<Content> {
        let data = r#"{"test":"data","value":123}"#;
        vec![
            "Multiple content types test:".into(),
            Image::new("image/png", PNG).into(),
            Resource::text("test://mixed-content-resource", "application/json", data).into(),
        ]
    }

    /// Always fails.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_error_handling() -> Result<(), ToolError> {
        Err(ToolError::new("This tool intentionally returns an error for testing"))
    }

    // ── What a tool can report while it runs ──

    /// Writes three messages to the client's log.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_tool_with_logging(ctx: &ToolContext) -> &'static str {
        ctx.log(LogLevel::Info, "Tool execution started");
        ctx.log(LogLevel::Info, "Tool processing data");
        ctx.log(LogLevel::Info, "Tool execution completed");
        "three messages were logged"
    }

    /// Writes a message to the client's log, which a modern client gets only if it asked for messages.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_logging_tool(ctx: &ToolContext) -> &'static str {
        ctx.log(LogLevel::Error, "Nobody asked for this");
        "a message was logged"
    }

    /// Reports its progress at the start, half-way and at the end.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_tool_with_progress(ctx: &ToolContext) -> &'static str {
        for done in [0.0, 50.0, 100.0] {
            ctx.progress(done, Some(100.0), None);
        }
        "progress was reported three times"
    }

    /// Answers on a stream that its client may lose and take up again.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_reconnection() -> &'static str {
        "The answer is kept for a client that comes back"
    }

    // ── What a tool can take ──

    /// On one line and without spaces, as it arrives: byte for byte.
    const SCHEMA: &str = include_str!("conformance_schema.json");

    /// Takes what a schema of its own describes.
    #[mcp_tool(tier = Standard, read_only, schema = SCHEMA)]
    pub(crate) fn json_schema_2020_12_tool(arguments: JsonObject) -> String {
        Value::Object(arguments).to_string()
    }

    /// Takes an argument that a client repeats in a header of its request.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_header(
        /// Where to.
        #[arg(header = "Region")]
        region: String,
    ) -> String {
        format!("to {region}")
    }

    // ── What a tool can ask its client ──

    /// A form without answer ends the call.
    fn accepted(answer: Elicited<JsonObject>) -> Result<JsonObject, ToolError> {
        answer.accepted().ok_or_else(|| ToolError::new("the user did not answer"))
    }

    fn text_form(key: &str, message: &str, property: &str) -> Result<Elicitation, AskError> {
        let schema = json!({
            "type": "object",
            "properties": {property: {"type": "string"}},
            "required": [property],
        });
        Ok(Elicitation::form(message, schema)?.key(key))
    }

    fn name() -> Result<Elicitation, AskError> {
        text_form("user_name", "What is your name?", "name")
    }

    fn capital() -> Sampling {
        Sampling::new(100).user("What is the capital of France?").key("capital_question")
    }

    /// What the user did, and what they wrote.
    fn described(answer: Elicited<JsonObject>) -> String {
        match answer {
            Elicited::Accepted(content) => format!("action=accept, content={}", Value::Object(content)),
            Elicited::Declined => "action=decline".to_owned(),
            Elicited::Cancelled => "action=cancel".to_owned(),
        }
    }

    /// Asks the client's model.
    #[mcp_tool(tier = Standard)]
    pub(crate) async fn test_sampling(
        ctx: &ToolContext,
        /// What to ask.
        prompt: String,
    ) -> Result<String, AskError> {
        Ok(format!("LLM response: {}", ctx.sample(Sampling::new(100).user(prompt)).await?.text()))
    }

    /// Asks the client's user.
    #[mcp_tool(tier = Standard)]
    pub(crate) async fn test_elicitation(
        ctx: &ToolContext,
        /// What to ask.
        message: String,
    ) -> Result<String, AskError> {
        let schema = json!({
            "type": "object",
            "properties": {
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            },
            "required": ["username", "email"],
        });
        Ok(format!("User response: {}", described(ctx.elicit(Elicitation::form(message, schema)?).await?)))
    }

    /// Asks by a form with a default for each kind of value (SEP-1034).
    #[mcp_tool(tier = Standard)]
    pub(crate) async fn test_elicitation_sep1034_defaults(ctx: &ToolContext) -> Result<String, AskError> {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true},
            },
            "required": [],
        });
        let form = Elicitation::form("Please review and update the form fields with defaults", schema)?;
        Ok(format!("Elicitation completed: {}", described(ctx.elicit(form).await?)))
    }

    /// Asks by a form with each kind of choice (SEP-1330).
    #[mcp_tool(tier = Standard)]
    pub(crate) async fn test_elicitation_sep1330_enums(ctx: &ToolContext) -> Result<String, AskError> {
        let titled = json!([
            {"const": "value1", "title": "First Option"},
            {"const": "value2", "title": "Second Option"},
            {"const": "value3", "title": "Third Option"},
        ]);
        let schema = json!({
            "type": "object",
            "properties": {
                "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
                "titledSingle": {"type": "string", "oneOf": titled},
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": {
                    "type": "array",
                    "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
                },
                "titledMulti": {"type": "array", "items": {"anyOf": titled}},
            },
            "required": [],
        });
        let form = Elicitation::form("Please select options from the enum fields", schema)?;
        Ok(format!("Elicitation completed: {}", described(ctx.elicit(form).await?)))
    }

    /// Asks a form while its answer streams.
    #[mcp_tool(tier = Standard)]
    pub(crate) async fn test_streaming_elicitation(ctx: &ToolContext) -> Result<String, AskError> {
        Ok(described(ctx.elicit(text_form("value", "Please provide a value", "value")?).await?))
    }

    /// Needs a client whose model can be asked.
    #[mcp_tool(tier = Standard)]
    pub(crate) async fn test_missing_capability(ctx: &ToolContext) -> Result<String, AskError> {
        Ok(ctx.sample(capital()).await?.text())
    }

    /// Asks for the user's name.
    #[mcp_tool(tier = Standard)]
    pub(crate) async fn test_input_required_result_elicitation(
        ctx: &ToolContext,
    ) -> Result<String, ToolError> {
        let answer = accepted(ctx.elicit(name()?).await?)?;
        Ok(format!("Hello, {}!", answer["name"].as_str().unwrap_or_default()))
    }

    /// Asks the client's model.
    #[mcp_tool(tier = Standard)]
    pub(crate) async fn test_input_required_result_sampling(ctx: &ToolContext) -> Result<String, AskError> {
        Ok(format!("The model says: {}", ctx.sample(capital()).await?.text()))
    }

    /// Asks for the client's folders.
    #[mcp_tool(tier = Standard)]
    pub(crate) async fn test_input_required_result_list_roots(ctx: &ToolContext) -> Result<String, AskError> {
        let roots: Vec<String> = ctx.roots().await?.into_iter().map(|root| root.uri).collect();
        Ok(format!("The roots are {}", roots.join(", ")))
    }

    /// Asks for a confirmation.
    #[mcp_tool(tier = Standard)]
    pub(crate) async fn test_input_required_result_request_state(
        ctx: &ToolContext,
    ) -> Result<String, ToolError> {
        let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
        let form = Elicitation::form("Please confirm", schema)?.key("confirm");
        accepted(ctx.elicit(form).await?)?;
        Ok("state-ok".to_owned())
    }

    /// Asks for a confirmation, to see what becomes of a state that was tampered with.
    #[mcp_tool(tier = Standard)]
    pub(crate) async fn test_input_required_result_tampered_state(
        ctx: &ToolContext,
    ) -> Result<String, ToolError> {
        test_input_required_result_request_state(ctx).await
    }

    /// Asks the user, the model and for the folders, all at once.
    #[mcp_tool(tier = Standard)]
    pub(crate) async fn test_input_required_result_multiple_inputs(
        ctx: &ToolContext,
    ) -> Result<String, ToolError> {
        let greeting = Sampling::new(50).user("Generate a greeting").key("greeting");
        let questions = vec![name()?.into(), greeting.into(), ClientRequest::roots().key("client_roots")];
        let mut told = Vec::new();
        for answer in ctx.ask_all(questions).await {
            told.push(match answer? {
                ClientAnswer::Form(answer) => described(answer),
                ClientAnswer::Sampled(answer) => Sampled::text(&answer),
                ClientAnswer::Roots(roots) => format!("{} roots", roots.len()),
                other => format!("{other:?}"),
            });
        }
        Ok(told.join("; "))
    }

    /// Asks for a name, and then for a colour.
    #[mcp_tool(tier = Standard)]
    pub(crate) async fn test_input_required_result_multi_round(
        ctx: &ToolContext,
    ) -> Result<String, ToolError> {
        let name = ctx.elicit(text_form("step1", "Step 1: What is your name?", "name")?).await?;
        let color = ctx.elicit(text_form("step2", "Step 2: What is your favorite color?", "color")?).await?;
        Ok(format!("{} likes {}", accepted(name)?["name"], accepted(color)?["color"]))
    }

    /// Asks what its client can be asked, and nothing else.
    #[mcp_tool(tier = Standard)]
    pub(crate) async fn test_input_required_result_capabilities(
        ctx: &ToolContext,
    ) -> Result<String, ToolError> {
        if ctx.client().forms {
            return test_input_required_result_elicitation(ctx).await;
        }
        Ok(ctx.sample(capital()).await?.text())
    }

    // ── What a server can change while it runs ──

    /// Puts on or takes off what is called so.
    fn toggle(ctx: &ToolContext, name: &str) -> String {
        let availability = ctx.availability();
        if availability.is_offered(name) {
            availability.withhold(name, "it was switched off");
            format!("{name} is off")
        } else {
            availability.offer(name);
            format!("{name} is on")
        }
    }

    /// Switches another tool on or off, of which clients hear.
    #[mcp_tool(tier = Standard)]
    pub(crate) fn test_trigger_tool_change(ctx: &ToolContext) -> String {
        toggle(ctx, "test_switched_tool")
    }

    /// Switches a prompt on or off, of which clients hear.
    #[mcp_tool(tier = Standard)]
    pub(crate) fn test_trigger_prompt_change(ctx: &ToolContext) -> String {
        toggle(ctx, "test_switched_prompt")
    }

    /// Is there or not.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_switched_tool() -> &'static str {
        "here"
    }

    /// Is there or not.
    #[mcp_prompt(tier = Standard)]
    pub(crate) fn test_switched_prompt() -> &'static str {
        "Are you there?"
    }

    // ── Resources ──

    /// A text.
    #[mcp_resource(uri = "test://static-text", mime_type = "text/plain", tier = Standard)]
    pub(crate) fn static_text() -> &'static str {
        "This is the content of the static text resource."
    }

    /// An image.
    #[mcp_resource(uri = "test://static-binary", mime_type = "image/png", tier = Standard)]
    pub(crate) fn static_binary() -> Vec<u8> {
        PNG.to_vec()
    }

    /// A resource to subscribe to.
    #[mcp_resource(uri = "test://watched-resource", mime_type = "text/plain", tier = Standard)]
    pub(crate) fn watched_resource() -> &'static str {
        "This is watched."
    }

    #[derive(Serialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    pub(crate) struct TemplateData {
        id: String,
        template_test: bool,
        data: String,
    }

    /// Data by its id.
    #[mcp_resource(uri = "test://template/{id}/data", mime_type = "application/json", tier = Standard)]
    pub(crate) fn template_data(
        /// Which data.
        id: String,
    ) -> Json<TemplateData> {
        let data = format!("Data for ID: {id}");
        Json(TemplateData { id, template_test: true, data })
    }

    // ── Prompts ──

    /// A message without arguments.
    #[mcp_prompt(tier = Standard)]
    pub(crate) fn test_simple_prompt() -> &'static str {
        "This is a simple prompt for testing."
    }

    /// A message with arguments.
    #[mcp_prompt(tier = Standard)]
    pub(crate) fn test_prompt_with_arguments(
        /// The first one, which is completed.
        #[arg(complete = ["testValue1", "testValue2", "other"])]
        arg1: String,
        /// The second one.
        arg2: String,
    ) -> String {
        format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
    }

    /// A message with a resource in it.
    #[mcp_prompt(tier = Standard)]
    pub(crate) fn test_prompt_with_embedded_resource(
        /// The resource's address.
        #[arg(name = "resourceUri", url = false)]
        uri: String,
    ) -> Vec<PromptMessage> {
        vec![
            PromptMessage::user(Resource::text(uri, "text/plain", "Embedded resource content for testing.")),
            PromptMessage::user("Please process the embedded resource above."),
        ]
    }

    /// A message with an image in it.
    #[mcp_prompt(tier = Standard)]
    pub(crate) fn test_prompt_with_image() -> Vec<PromptMessage> {
        vec![
            PromptMessage::user(Image::new("image/png", PNG)),
            PromptMessage::user("Please analyze the image above."),
        ]
    }

    /// A message that first asks what it should be about.
    #[mcp_prompt(tier = Standard)]
    pub(crate) async fn test_input_required_result_prompt(ctx: &ToolContext) -> Result<String, ToolError> {
        let form = text_form("user_context", "What context should the prompt use?", "context")?;
        let answer = accepted(ctx.elicit(form).await?)?;
        Ok(format!("Consider this context: {}", answer["context"]))
    }
}
