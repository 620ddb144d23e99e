//! A child that does what a script says: for tests of control planes, for demonstrations, and to see what a run looks like
//! without a model.
//!
//! A script is JSON: `{"steps":[{"do":"message","text":"hello"},{"do":"final"}]}`. In texts `{task}` is the task of the order.

use std::borrow::Cow;
use std::path::{Component, Path};
use std::process::ExitCode;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::ask::Question;
use super::run::{EmitError, Run};
use super::say::ToolUse;
use super::serve::main;
use super::terms::{Done, Failure, Identity};
use crate::protocol::{
    AgentEvent, Capability, Counts, ErrorCode, EventKind, Outcome, Raw, SupportLevel, Taking, Timestamp,
    Usage, UsageReport,
};

/// What the child does, for every run the same.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Its name in hello.
    #[serde(default = "mock")]
    pub id: String,
    /// One after the other. A script that ends without an end is complete.
    pub steps: Vec<Step>,
}

fn mock() -> String {
    "mock".to_owned()
}

/// One thing that the child does.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Says that the work begins.
    Started {
        /// What it says.
        message: String,
    },
    /// Says a piece, once or many times.
    Delta {
        /// What it says.
        text: String,
        /// How often.
        #[serde(default = "once")]
        times: u32,
    },
    /// Says something as a whole.
    Message {
        /// What it says.
        text: String,
    },
    /// Warns.
    Warning {
        /// Of what.
        message: String,
    },
    /// Sends an event as it is written here; `ts` is added if it is missing.
    Event {
        /// The event.
        event: Value,
    },
    /// Calls a tool: asks, says so, and says what came out.
    Tool {
        /// Which.
        tool_name: String,
        /// Given what; nothing is an empty object.
        input: Option<Value>,
        /// What comes out; nothing is null.
        output: Option<Value>,
    },
    /// Asks whether it may read a file, and says what came of it.
    AskRead {
        /// Which.
        path: String,
    },
    /// Asks whether it may talk to a host, and says what came of it.
    AskNetwork {
        /// Which.
        host: String,
    },
    /// Asks a person something, and says what they said.
    AskPerson {
        /// What.
        question: Value,
    },
    /// Waits for what the user says while it works, and repeats it.
    Listen,
    /// Writes a file in the workspace, for real, and says so.
    WriteFile {
        /// Inside the root.
        path: String,
        /// What is in it.
        content: String,
    },
    /// Removes a file of the workspace, for real, and says so.
    RemoveFile {
        /// Inside the root.
        path: String,
    },
    /// Counts what it spent.
    Usage {
        /// Tokens in.
        input_tokens: Option<u64>,
        /// Tokens out.
        output_tokens: Option<u64>,
        /// Money.
        estimated_cost_usd: Option<f64>,
        /// Turns.
        turns: Option<u64>,
    },
    /// Waits, unless the run is cancelled.
    Wait {
        /// How long.
        ms: u64,
    },
    /// Does nothing more, and listens to nothing; a cancel ends it when its grace is over.
    Hang,
    /// Ends the run well.
    Final {
        /// How.
        outcome: Option<String>,
    },
    /// Ends the run badly.
    Fatal {
        /// Why.
        error: String,
        /// As a code.
        error_code: Option<String>,
    },
    /// Ends the process, in the middle of the run.
    Exit {
        /// With this code.
        code: u8,
    },
}

fn once() -> u32 {
    1
}

/// Why a script was refused.
#[derive(Debug, thiserror::Error)]
#[error("the script of the mock cannot be read: {0}")]
pub struct ScriptError(#[from] serde_json::Error);

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// When it is not JSON, or a step is unknown or has members that it does not know.
    pub fn read(text: &str) -> Result<Self, ScriptError> {
        Ok(serde_json::from_str(text)?)
    }

    /// Says hello, repeats the task, counts a turn.
    pub fn usual() -> Self {
        let steps = vec![
            Step::Started { message: "the mock begins".to_owned() },
            Step::Delta { text: "mock: ".to_owned(), times: 1 },
            Step::Delta { text: "{task}".to_owned(), times: 1 },
            Step::Message { text: "mock: {task}".to_owned() },
            Step::Usage {
                input_tokens: Some(12),
                output_tokens: Some(34),
                estimated_cost_usd: Some(0.0),
                turns: Some(1),
            },
        ];
        Self { id: mock(), steps }
    }
}

/// Serves runs by a script, as a whole process.
pub fn serve_script(script: Script) -> ExitCode {
    let native = |capability| (capability, SupportLevel::Native);
    let capabilities =
        [Capability::Streaming, Capability::ToolRead, Capability::ToolWrite, Capability::ToolUse];
    let listens = script.steps.iter().any(|step| matches!(step, Step::Listen));
    let identity = Identity {
        takes: if listens { vec![Taking::Steer] } else { Vec::new() },
        capabilities: capabilities.map(native).into_iter().collect(),
        ..Identity::named(script.id.clone())
    };
    main(identity, move |run| play(run, script.clone()))
}

