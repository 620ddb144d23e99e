//! One child that speaks abp: started, greeted, given runs one after the other, stopped.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::driver::{Child, Output, Session, Supervisor};
use outrigger_supervise::logs::LogLine;
use outrigger_supervise::report::Report;
use outrigger_supervise::sandbox::Enforced;
use outrigger_supervise::state::{Cause, Fault, Ladder};
use outrigger_wire::line::{Head, LineReader};

use super::failure::{Failure, FailureKind, Fatal};
use super::hear::{Heard, broken_stream, hear, policy};
use super::outbox::Outbox;
use super::process::{Process, span};
use super::spec::BackendSpec;
use super::terms::{Noise, Terms};
use super::warning::{Warning, Warnings};
use crate::protocol::{Envelope, Hello, RunId};

/// One child. Dropping it kills it with everything it started; so does dropping a run in the middle.
pub struct Sidecar {
    pub(super) hello: Hello,
    pub(super) terms: Terms,
    /// `None` once the child is lost, or while a run has it.
    pub(super) link: Option<Link>,
    pub(super) last_run: Option<RunId>,
    /// How it ended, once it is lost.
    pub(super) report: Option<Arc<Report>>,
    pub(super) standing: Standing,
    name: String,
    warnings: Warnings,
}

/// Everything is reaped, but a descriptor may have been passed to a stranger: the stream gets this long to end.
pub(super) const DRAIN: Duration = Duration::from_millis(500);

/// What a conversation goes through.
pub(super) struct Link {
    pub(super) process: Process,
    pub(super) reader: LineReader<Output>,
    pub(super) outbox: Outbox,
}

/// Whether a child may be given another run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Good,
    /// It said something after the end of a run, or leaves unread what it is told.
    Spent,
}

/// What remains of a child that was stopped.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// How its process ended.
    pub report: Option<Arc<Report>>,
    /// What it said after its last run.
    pub warnings: Warnings,
}

impl Sidecar {
    /// Starts a child and waits for its hello. A child that fails here is dead when this returns.
    ///
    /// # Errors
    ///
    /// When it cannot be started, says anything else than hello, says it too late, or speaks another version.
    pub async fn start(supervisor: &Supervisor, spec: &BackendSpec, terms: &Terms) -> Result<Self, Failure> {
        let unborn = |what: String, report: Option<Arc<Report>>| Failure {
            kind: FailureKind::Spawn,
            name: spec.name.clone(),
            what,
            fatal: None,
            stderr: report.as_ref().map(|report| report.stderr.clone()).unwrap_or_default(),
            report,
        };
        let child = supervisor
            .start(spec.supervised(terms))
            .map_err(|error| unborn(format!("cannot be started: {error}"), None))?;
        let Some(session) = child.next_session().await else {
            return Err(unborn("could not be started".to_owned(), child.last_report()));
        };
        // The spec gives both pipes to the session.
        let Some(mut link) = Link::new(child, session, terms) else {
            return Err(unborn("was started without pipes".to_owned(), None));
        };
        let mut warnings = Warnings::none();
        let hello = link.greet(terms, &mut warnings).await?;
        link.process.handle.attached().await;
        let (terms, name) = (terms.clone(), spec.name.clone());
        Ok(Self {
            hello,
            terms,
            link: Some(link),
            last_run: None,
            report: None,
            standing: Standing::Good,
            name,
            warnings,
        })
    }

    /// What it said of itself.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was not as it should be before its hello.
    pub fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// The terms, which may change between two runs.
    pub fn terms_mut(&mut self) -> &mut Terms {
        &mut self.terms
    }

    /// Its process, while it has one.
    pub fn pid(&self) -> Option<u32> {
        self.link.as_ref().map(|link| link.process.pid.get())
    }

    /// What its box is really made of, while it has one.
    pub fn enforced(&self) -> Option<&Enforced> {
        self.link.as_ref().map(|link| &link.process.enforced)
    }

    /// Its last lines on standard error.
    pub fn stderr_tail(&self) -> Vec<LogLine> {
        match (&self.link, &self.report) {
            (Some(link), _) => link.process.child.stderr_tail(),
            (None, Some(report)) => report.stderr.clone(),
            (None, None) => Vec::new(),
        }
    }

    /// Whether it can take another run: it is there, listens, and has kept to the protocol.
    pub fn is_reusable(&self) -> bool {
        self.standing == Standing::Good
            && self.link.as_ref().is_some_and(|link| link.process.is_alive() && link.outbox.is_open())
    }

    /// Stops it: its input is closed, then SIGTERM, then SIGKILL. Returns when everything is reaped.
    pub async fn stop(mut self, ladder: Ladder) -> Stopped {
        let mut warnings = Warnings::none();
        let report = match self.link.take() {
            Some(link) => link.stop(ladder, &mut warnings).await,
            None => self.report.take(),
        };
        Stopped { report, warnings }
    }
}

impl fmt::Debug for Sidecar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sidecar").field("name", &self.name).field("pid", &self.pid()).finish_non_exhaustive()
    }
}

impl Link {
    fn new(child: Child, mut session: Session, terms: &Terms) -> Option<Self> {
        let (stdin, stdout) = (session.stdin.take()?, session.stdout.take()?);
        let process = Process {
            handle: session.handle(),
            pid: session.pid,
            enforced: session.enforced,
            _requests: session.requests,
            child,
        };
        let reader = LineReader::new(stdout, policy(terms.max_line_bytes));
        Some(Self { process, reader, outbox: Outbox::new(stdin) })
    }

