//! A run as its user follows it: live on a terminal, or one JSON object a line; and the last lines, which say how it ended.

use std::path::{Path, PathBuf};

use anyhow::Context;
use outrigger_abp::conduct::{Audience, Concluded, Confinement, Job};
use outrigger_abp::govern::ApprovalRequest;
use outrigger_abp::protocol::{AgentEvent, Ask, EventKind, Hello, Outcome, Taking};
use outrigger_abp::receipt::{Ending, RecordError, Sealed};
use outrigger_abp::workspace::{Changes, Lines, Prepared};
use serde::Serialize;
use tokio::sync::mpsc;

use super::approve::{Person, Typed};
use super::args::ApproveArg;
use super::show::Screen;
use crate::say::{self, Format};

/// The run is complete.
const COMPLETE: u8 = 0;
/// It failed.
const FAILED: u8 = 1;
/// It ended before it was complete.
const PARTIAL: u8 = 3;
/// The backend does not keep to the protocol.
const PROTOCOL: u8 = 4;
/// Its user ended it.
pub(super) const CANCELLED: u8 = 130;

/// How much of a patch is shown.
const SHOWN_PATCH: u64 = 16 << 10;

/// How a run is followed.
pub(super) struct Live {
    format: Format,
    screen: Screen,
    run: String,
    ledger: PathBuf,
    asks: ApproveArg,
    /// Whoever sits at the terminal, once there is a reason to listen to them.
    person: Option<Person>,
    typed: mpsc::Sender<Typed>,
    backend: String,
    /// What the agent calls its conversation, if it can be gone on with.
    session: Option<String>,
    source: String,
    boxed: bool,
}

impl Live {
    pub(super) fn new(format: Format, job: &Job, asks: ApproveArg, typed: mpsc::Sender<Typed>) -> Self {
        Self {
            format,
            screen: Screen::new(),
            run: job.run.as_str().to_owned(),
            ledger: job.ledger(),
            asks,
            person: None,
            backend: job.backend.name.clone(),
            session: None,
            typed,
            source: job.order.workspace.root.clone(),
            boxed: matches!(job.confinement, Confinement::ByPolicy { .. }),
        }
    }

    /// Listens to whoever sits at the terminal, if somebody does.
    fn listen(&mut self) {
        if self.person.is_none() && self.format == Format::Text {
            self.person = Person::start(self.ledger.clone(), self.typed.clone());
        }
    }
}

#[derive(Serialize)]
struct Started<'a> {
    event: &'static str,
    run: &'a str,
    backend: &'a str,
    backend_version: Option<&'a str>,
    contract_version: &'a str,
    pid: Option<u32>,
}

#[derive(Serialize)]
struct Workplace<'a> {
    event: &'static str,
    run: &'a str,
    root: &'a Path,
    source: &'a Path,
    left_out: usize,
}

#[derive(Serialize)]
struct Agent<'a> {
    event: &'static str,
    number: u64,
    data: &'a serde_json::value::RawValue,
}

#[derive(Serialize)]
struct Approval<'a> {
    event: &'static str,
    request: &'a ApprovalRequest,
}

#[derive(Serialize)]
struct Remark<'a> {
    event: &'static str,
    message: &'a str,
}

impl Audience for Live {
    fn prepared(&mut self, workspace: &Prepared) {
        let left_out = workspace.left_out();
        match self.format {
            Format::Json => say::object(&Workplace {
                event: "workspace",
                run: &self.run,
                root: workspace.root(),
                source: workspace.source(),
                left_out: left_out.len(),
            }),
            Format::Text => {
                if workspace.stage().is_some() {
                    self.screen.note(&format!("a copy of {}", self.source));
                }
                for entry in left_out.iter().take(5) {
                    self.screen.warn(&format!("{} is not in the copy: {}", entry.path, entry.why.as_text()));
                }
                if left_out.len() > 5 {
                    self.screen.warn(&format!("{} more are not in the copy", left_out.len() - 5));
                }
            }
        }
    }

    fn hello(&mut self, hello: &Hello, pid: Option<u32>) {
        let backend = &hello.backend;
        match self.format {
            Format::Json => say::object(&Started {
                event: "started",
                run: &self.run,
                backend: &backend.id,
                backend_version: backend.backend_version.as_deref(),
                contract_version: hello.contract_version.as_str(),
                pid,
            }),
            Format::Text => {
                let version =
                    backend.backend_version.as_deref().map(|text| format!(" {text}")).unwrap_or_default();
                self.screen.note(&format!("{}{version} · run {}", backend.id, self.run));
            }
        }
        if hello.outrigger.as_ref().is_some_and(|powers| powers.takes.contains(&Taking::Steer)) {
            self.listen();
            if self.person.is_some() {
                self.screen.note("what you type goes to the agent while it works");
            }
        }
    }