/// Plays a script once.
///
/// # Errors
/// When the script says so, or a step cannot be done.
pub async fn play(run: Run, script: Script) -> Result<Done, Failure> {
    for step in script.steps {
        if run.cancel_reason().is_some() {
            break;
        }
        match step {
            Step::Final { outcome } => {
                return Ok(match outcome {
                    Some(outcome) => Done::with(Outcome::from(outcome.as_str())),
                    None => Done::as_it_went(),
                });
            }
            Step::Fatal { error, error_code } => {
                let code = error_code.map_or(ErrorCode::Internal, |code| ErrorCode::from(code.as_str()));
                return Err(Failure::new(error, code));
            }
            Step::Exit { code } => std::process::exit(i32::from(code)),
            other => perform(&run, other).await?,
        }
    }
    Ok(Done::as_it_went())
}

async fn perform(run: &Run, step: Step) -> Result<(), Failure> {
    let fill = |text: &str| text.replace("{task}", &run.order().task);
    match step {
        Step::Started { message } => run.started(&fill(&message)).await?,
        Step::Message { text } => run.message(&fill(&text)).await?,
        Step::Warning { message } => run.warning(&fill(&message)).await?,
        Step::Delta { text, times } => {
            let text = fill(&text);
            let delta = || EventKind::AssistantDelta { text: Cow::Borrowed(text.as_str()) };
            run.emit_all((0..times).map(|_| AgentEvent::now(delta()))).await?;
        }
        Step::Event { event } => run.emit(stamped(event)?).await?,
        Step::Tool { tool_name, input, output } => {
            let call = ToolUse::new(
                tool_name,
                raw(&input.unwrap_or_else(|| Value::Object(serde_json::Map::new())))?,
            );
            let output = raw(&output.unwrap_or(Value::Null))?;
            run.tool(&call, || async { Ok(output) }).await?;
        }
        Step::AskRead { path } => tell(run, Question::read(path)).await?,
        Step::AskNetwork { host } => tell(run, Question::network(host)).await?,
        Step::AskPerson { question } => {
            let answered = run.ask(Question::person(raw(&question)?)).await?;
            let said = answered.content.map_or(answered.reason, |content| content.as_str().to_owned());
            run.message(&format!("{}: {said}", answered.decision)).await?;
        }
        Step::Listen => {
            tokio::select! {
                said = run.steered() => run.message(&format!("you said: {}", said.unwrap_or_default())).await?,
                _ = run.cancelled() => {}
            }
        }
        Step::WriteFile { path, content } => {
            let file = inside(run, &path)?;
            if let Some(folder) = file.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(&file, fill(&content))?;
            run.file_changed(&path, "written").await?;
        }
        Step::RemoveFile { path } => {
            std::fs::remove_file(inside(run, &path)?)?;
            run.file_changed(&path, "removed").await?;
        }
        Step::Usage { input_tokens, output_tokens, estimated_cost_usd, turns } => {
            let usage = Usage { input_tokens, output_tokens, estimated_cost_usd, ..Usage::default() };
            run.usage(UsageReport { usage, turns, counts: Counts::Increments }).await?;
        }
        Step::Wait { ms } => {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(ms)) => {}
                _ = run.cancelled() => {}
            }
        }
        Step::Hang => std::future::pending().await,
        // Handled where the run can end.
        Step::Final { .. } | Step::Fatal { .. } | Step::Exit { .. } => {}
    }
    Ok(())
}

async fn tell(run: &Run, question: Question) -> Result<(), EmitError> {
    let answered = run.ask(question).await?;
    run.message(&format!("{}: {}", answered.decision, answered.reason)).await
}

/// The event with the members that it has, and a time if it has none. It need not be one that anybody knows.
fn stamped(mut event: Value) -> Result<AgentEvent<'static>, Failure> {
    if let Value::Object(members) = &mut event {
        members.entry("ts").or_insert_with(|| Value::String(Timestamp::now().to_string()));
    }
    Ok(AgentEvent::now(EventKind::Other { kind: Cow::Borrowed(""), members: raw(&event)? }))
}

fn raw(value: &Value) -> Result<Raw<'static>, Failure> {
    Raw::of(value).map_err(|error| Failure::internal(error.to_string()))
}

fn inside(run: &Run, path: &str) -> Result<std::path::PathBuf, Failure> {
    let plain =
        Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !plain || path.is_empty() {
        return Err(Failure::new(
            format!("`{path}` is not inside the workspace"),
            ErrorCode::ExecutionWorkspaceError,
        ));
    }
    Ok(Path::new(&run.order().workspace.root).join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_with_a_step_that_nobody_knows_is_refused() {
        assert!(Script::read(r#"{"steps":[{"do":"message","text":"x"},{"do":"final"}]}"#).is_ok());
        let unknown = Script::read(r#"{"steps":[{"do":"dance"}]}"#).unwrap_err().to_string();
        assert!(unknown.contains("unknown variant `dance`"), "{unknown}");
        let member = Script::read(r#"{"steps":[{"do":"wait","s":1}]}"#).unwrap_err().to_string();
        assert!(member.contains("unknown field `s`"), "{member}");
    }

    #[test]
    fn an_event_of_a_script_gets_a_time_and_keeps_the_rest() {
        let mut line = Vec::new();
        let event = serde_json::json!({"type":"warning","message":"x","more":1.0});
        stamped(event).unwrap().write(&mut line);
        let mut read: Value = serde_json::from_slice(&line).unwrap();
        assert!(Timestamp::parse(read["ts"].take().as_str().unwrap()).is_ok());
        assert_eq!(read, serde_json::json!({"ts":null,"type":"warning","message":"x","more":1.0}));
    }
}
