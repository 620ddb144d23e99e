//! The ten kinds of events, each with a name of its own, and a tool call from question to result.

use std::borrow::Cow;
use std::future::Future;

use super::ask::{Answered, Question};
use super::run::{EmitError, Run};
use super::terms::Failure;
use crate::protocol::{AgentEvent, ErrorCode, EventKind, Raw};

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolUse {
    /// The tool.
    pub name: String,
    /// The id of the call, if the vendor has one.
    pub id: Option<String>,
    /// The call that this one is part of.
    pub parent: Option<String>,
    /// What it is given.
    pub input: Raw<'static>,
}

impl ToolUse {
    /// A call without ids.
    pub fn new(name: impl Into<String>, input: Raw<'_>) -> Self {
        Self { name: name.into(), id: None, parent: None, input: input.into_owned() }
    }
}

/// How a tool call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Tooled {
    /// The tool ran and gave this.
    Done(Raw<'static>),
    /// The tool ran and failed with this.
    Failed(Failure),
    /// It was not run.
    Denied(Answered),
}

impl Run {
    /// The work begins.
    ///
    /// # Errors
    /// When the run has ended or the host is gone; so in every method here.
    pub async fn started(&self, message: &str) -> Result<(), EmitError> {
        self.say(EventKind::RunStarted { message: message.into() }).await
    }

    /// The work is done.
    ///
    /// # Errors
    /// As [`Run::started`].
    pub async fn completed(&self, message: &str) -> Result<(), EmitError> {
        self.say(EventKind::RunCompleted { message: message.into() }).await
    }

    /// A piece of what the assistant says.
    ///
    /// # Errors
    /// As [`Run::started`].
    pub async fn delta(&self, text: &str) -> Result<(), EmitError> {
        self.say(EventKind::AssistantDelta { text: text.into() }).await
    }

    /// All of what the assistant says.
    ///
    /// # Errors
    /// As [`Run::started`].
    pub async fn message(&self, text: &str) -> Result<(), EmitError> {
        self.say(EventKind::AssistantMessage { text: text.into() }).await
    }

    /// Something that a person should know.
    ///
    /// # Errors
    /// As [`Run::started`].
    pub async fn warning(&self, message: &str) -> Result<(), EmitError> {
        self.say(EventKind::Warning { message: message.into() }).await
    }

    /// Something went wrong that does not end the run.
    ///
    /// # Errors
    /// As [`Run::started`].
    pub async fn error(&self, message: &str, code: Option<ErrorCode>) -> Result<(), EmitError> {
        self.say(EventKind::Error { message: message.into(), error_code: code }).await
    }

    /// A file changed; its path is relative to the root of the workspace.
    ///
    /// # Errors
    /// As [`Run::started`].
    pub async fn file_changed(&self, path: &str, summary: &str) -> Result<(), EmitError> {
        self.say(EventKind::FileChanged { path: path.into(), summary: summary.into() }).await
    }

    /// A command was run; none is the exit code of one that was killed.
    ///
    /// # Errors
    /// As [`Run::started`].
    pub async fn command_executed(
        &self,
        command: &str,
        exit_code: Option<i32>,
        output_preview: Option<&str>,
    ) -> Result<(), EmitError> {
        let output_preview = output_preview.map(Cow::Borrowed);
        self.say(EventKind::CommandExecuted { command: command.into(), exit_code, output_preview }).await
    }

    /// A tool is called.
    ///
    /// # Errors
    /// As [`Run::started`].
    pub async fn tool_call(&self, call: &ToolUse) -> Result<(), EmitError> {
        self.say(EventKind::ToolCall {
            tool_name: Cow::Borrowed(&call.name),
            tool_use_id: call.id.as_deref().map(Cow::Borrowed),
            parent_tool_use_id: call.parent.as_deref().map(Cow::Borrowed),
            input: call.input.borrow(),
        })
        .await
    }

    /// What came out of a tool.
    ///
    /// # Errors
    /// As [`Run::started`].
    pub async fn tool_result(
        &self,
        call: &ToolUse,
        result: Result<Raw<'_>, Raw<'_>>,
    ) -> Result<(), EmitError> {
        let is_error = result.is_err();
        let (Ok(output) | Err(output)) = result;
        let tool_use_id = call.id.as_deref().map(Cow::Borrowed);
        self.say(EventKind::ToolResult {
            tool_name: Cow::Borrowed(&call.name),
            tool_use_id,
            output,
            is_error,
        })
        .await
    }

    /// Does a tool call: asks first, then says what is called, works, and says what came out. A denial is said too.
    ///
    /// # Errors
    /// As [`Run::started`].
    pub async fn tool<W>(&self, call: &ToolUse, work: impl FnOnce() -> W) -> Result<Tooled, EmitError>
    where
        W: Future<Output = Result<Raw<'static>, Failure>>,
    {
        let question = Question::tool(&call.name, call.input.borrow()).for_call(call.id.clone());
        let answered = self.ask(question).await?;
        if !answered.is_allowed() {
            self.warning(&format!("{} was denied: {}", call.name, answered.reason)).await?;
            let denial = serde_json::json!({ "denied": true, "reason": answered.reason });
            self.tool_result(call, Err(Raw::trusted(denial.to_string()))).await?;
            return Ok(Tooled::Denied(answered));
        }
        self.tool_call(call).await?;
        match work().await {
            Ok(output) => {
                self.tool_result(call, Ok(output.borrow())).await?;
                Ok(Tooled::Done(output))
            }
            Err(failure) => {
                let error = serde_json::json!({ "error": failure.message });
                self.tool_result(call, Err(Raw::trusted(error.to_string()))).await?;
                Ok(Tooled::Failed(failure))
            }
        }
    }

    async fn say(&self, kind: EventKind<'_>) -> Result<(), EmitError> {
        self.emit(AgentEvent::now(kind)).await
    }
}