    fn event(&mut self, number: u64, event: &AgentEvent<'_>, _line: &str) {
        if let (EventKind::RunStarted { .. }, Some(ext)) = (&event.kind, &event.ext) {
            self.session = ext.to_value()["agent_session"].as_str().map(str::to_owned);
        }
        match self.format {
            Format::Json => {
                // It was read from a line, so it has its own text.
                let text = event.raw.as_deref().unwrap_or("null");
                if let Ok(data) = serde_json::from_str(text) {
                    say::object(&Agent { event: "agent", number, data });
                }
            }
            Format::Text => self.screen.event(event),
        }
    }

    fn approval(&mut self, request: &ApprovalRequest) {
        if self.format == Format::Json {
            return say::object(&Approval { event: "approval", request });
        }
        if self.asks == ApproveArg::Ask {
            self.listen();
        }
        let asked = self.person.as_ref().is_some_and(|person| person.approve(&mut self.screen, request));
        if !asked {
            let id = &request.id;
            self.screen.warn(&format!(
                "{} needs approval until {}: outrigger approvals allow {id}   (or deny)",
                request.tool_name, request.deadline
            ));
        }
    }

    fn question(&mut self, ask: &Ask<'_>) -> bool {
        self.listen();
        let (Some(person), Some(input)) = (&self.person, &ask.input) else { return false };
        let Ok(question) = input.parse() else { return false };
        person.question(&mut self.screen, &ask.ref_id, &ask.id, &question)
    }

    fn remark(&mut self, text: &str) {
        match self.format {
            Format::Json => say::object(&Remark { event: "warning", message: text }),
            Format::Text => self.screen.warn(text),
        }
    }
}

#[derive(Serialize)]
struct Ended<'a> {
    event: &'static str,
    run: &'a str,
    ending: &'a str,
    outcome: &'a str,
    code: Option<&'static str>,
    error: Option<String>,
    receipt: &'a Path,
    receipt_sha256: String,
    events: u64,
    duration_ms: u64,
    usage: outrigger_abp::protocol::Usage,
    files: Vec<&'a outrigger_abp::workspace::FileChange>,
    patch: Option<&'a Path>,
    applied: bool,
    stage: Option<&'a Path>,
    agent_session: Option<&'a str>,
    exit_code: u8,
}

impl Live {
    /// The last words, and the exit code.
    pub(super) fn concluded(mut self, concluded: &Concluded, out: Option<&Path>) -> anyhow::Result<u8> {
        let receipt = match out {
            Some(path) => {
                std::fs::copy(&concluded.sealed.path, path)
                    .with_context(|| format!("the receipt cannot be copied to {}", path.display()))?;
                path
            }
            None => concluded.sealed.path.as_path(),
        };
        let code = exit_code(concluded);
        match self.format {
            Format::Json => self.conclude_json(concluded, receipt, code),
            Format::Text => self.conclude_text(concluded, receipt),
        }
        Ok(code)
    }

    fn conclude_json(&self, concluded: &Concluded, receipt: &Path, exit_code: u8) {
        say::object(&Ended {
            event: "ended",
            run: &self.run,
            ending: concluded.ending.as_str(),
            outcome: concluded.outcome.as_str(),
            code: concluded.failure.as_ref().map(|failure| failure.code()),
            error: concluded.error(),
            receipt,
            receipt_sha256: concluded.sealed.sha256.to_string(),
            events: concluded.events,
            duration_ms: u64::try_from(concluded.took.as_millis()).unwrap_or(u64::MAX),
            usage: concluded.usage,
            files: concluded.files().collect(),
            patch: concluded.patch.as_deref(),
            applied: was_applied(concluded),
            stage: concluded.stage.as_deref(),
            agent_session: self.session.as_deref(),
            exit_code,
        });
    }

    /// What is not in the patch.
    fn remarks(&mut self, changes: &Changes) {
        if changes.ignored_new > 0 {
            self.screen.note(&format!("{} new files are ignored and not taken over", changes.ignored_new));
        }
        for entry in changes.unrecorded.iter().take(5) {
            self.screen.warn(&format!("{} is not in the patch: {}", entry.path, entry.why.as_text()));
        }
        if let Some(note) = &changes.note {
            self.screen.warn(note);
        }
    }