    /// Waits for hello. The deadline is the supervisor's: when it passes the child is killed, and its output ends.
    async fn greet(&mut self, terms: &Terms, warnings: &mut Warnings) -> Result<Hello, Failure> {
        let Self { process, reader, .. } = self;
        loop {
            let gone = process.child.wait();
            let next = tokio::select! {
                biased;
                next = reader.next() => next,
                _ = gone => Ok(None),
            };
            let heard = match next {
                Ok(Some(item)) => hear(item),
                Ok(None) => return Err(silent_end(process, terms, None).await),
                Err(error) => match broken_stream(error) {
                    Some((why, head)) => {
                        let what = format!("failed the handshake: it {why}: {head}");
                        return Err(refuse(process, FailureKind::Handshake, what, None).await);
                    }
                    None => return Err(silent_end(process, terms, None).await),
                },
            };
            let (what, fatal) = match heard {
                Heard::Message(Envelope::Hello(hello), _) => return compatible(process, *hello).await,
                Heard::Message(Envelope::Fatal { error, error_code, .. }, _) => {
                    let fatal = Fatal { error: error.into_owned(), error_code };
                    (
                        "failed the handshake: its first message is `fatal`, not `hello`".to_owned(),
                        Some(fatal),
                    )
                }
                Heard::Message(other, text) => {
                    let head = Head::of(text.as_bytes());
                    (
                        format!(
                            "failed the handshake: its first message is `{}`, not `hello`: {head}",
                            other.t()
                        ),
                        None,
                    )
                }
                Heard::Noise { why, head } => match terms.noise {
                    Noise::SkipAndWarn => {
                        warnings.add(Warning::Noise { why, head });
                        continue;
                    }
                    Noise::Fail => {
                        (format!("failed the handshake: its first line is not `hello` ({why}): {head}"), None)
                    }
                },
                Heard::Broken { why, head } => (
                    format!("failed the handshake: its first line is not a proper `hello` ({why}): {head}"),
                    None,
                ),
                Heard::Torn { head } => return Err(silent_end(process, terms, Some(head)).await),
            };
            return Err(refuse(process, FailureKind::Handshake, what, fatal).await);
        }
    }

    /// Closes its input, lets the supervisor go down the ladder, and reads what it still says.
    pub(super) async fn stop(mut self, ladder: Ladder, warnings: &mut Warnings) -> Option<Arc<Report>> {
        self.outbox.close();
        let stopped = self.process.child.stop(ladder);
        tokio::pin!(stopped);
        let report = loop {
            tokio::select! {
                biased;
                outcome = &mut stopped => break outcome.report,
                next = self.reader.next() => match next {
                    Ok(Some(item)) => late(item, warnings),
                    Ok(None) | Err(_) => break stopped.await.report,
                },
            }
        };
        let rest = async {
            while let Ok(Some(item)) = self.reader.next().await {
                late(item, warnings);
            }
        };
        // What is still in the pipe; whoever else holds it is not waited for.
        let _ = tokio::time::timeout(DRAIN, rest).await;
        report
    }

    /// Notes what was said after the end of a run and is already here.
    pub(super) fn note_late(&mut self, warnings: &mut Warnings) {
        while let Ok(Some(item)) = self.reader.next_buffered() {
            late(item, warnings);
        }
    }
}

/// Only what belongs to a run can be late; a pong or a log line cannot.
fn late(item: outrigger_wire::line::Item<'_>, warnings: &mut Warnings) {
    if let Heard::Message(message, _) = hear(item) {
        match message {
            Envelope::Pong { .. } | Envelope::Hello(_) => {}
            other => warnings.add(Warning::Late { t: other.t().to_owned() }),
        }
    }
}

/// Same major, or dead.
async fn compatible(process: &Process, hello: Hello) -> Result<Hello, Failure> {
    if hello.contract_version.is_compatible() {
        return Ok(hello);
    }
    let what = format!(
        "speaks {}, and this control plane takes only `abp/v0.*`",
        Head::of(hello.contract_version.as_str().as_bytes())
    );
    let report = process.lose(Fault::Incompatible, &what).await;
    Err(process.failure(FailureKind::Version, what, None, report))
}

async fn refuse(process: &Process, kind: FailureKind, what: String, fatal: Option<Fatal>) -> Failure {
    let report = process.lose(Fault::ProtocolViolation, &what).await;
    process.failure(kind, what, fatal, report)
}

/// Its output ended before hello: it left, or it was too late and was killed, or it closed its output and stayed.
async fn silent_end(process: &Process, terms: &Terms, torn: Option<Head>) -> Failure {
    let report = process.lose(Fault::ChannelLost, "it closed its standard output before it said hello").await;
    let cause = report.as_ref().map(|report| report.cause);
    let (kind, what) = match (cause, torn) {
        (Some(Cause::StartupTimeout), _) => {
            let within = span(terms.hello_within);
            (FailureKind::HelloTimeout, format!("did not say hello within {within}"))
        }
        (Some(Cause::ChannelLost), _) => (
            FailureKind::Handshake,
            "failed the handshake: it closed its standard output and kept running".to_owned(),
        ),
        (_, Some(head)) => (FailureKind::Exited, format!("exited in the middle of its first line: {head}")),
        (_, None) => (FailureKind::Exited, "exited before it said hello".to_owned()),
    };
    process.failure(kind, what, None, report)
}
