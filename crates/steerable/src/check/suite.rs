//! Who tries the rules: starts children, replaces those that do not survive, and writes down what was found.

use std::time::Duration;

use outrigger_supervise::driver::Supervisor;
use outrigger_wire::conformance::{Report, Trouble};
use serde_json::Value;

use super::conversation::{Conversation, Next};
use super::life;
use super::rules::{CONVERSATION, FRAMES, LIFE, MARKER, READY_FIRST, STARTS};
use super::server::Server;
use crate::host::SidecarSpec;

/// How long a child may take for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From spawn to its first answer.
    pub ready: Duration,
    /// From a call to its answer, and from a cancel to the end of the stream.
    pub answer: Duration,
    /// From one notification of a stream to the next.
    pub stream: Duration,
    /// From the reason to leave to its exit.
    pub exit: Duration,
    /// How long nothing may come before we believe that nothing will.
    pub quiet: Duration,
}

impl Limits {
    /// What hosts in the wild allow: 15 s to start, 5 s for an answer and an exit, 10 s for a piece of a stream.
    #[must_use]
    pub fn usual() -> Self {
        let secs = Duration::from_secs;
        Self {
            ready: secs(15),
            answer: secs(5),
            stream: secs(10),
            exit: secs(5),
            quiet: Duration::from_millis(200),
        }
    }
}

/// Tries every rule on a sidecar.
pub async fn run(supervisor: &Supervisor, spec: &SidecarSpec, limits: &Limits) -> Report {
    let mut suite =
        Suite { supervisor, spec, limits: *limits, server: Server::start().await.ok(), noise: None };
    let mut report = Report { checks: Vec::new() };
    let talk = suite.boot(&mut report).await;
    let is_there = talk.is_some();
    suite.converse(talk, &mut report).await;
    for (rule, judge) in LIFE {
        let verdict = match is_there {
            true => judge(&mut suite).await,
            false => Err(Trouble::Unseen("it did not start".to_owned())),
        };
        report.judged(rule, verdict);
    }
    let frames = match suite.noise.take() {
        None if is_there => Ok("every line is one".to_owned()),
        None => Err(Trouble::Unseen("it did not start".to_owned())),
        Some(line) => Err(Trouble::Broken { detail: "a line is none".to_owned(), evidence: Some(line) }),
    };
    report.judged(&FRAMES, frames);
    report
}

/// What all rules are tried with.
pub(super) struct Suite<'s> {
    supervisor: &'s Supervisor,
    spec: &'s SidecarSpec,
    pub(super) limits: Limits,
    pub(super) server: Option<Server>,
    noise: Option<String>,
}

impl Suite<'_> {
    /// Starts a child and waits for its first answer.
    pub(super) async fn greeted(&mut self, args: &[&str]) -> Result<(Conversation, Value), Trouble> {
        let started = Conversation::start(self.supervisor, self.spec, args, self.limits).await;
        let mut talk = started.map_err(|why| Trouble::broken(format!("it cannot be started: {why}")))?;
        let id = talk.send("system.ping", &Value::Null).await;
        let first = match talk.next(self.limits.ready).await {
            Next::Frame(frame) => frame,
            Next::Closed => {
                let exit = talk.exit(self.limits.exit).await;
                let how = super::conversation::left(exit);
                return Err(Trouble::broken(format!("it {how} before it answered a ping")));
            }
            Next::Nothing => {
                let within = self.limits.ready;
                return Err(Trouble::broken(format!("nothing was on its standard output within {within:?}")));
            }
        };
        if first["id"] != id {
            talk.answer(&id, self.limits.ready).await?;
        }
        Ok((talk, first))
    }

    /// The first child, and what there is to say about how it began.
    async fn boot(&mut self, report: &mut Report) -> Option<Conversation> {
        let (mut talk, first) = match self.greeted(&[]).await {
            Ok(greeted) => greeted,
            Err(trouble) => {
                report.judged(&STARTS, Err(trouble));
                for rule in [&MARKER, &READY_FIRST] {
                    report.judged(rule, Err(Trouble::Unseen("it did not start".to_owned())));
                }
                return None;
            }
        };
        report.judged(&STARTS, Ok("it does".to_owned()));
        report.judged(&MARKER, life::marker(&mut talk, self.limits).await);
        report.judged(&READY_FIRST, life::ready_first(&talk, &first));
        Some(talk)
    }

    /// The long conversation. A child that does not survive a rule is replaced for the next one.
    async fn converse(&mut self, talk: Option<Conversation>, report: &mut Report) {
        let Some(talk) = talk else {
            for (rule, _) in CONVERSATION {
                report.judged(rule, Err(Trouble::Unseen("it did not start".to_owned())));
            }
            return;
        };
        let mut current = Some(talk);
        for (rule, judge) in CONVERSATION {
            let talk = match current.take().filter(|talk| !talk.is_over()) {
                Some(talk) => Ok(talk),
                None => self.greeted(&[]).await.map(|(talk, _)| talk),
            };
            let mut talk = match talk {
                Ok(talk) => talk,
                Err(_) => {
                    report.judged(rule, Err(Trouble::Unseen("it could not be started again".to_owned())));
                    continue;
                }
            };
            let verdict = judge(self, &mut talk).await;
            let survived = match &verdict {
                Ok(_) | Err(Trouble::Unseen(_)) => true,
                // What it still says about this rule is not to disturb the next one.
                Err(Trouble::Broken { .. }) => false,
            };
            report.judged(rule, verdict);
            self.hear(&mut talk);
            current = survived.then_some(talk);
        }
    }

    /// Keeps what a conversation showed about standard output.
    pub(super) fn hear(&mut self, talk: &mut Conversation) {
        if let Some(noise) = talk.noise.take() {
            self.noise.get_or_insert(noise);
        }
    }
}