    fn conclude_text(&mut self, concluded: &Concluded, receipt: &Path) {
        if let Some(changes) = &concluded.changes
            && let Some(diff) = &changes.diff
        {
            let cut =
                diff.text.char_indices().nth(SHOWN_PATCH as usize).map_or(diff.text.len(), |(at, _)| at);
            self.screen.patch(&diff.text[..cut]);
            if cut < diff.text.len() || diff.cut_bytes > 0 {
                self.screen.note("… the whole patch is in the file below");
            }
        }
        let files: Vec<_> = concluded.files().collect();
        if !files.is_empty() {
            let (mut added, mut deleted) = (0, 0);
            for file in &files {
                if let Lines::Text { added: plus, deleted: minus } = file.lines {
                    added += plus;
                    deleted += minus;
                }
            }
            let applied = if was_applied(concluded) { ", applied" } else { "" };
            self.screen.note(&format!("{}, +{added} −{deleted}{applied}", say::files(files.len())));
        }
        if let Some(changes) = &concluded.changes {
            self.remarks(changes);
        }
        if let Some(patch) = &concluded.patch {
            self.screen.note(&format!("patch    {}", patch.display()));
        }
        if let Some(stage) = &concluded.stage {
            self.screen.note(&format!("copy     {}", stage.display()));
        }
        self.screen.note(&format!("receipt  {}", receipt.display()));
        if let Some(session) = &self.session {
            let quote = if self.backend.contains(char::is_whitespace) { "'" } else { "" };
            let backend = format!("{quote}{}{quote}", self.backend);
            self.screen.note(&format!("go on    outrigger run … --backend {backend} --resume {session}"));
        }
        let facts = facts(concluded);
        match concluded.error() {
            None if concluded.outcome == Outcome::Complete => self.screen.good(&facts),
            None => self.screen.bad(&facts),
            Some(error) => {
                self.screen.bad(&error);
                if self.boxed && concluded.failure.is_some() {
                    self.screen.note("  box: strict; --read PATH opens files to it, the policy the network");
                }
                self.screen.note(&facts);
            }
        }
    }
}

/// The owner wants the run to end, and will hear no more of it until it does.
pub(super) fn cancelling(format: Format) {
    let message = "cancelling; once more to kill it";
    match format {
        Format::Json => say::object(&Remark { event: "cancelling", message }),
        Format::Text => anstream::eprintln!("{message}"),
    }
}

#[derive(Serialize)]
struct Recovered<'a> {
    event: &'static str,
    receipt: &'a Path,
    events: u64,
}

/// A run whose host was killed has its receipt now, or still has none.
pub(super) fn recovered(sealed: Result<Sealed, RecordError>, format: Format) {
    match (sealed, format) {
        (Ok(Sealed { path, events, .. }), Format::Json) => {
            say::object(&Recovered { event: "recovered", receipt: &path, events });
        }
        (Ok(Sealed { path, .. }), Format::Text) => {
            Screen::new()
                .note(&format!("a run whose host was killed has its receipt now: {}", path.display()));
        }
        (Err(error), Format::Json) => say::object(&Remark { event: "warning", message: &error.to_string() }),
        (Err(error), Format::Text) => Screen::new().warn(&error.to_string()),
    }
}

fn was_applied(concluded: &Concluded) -> bool {
    matches!(concluded.applied, Some(Ok(_)))
}

/// One line: outcome, time, events, tokens, money.
fn facts(concluded: &Concluded) -> String {
    let mut facts = vec![
        concluded.outcome.to_string(),
        format!("{:.1} s", concluded.took.as_secs_f64()),
        format!("{} events", concluded.events),
    ];
    let usage = &concluded.usage;
    if usage.input_tokens.is_some() || usage.output_tokens.is_some() {
        let count = |tokens: Option<u64>| tokens.unwrap_or(0);
        facts.push(format!("{} tokens in, {} out", count(usage.input_tokens), count(usage.output_tokens)));
    }
    if let Some(money) = usage.estimated_cost_usd {
        facts.push(format!("${money:.4}"));
    }
    facts.join(" · ")
}

fn exit_code(concluded: &Concluded) -> u8 {
    match &concluded.ending {
        Ending::Cancelled => return CANCELLED,
        Ending::Protocol => return PROTOCOL,
        Ending::Budget | Ending::Timeout => return PARTIAL,
        Ending::Policy | Ending::Fatal | Ending::Stalled | Ending::Exited | Ending::Other(_) => {
            return FAILED;
        }
        Ending::Final => {}
    }
    match &concluded.outcome {
        Outcome::Complete if matches!(concluded.applied, Some(Err(_))) => FAILED,
        Outcome::Complete => COMPLETE,
        Outcome::Partial => PARTIAL,
        Outcome::Failed | Outcome::Other(_) => FAILED,
    }
}
