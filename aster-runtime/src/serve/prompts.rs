//! Prompts, and the completion of arguments.

use rmcp::ErrorData;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, Prompt, Reference, ResultType,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

use super::resources::{result, typed};
use super::rounds::Turn;
use super::{Server, Service, Shape};
use crate::call::Completed;
use crate::host::{self, Host};
use crate::id::ToolId;

impl Shape {
    /// What a prompt is called here: by its bare name where there is one server, else by `server__prompt`. Native names have
    /// no `__` in them.
    fn prompt_name(&self, id: &ToolId) -> String {
        match self {
            Self::Server(_) => id.tool().to_owned(),
            _ => format!("{}__{}", id.server(), id.tool()),
        }
    }

    /// The id that a client means by a prompt's name, which may not exist.
    fn prompt_id(&self, name: &str) -> String {
        match self {
            Self::Server(server) => format!("{server}/{name}"),
            _ => name.replacen("__", "/", 1),
        }
    }
}

impl Service {
    pub(super) fn prompts(&self) -> Vec<Prompt> {
        let view = self.viewer.view();
        let offered = view.prompts().iter().filter(|prompt| self.shape.offers(prompt.id()));
        let named = offered.filter_map(|prompt| {
            let mut definition = prompt.definition();
            definition["name"] = Value::String(self.shape.prompt_name(prompt.id()));
            typed(definition)
        });
        named.collect()
    }
}

impl Server {
    pub(super) async fn get(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let session = self.session(&context);
        let arguments = request.arguments.unwrap_or_default();
        let id = self.service.shape.prompt_id(&request.name);
        let again = (request.input_responses, request.request_state);
        let asking = self.asking(&context, ("prompts/get", &request.name), &arguments, again)?;
        let start = |options| async move { session.get_prompt(&id, arguments, options).await };
        let failure = |got: &Completed| got.result.failure();
        match self.service.rounds.answer(&context, asking, start, failure).await? {
            Turn::InputRequired(questions) => Ok(questions.into()),
            Turn::Done(got) => {
                let mut result: GetPromptResult =
                    result(got, || unknown(&self.service.host, "prompt", &request.name))?;
                result.result_type = Some(ResultType::COMPLETE);
                Ok(result.into())
            }
        }
    }

    pub(super) async fn suggest(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let (session, service) = (self.session(&context), self.service.clone());
        // An author's function may block.
        let suggested = tokio::task::spawn_blocking(move || {
            let (argument, typed) = (&request.argument.name, &request.argument.value);
            match &request.r#ref {
                Reference::Prompt(prompt) => {
                    let id = service.shape.prompt_id(&prompt.name);
                    let suggested = session.complete(host::Reference::Prompt(&id), argument, typed);
                    suggested.ok_or_else(|| unknown(&service.host, "prompt", &prompt.name))
                }
                Reference::Resource(template) => {
                    let template = template.uri.as_str();
                    let offered = session.view().resources().iter().any(|resource| {
                        resource.template().as_str() == template && service.shape.offers(resource.id())
                    });
                    let complete = || session.complete(host::Reference::Resource(template), argument, typed);
                    offered
                        .then(complete)
                        .flatten()
                        .ok_or_else(|| unknown(&service.host, "resource template", template))
                }
                // A kind that the SDK knows and this edge does not.
                _ => {
                    Err(ErrorData::invalid_params("only prompts and resource templates are completed", None))
                }
            }
        });
        let suggested =
            suggested.await.map_err(|_| ErrorData::internal_error("the completion broke off", None))??;
        let total = u32::try_from(suggested.total).ok();
        let info = CompletionInfo::with_pagination(suggested.values, total, suggested.has_more);
        Ok(CompleteResult::new(info.map_err(|error| ErrorData::internal_error(error, None))?))
    }
}

fn unknown(host: &Host, what: &str, name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("no {what} `{}` is known", host.repeated(name)), None)
}
