//! A coding agent as a backend of work orders: an abp child whose work is done by the bridge to the real programs.
//!
//! What the agent wants to do is asked of the control plane before it is done, what it asks goes to a person, what the user says
//! meanwhile reaches it, and a cancel stops it with everything it started.

mod translate;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use outrigger_abp::protocol::{
    AskAction, BackendIdentity, Capability, ErrorCode, Outcome, Raw, SupportLevel, Taking, WorkOrder,
};
use outrigger_abp::sidecar::{self, Done, Failure, Identity, Question, Run};
use outrigger_helmor::host::{
    Bridge, BridgeError, BridgeSpec, Nobody, Steered, StreamEnd, StreamEvent, Terms,
};
use outrigger_helmor::protocol::{Effort, PermissionMode, ProviderName, SendMessage, Steer, SteerSession};
use outrigger_helmor::provider::{Answer, InputAction, InputAsk, PermissionAsk, Verdict};
use outrigger_supervise::sandbox::{Level, Limits, Network, Request};
use serde_json::json;
use tokio::task::JoinSet;

use self::translate::{Told, Translator};
use crate::args::AgentArgs;
use crate::trees;

/// The most questions of an agent that are open at once.
const MAX_ASKED: usize = 64;

/// Is a backend that has a coding agent do the work.
pub(crate) fn be_agent(args: AgentArgs) -> anyhow::Result<ExitCode> {
    let Some(provider) = ProviderName::from_word(&args.provider) else {
        bail!(
            "there is no provider `{}`; there are claude, codex, cursor, scripted and acp:NAME",
            args.provider
        );
    };
    let bridge = Arc::new(bridge_words(&provider, &args.command)?);
    let native = |capability| (capability, SupportLevel::Native);
    let can = [
        Capability::Streaming,
        Capability::ToolRead,
        Capability::ToolWrite,
        Capability::ToolEdit,
        Capability::ToolBash,
        Capability::ToolUse,
        Capability::SessionResume,
    ];
    let identity = Identity {
        backend: BackendIdentity {
            adapter_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            ..BackendIdentity::named(provider.to_string())
        },
        capabilities: can.map(native).into_iter().collect(),
        // Only Claude Code can be made to ask before every tool; of the others the policy is observed.
        asks: if provider == ProviderName::Claude { vec![AskAction::Tool] } else { Vec::new() },
        takes: vec![Taking::Steer],
        ..Identity::named("agent")
    };
    Ok(sidecar::main(identity, move |run| {
        let (provider, words) = (provider.clone(), Arc::clone(&bridge));
        async move { work(&run, provider, &words).await }
    }))
}

/// How the bridge is started: by this very program.
fn bridge_words(provider: &ProviderName, command: &[String]) -> anyhow::Result<Vec<OsString>> {
    let mut words: Vec<OsString> = ["sidecar", "helmor"].map(OsString::from).to_vec();
    let [first, rest @ ..] = command else { return Ok(words) };
    let flag = match provider {
        ProviderName::Claude => "--claude",
        ProviderName::Codex => "--codex",
        ProviderName::Cursor => "--cursor",
        ProviderName::Scripted => "--script",
        ProviderName::Acp(name) => {
            let quoted: Vec<String> = command.iter().map(|word| quote(word)).collect();
            words.extend(["--acp".into(), format!("{name}={}", quoted.join(" ")).into()]);
            return Ok(words);
        }
    };
    if !rest.is_empty() {
        bail!("`{provider}` takes a program without arguments; only agents over ACP take a command line");
    }
    words.extend([flag.into(), first.into()]);
    Ok(words)
}

/// A word that a command line gives back as it is.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// One run.
async fn work(run: &Run, provider: ProviderName, words: &[OsString]) -> Result<Done, Failure> {
    let turn = turn(run, provider)?;
    let bridge = bridge(words, &turn)?;
    let done = Turn::new(run, &bridge, &turn).converse(turn).await;
    // Whatever happened, nothing of the agent stays.
    bridge.shutdown().await;
    done
}

fn bridge(words: &[OsString], turn: &SendMessage) -> Result<Bridge, Failure> {
    let program = std::env::current_exe()?;
    let mut sandbox = Request::new(Level::Basic, Limits::as_the_host());
    sandbox.network = Network::Allow;
    let cwd = turn.cwd.clone().unwrap_or_else(|| PathBuf::from("/"));
    let spec = BridgeSpec::new("bridge", program, cwd, sandbox).args(words).inherit_env();
    Ok(Bridge::new(trees::supervisor(), spec, Terms::usual(), Arc::new(Nobody)))
}

