//! A server that is a program of ours, spoken to over its standard input and output.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outrigger_supervise::driver::{Child, Supervisor};
use outrigger_supervise::ready::Ready;
use outrigger_supervise::sandbox::{Level, Limits, Network, Request};
use outrigger_supervise::spec::{Logs, Rules, Spec};
use outrigger_supervise::state::{Heartbeat, Ladder, Restart};
use outrigger_wire::line::dialect;
use outrigger_wire::peer::{
    Answer, BoxFuture, Call, CallError, CancelWire, Complaint, Crowded, Deadline, DuplicateIds, End, Handler,
    IncomingLimits, Lane, Note, OutboxLimits, Peer, PeerConfig, Reaction, Wiring,
};
use outrigger_wire::rpc::{EnvelopePolicy, ErrorObject, code};
use serde_json::value::RawValue;

use super::link::{Changed, LinkError};
use super::message::LIST_CHANGED;
use crate::chat::Secret;

const CONFIG: PeerConfig = PeerConfig {
    lines: dialect::STEERABLE,
    envelope: EnvelopePolicy::STANDARD,
    max_line_out: 16 << 20,
    max_calls: 256,
    incoming: IncomingLimits { running: 16, waiting: 64, notifications: 64, crowded: Crowded::Pause },
    outbox: OutboxLimits { bytes: 16 << 20, reply_bytes: 1 << 20, events: 256, event_bytes: 1 << 18 },
    write_stall: Duration::from_secs(60),
    drain: Duration::from_millis(500),
    cancel: CancelWire::Tell { method: "notifications/cancelled", member: "requestId" },
    duplicate_ids: DuplicateIds::Refuse,
};

/// How long we wait to hear why a server ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long a server gets after its input ended, and again after SIGTERM.
const LEAVES_WITHIN: Duration = Duration::from_secs(2);

/// Variables that a server gets, if we have them. Keys are not among them; who wants to give it one says so in `env`.
const PASSED: [&str; 27] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// A running server.
pub(super) struct StdioLink {
    peer: Peer,
    child: Child,
}

/// The program of a server, as the supervisor wants it. Whoever configured it trusts it, so its box is only there to hold
/// its processes together.
pub(super) fn program(
    name: &str,
    command: &str,
    args: &[String],
    env: &[(String, Secret)],
    cwd: Option<&Path>,
) -> Spec {
    let rules = Rules {
        ready: Ready::OnSpawn,
        heartbeat: Heartbeat::None,
        restart: Restart::Never,
        logs: Logs { tail_lines: 20, tail_bytes: 16 << 10, max_line_bytes: 4096, file: None },
    };
    let mut sandbox = Request::new(Level::Basic, Limits::as_the_host());
    sandbox.network = Network::Allow;
    let here = || std::env::current_dir().unwrap_or_else(|_| "/".into());
    let cwd = cwd.map_or_else(here, Path::to_owned);
    let spec = Spec::new(format!("mcp:{name}"), command, cwd, sandbox, rules)
        .args(args)
        .pass_env(PASSED)
        .spoken_to();
    env.iter().fold(spec, |spec, (name, value)| spec.set_env(name, value.reveal()))
}

impl StdioLink {
    pub(super) async fn start(supervisor: &Supervisor, spec: Spec, changed: Changed) -> Result<Self, String> {
        let child = supervisor.start(spec).map_err(|error| error.to_string())?;
        let Some(mut session) = child.next_session().await else {
            let report = child.wait().await.report;
            let why = report.map_or_else(|| "it was stopped".to_owned(), |report| report.to_string());
            return Err(format!("it could not be started: {why}"));
        };
        let (Some(stdin), Some(stdout)) = (session.stdin.take(), session.stdout.take()) else {
            return Err("it has no pipes".to_owned());
        };
        let peer = Peer::start(Wiring::new(stdout, stdin), Arc::new(Ear { changed }), CONFIG);
        Ok(Self { peer, child })
    }

    pub(super) async fn call(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>, LinkError> {
        if self.is_over() {
            return Err(LinkError::NotSent("it ended".to_owned()));
        }
        let answer = self.peer.call(method, Some(params), Deadline::Never).await;
        answer.map_err(|error| match error {
            CallError::Remote { error, .. } => LinkError::Refused(error.message),
            CallError::TooLong { .. } | CallError::Malformed { .. } | CallError::Deadline { .. } => {
                LinkError::Refused(error.to_string())
            }
            CallError::Ended { end: End::RemoteClosed, .. } => LinkError::Gone("it ended".to_owned()),
            CallError::Ended { end, .. } => LinkError::Gone(end.to_string()),
        })
    }

    pub(super) async fn notify(&self, method: &str) -> Result<(), LinkError> {
        let sent = self.peer.notify(Lane::Control, method, None).await;
        sent.map_err(|error| LinkError::Gone(error.to_string()))
    }

    pub(super) fn is_over(&self) -> bool {
        self.child.status().ended.is_some()
    }

    /// Why a server is of no use, with how it ended and what it said.
    pub(super) async fn last_words(&self, problem: &str) -> String {
        let ended = tokio::time::timeout(LAST_WORDS, self.child.wait()).await;
        match ended.ok().and_then(|outcome| outcome.report) {
            Some(report) => format!("{problem}\n{report}"),
            None => {
                let lines: Vec<String> = self.child.stderr_tail().into_iter().map(|line| line.text).collect();
                let said = if lines.is_empty() { String::new() } else { format!("\n{}", lines.join("\n")) };
                format!("{problem}{said}")
            }
        }
    }

    /// The end of its input is how a server is asked to leave; signals follow.
    pub(super) async fn close(&self) {
        self.peer.close().await;
        if tokio::time::timeout(LEAVES_WITHIN, self.child.wait()).await.is_err() {
            self.child.stop(Ladder { ask: Duration::ZERO, term: LEAVES_WITHIN }).await;
        }
    }
}

/// What a server may ask of us and tell us: whether we are there, and that its tools changed.
struct Ear {
    changed: Changed,
}

impl Handler for Ear {
    fn request(&self, call: Call) -> Answer {
        Answer::Now(match (call.method.as_str(), RawValue::from_string("{}".to_owned())) {
            ("ping", Ok(empty)) => Ok(empty),
            _ => Err(ErrorObject::new(code::METHOD_NOT_FOUND, format!("`{}` is not offered", call.method))),
        })
    }

    /// Servers that write their log to standard output are no reason to quarrel.
    fn complain(&self, _: &Complaint<'_>) -> Reaction {
        Reaction::Ignore
    }

    fn notification(&self, note: Note) -> Option<BoxFuture<()>> {
        if note.method == LIST_CHANGED {
            self.changed.note();
        }
        None
    }
}
