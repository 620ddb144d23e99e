//! A conversation with one child, as raw as the rules need it: lines in, lines out, and how it ended.

use std::time::Duration;

use outrigger_supervise::driver::{Child, Output, Session, Supervisor};
use outrigger_supervise::launch::Status as ExitStatus;
use outrigger_supervise::ready::Ready;
use outrigger_supervise::spec::{Rules, Spec};
use outrigger_supervise::state::{Heartbeat, Restart};
use outrigger_wire::line::{Item, LineReadError, LineReader, dialect};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::time::timeout;

use crate::host::BackendSpec;

/// One child, spoken to line by line. Dropping it kills it with everything it started.
pub(super) struct Conversation {
    child: Child,
    _session: Session,
    input: Option<pipe::Sender>,
    output: LineReader<Output>,
}

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Line(String),
    /// The output is no stream of lines: the reason and the beginning of what is wrong.
    Broken(String),
    Closed,
    Nothing,
}

impl Conversation {
    /// Starts the child, or says why that failed.
    pub(super) async fn start(supervisor: &Supervisor, spec: &BackendSpec) -> Result<Self, String> {
        let rules = Rules {
            ready: Ready::OnSpawn,
            heartbeat: Heartbeat::None,
            restart: Restart::Never,
            logs: spec.logs.clone(),
        };
        let mut supervised =
            Spec::new(&*spec.name, spec.program.clone(), spec.cwd.clone(), spec.sandbox.clone(), rules)
                .args(spec.args.iter().cloned())
                .spoken_to();
        supervised.program.environment = spec.environment.clone();
        let child = supervisor.start(supervised).map_err(|error| error.to_string())?;
        let Some(mut session) = child.next_session().await else {
            let report = child.last_report();
            return Err(report.map_or_else(|| "it did not start".to_owned(), |report| report.to_string()));
        };
        let (Some(input), Some(output)) = (session.stdin.take(), session.stdout.take()) else {
            return Err("it was started without pipes".to_owned());
        };
        let output = LineReader::new(output, dialect::ABP);
        Ok(Self { child, _session: session, input: Some(input), output })
    }

    /// Says a line. A child that has closed its input does not hear it, which shows in what it says next.
    pub(super) async fn say(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(format!("{line}\n").as_bytes()).await;
        }
    }

    pub(super) fn close_input(&mut self) {
        self.input = None;
    }

    pub(super) async fn next(&mut self, within: Duration) -> Next {
        match timeout(within, self.output.next()).await {
            Err(_) => Next::Nothing,
            Ok(Ok(Some(Item::Line(line)))) => Next::Line(line.text_lossy().into_owned()),
            Ok(Ok(Some(Item::TooLong(_) | Item::Defective(_)))) => {
                Next::Broken("a defective line".to_owned())
            }
            Ok(Ok(None)) => Next::Closed,
            Ok(Err(LineReadError::Line(error))) => Next::Broken(error.to_string()),
            Ok(Err(LineReadError::Io(error))) => Next::Broken(error.to_string()),
        }
    }

    /// Closes its input and waits for its end: the exit status, or nothing when it stays.
    pub(super) async fn end(mut self, within: Duration) -> Option<ExitStatus> {
        self.close_input();
        let Self { child, mut output, .. } = self;
        let drained = async {
            // What it still says must not keep it from leaving.
            while let Ok(Some(_)) = output.next().await {}
            child.wait().await
        };
        match timeout(within, drained).await {
            Ok(outcome) => outcome.report.and_then(|report| report.status),
            Err(_) => {
                child.kill().await;
                None
            }
        }
    }

    /// Whether it has ended, after it closed its output.
    pub(super) async fn exit(&self, within: Duration) -> Option<ExitStatus> {
        let outcome = timeout(within, self.child.wait()).await.ok()?;
        outcome.report.and_then(|report| report.status)
    }
}