/// The work order as a turn of an agent.
fn turn(run: &Run, provider: ProviderName) -> Result<SendMessage, Failure> {
    let order = run.order();
    let setting = |name: &str| order.config.vendor("agent", name);
    let text = |name: &str| setting(name).and_then(|value| value.parse::<String>().ok());
    let paths =
        |name: &str| setting(name).and_then(|value| value.parse::<Vec<PathBuf>>().ok()).unwrap_or_default();
    // An agent that nobody told otherwise asks; its bridge alone would let it do everything.
    let mode =
        text("permission_mode").map_or(PermissionMode::Default, |word| PermissionMode::from_word(&word));
    Ok(SendMessage {
        session_id: run.id().as_str().to_owned(),
        prompt: prompt(order),
        model: order.config.model.clone(),
        cwd: Some(PathBuf::from(&order.workspace.root)),
        resume: text("resume"),
        permission_mode: Some(mode),
        effort: text("effort").map(Effort),
        ask_every_tool: provider == ProviderName::Claude,
        fast_mode: setting("fast").and_then(|value| value.parse().ok()).unwrap_or(false),
        thinking_display: None,
        claude_environment: order
            .config
            .env
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        agent_proxy: None,
        additional_directories: paths("directories"),
        source_repo: None,
        images: paths("images"),
        provider,
    })
}

/// The task, with what the order wants looked at.
fn prompt(order: &WorkOrder) -> String {
    let mut parts = vec![order.task.clone()];
    if !order.context.files.is_empty() {
        let files: Vec<String> = order.context.files.iter().map(|file| format!("- {file}")).collect();
        parts.push(format!("Files to look at:\n{}", files.join("\n")));
    }
    for snippet in &order.context.snippets {
        parts.push(format!("{}:\n```\n{}\n```", snippet.name, snippet.content));
    }
    parts.join("\n\n")
}

/// A turn under way.
struct Turn<'a> {
    run: &'a Run,
    bridge: &'a Bridge,
    session: String,
    provider: ProviderName,
    translator: Translator,
    /// What was asked, until it is answered.
    asked: JoinSet<Result<(), String>>,
}

impl<'a> Turn<'a> {
    fn new(run: &'a Run, bridge: &'a Bridge, turn: &SendMessage) -> Self {
        Self {
            run,
            bridge,
            session: turn.session_id.clone(),
            provider: turn.provider.clone(),
            translator: Translator::new(&run.order().workspace.root),
            asked: JoinSet::new(),
        }
    }

    /// Runs the turn to its end.
    async fn converse(mut self, turn: SendMessage) -> Result<Done, Failure> {
        let mut stream = self.bridge.send(turn).await.map_err(|error| refused(&error))?;
        let mut stopping = false;
        loop {
            tokio::select! {
                event = stream.next() => match event {
                    Some(StreamEvent::End(end)) => return self.end(end).await,
                    Some(event) => self.event(event).await?,
                    None => return Err(Failure::internal("the bridge ended a stream without saying so")),
                },
                _ = self.run.cancelled(), if !stopping => {
                    stopping = true;
                    // The stream ends for it, whatever the answer is.
                    if let Err(error) = self.bridge.stop(&self.session, &self.provider).await {
                        return Err(refused(&error));
                    }
                }
                Some(text) = self.run.steered(), if !stopping => self.steer(text).await?,
                Some(answered) = self.asked.join_next() => {
                    if let Ok(Err(problem)) = answered {
                        self.run.warning(&problem).await?;
                    }
                }
            }
        }
    }

    async fn event(&mut self, event: StreamEvent) -> Result<(), Failure> {
        match event {
            StreamEvent::Passed(passed) => {
                let told = self.translator.passed(&passed.kind, &passed.value());
                self.tell(told).await?;
            }
            StreamEvent::Permission(ask) => self.permission(ask).await?,
            StreamEvent::Input(ask) => self.input(ask).await?,
            StreamEvent::Steered(steer) => {
                let said = translate::other(json!({ "type": "user_prompt", "text": steer.prompt }));
                self.tell(said.into_iter().collect()).await?;
            }
            StreamEvent::Plan { plan: Some(plan), .. } => self.run.message(&plan).await?,
            StreamEvent::ContextReset { resume, reason } => {
                let message = format!("the conversation {resume} is lost, and a new one was begun: {reason}");
                self.run.warning(&message).await?;
            }
            // Questions that were withdrawn are answered for nothing, and the end is handled where the turn can end.
            StreamEvent::PermissionCancelled { .. }
            | StreamEvent::InputCancelled { .. }
            | StreamEvent::PermissionMode(_)
            | StreamEvent::Plan { plan: None, .. }
            | StreamEvent::ContextUsage(_)
            | StreamEvent::Goal(_)
            | StreamEvent::End(_) => {}
        }
        Ok(())
    }

    async fn tell(&mut self, told: Vec<Told>) -> Result<(), Failure> {
        for one in told {
            match one {
                Told::Event(event) => self.run.emit(event).await?,
                Told::Used(report) => self.run.usage(report).await?,
            }
        }
        Ok(())
    }

    /// Asks the control plane, and a person where the agent itself wants that.
    async fn permission(&mut self, ask: PermissionAsk) -> Result<(), Failure> {
        if self.asked.len() >= MAX_ASKED {
            let message = Some("too many questions are open".to_owned());
            return self
                .bridge
                .permission(&ask.id, Verdict::Deny { message })
                .await
                .map_err(|error| refused(&error));
        }
        let input = Raw::of(&ask.tool_input).map_err(|error| Failure::internal(error.to_string()))?;
        let mut question = Question::tool(&ask.tool_name, input).for_call(ask.call_id.clone());
        if ask.required {
            question = question.needing_a_person();
        }
        let (run, bridge) = (self.run.clone(), self.bridge.clone());
        self.asked.spawn(async move {
            let answered = run.ask(question).await.map_err(|error| error.to_string())?;
            let verdict = match answered.is_allowed() {
                true => Verdict::Allow { updated: Vec::new() },
                false => Verdict::Deny { message: Some(answered.reason) },
            };
            // An agent that was stopped or changed its mind does not wait for the answer any more.
            let _ = bridge.permission(&ask.id, verdict).await;
            Ok(())
        });
        Ok(())
    }

    async fn input(&mut self, ask: InputAsk) -> Result<(), Failure> {
        let question = json!({ "message": ask.message, "source": ask.source, "payload": ask.payload });
        let question = Raw::of(&question).map_err(|error| Failure::internal(error.to_string()))?;
        let (run, bridge) = (self.run.clone(), self.bridge.clone());
        self.asked.spawn(async move {
            let answered = run.ask(Question::person(question)).await.map_err(|error| error.to_string())?;
            let content = answered.content.as_ref().and_then(|content| content.parse().ok());
            let action = match (answered.is_allowed(), &content) {
                (true, Some(_)) => InputAction::Submit,
                _ => InputAction::Decline,
            };
            let _ = bridge.input(&ask.id, Answer { action, content, meta: None }).await;
            Ok(())
        });
        Ok(())
    }

    async fn steer(&mut self, text: String) -> Result<(), Failure> {
        let steer = Steer { prompt: text, files: Vec::new(), images: Vec::new() };
        let (session_id, provider) = (self.session.clone(), self.provider.clone());
        let problem = match self.bridge.steer(&SteerSession { session_id, provider, steer }).await {
            Ok(Steered::Accepted) => return Ok(()),
            Ok(Steered::Refused { reason }) => reason,
            Err(error) => error.to_string(),
        };
        Ok(self.run.warning(&format!("what you said was not taken: {problem}")).await?)
    }

    /// The end of the stream as the end of the run.
    async fn end(mut self, end: StreamEnd) -> Result<Done, Failure> {
        let rest = self.translator.rest().into_iter().collect();
        self.tell(rest).await?;
        match end {
            StreamEnd::Ended => Ok(Done::as_it_went()),
            StreamEnd::Aborted { .. } => Ok(Done::with(Outcome::Partial)),
            StreamEnd::EndedBadly { message } => {
                if let Some(message) = message {
                    self.run.error(&message, self.translator.error.map(|(_, code)| code)).await?;
                }
                Ok(Done::with(Outcome::Failed))
            }
            StreamEnd::Failed(refusal) => {
                let known = self.translator.error.map(|(_, code)| code);
                let code = known.unwrap_or_else(|| code(refusal.code.as_deref().unwrap_or_default()));
                Err(Failure::new(refusal.message, code))
            }
            end @ (StreamEnd::Silent { .. } | StreamEnd::Overflow { .. } | StreamEnd::Lost(_)) => {
                Err(Failure::new(end.to_string(), code(end.code())))
            }
        }
    }
}

fn refused(error: &BridgeError) -> Failure {
    Failure::new(error.to_string(), code(error.code()))
}

/// The bridge's words for what went wrong, in those of the contract.
fn code(word: &str) -> ErrorCode {
    match word {
        "not_installed" => ErrorCode::BackendNotFound,
        "agent_exited" | "agent_protocol" | "sidecar_lost" | "crash_loop" => ErrorCode::BackendCrashed,
        "timeout" | "silent" => ErrorCode::BackendTimeout,
        "auth" => ErrorCode::BackendAuthFailed,
        "rate_limit" => ErrorCode::BackendRateLimited,
        "server" | "provider" => ErrorCode::BackendUnavailable,
        "invalid_request" | "invalid_params" => ErrorCode::ValidationFailed,
        "unsupported" => ErrorCode::CapabilityUnsupported,
        "not_started" | "not_ready" | "exited" => ErrorCode::SidecarSpawnFailed,
        _ => ErrorCode::Internal,
    }
}
