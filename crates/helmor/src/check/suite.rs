//! Who tries the rules: starts children, replaces those that do not survive, and writes down what was found.

use std::time::Duration;

use outrigger_supervise::driver::Supervisor;
use outrigger_wire::conformance::{Report, Trouble, demand};
use serde_json::Value;

use super::conversation::{Conversation, Next, left};
use super::rules::{CONVERSATION, FRAMES, LIFE, READY_FIRST, STARTS};
use crate::host::BridgeSpec;
use crate::protocol::ProviderName;

/// How long a child may take for what, and what it is tried with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From spawn to `ready`.
    pub ready: Duration,
    /// From a request to its answer, and from a stop to the end of the stream.
    pub answer: Duration,
    /// From one event of a turn to the next.
    pub stream: Duration,
    /// Within which a heartbeat must come on a turn that lasts. `None`: it is not waited for.
    pub heartbeat: Option<Duration>,
    /// From the reason to leave to its exit.
    pub exit: Duration,
    /// How long nothing may come before we believe that nothing will.
    pub quiet: Duration,
    /// How many lines of garbage it is told.
    pub garbage: usize,
    /// The turns that it is tried with. `None`: those of `scripted`, if it knows that.
    pub turns: Option<Turns>,
}

/// Turns of a real provider. They may cost money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Whose.
    pub provider: ProviderName,
    /// A prompt whose turn ends by itself.
    pub short: String,
    /// A prompt whose turn lasts until it is stopped, longer than a heartbeat. `None`: there is none.
    pub long: Option<String>,
}

impl Turns {
    /// Those of a script: it has a turn for each of these prompts.
    #[must_use]
    pub fn scripted() -> Self {
        Self {
            provider: ProviderName::Scripted,
            short: "check-short".to_owned(),
            long: Some("check-long".to_owned()),
        }
    }
}

impl Limits {
    /// What hosts of the original allow: 10 s to start, 5 s for an answer, 45 s for a piece of a turn, 20 s for a heartbeat, 2 s
    /// to leave. 10,000 lines of garbage.
    #[must_use]
    pub fn usual() -> Self {
        let secs = Duration::from_secs;
        Self {
            ready: secs(10),
            answer: secs(5),
            stream: secs(45),
            heartbeat: Some(secs(20)),
            exit: secs(2),
            quiet: Duration::from_millis(200),
            garbage: 10_000,
            turns: None,
        }
    }
}

/// Tries every rule on a sidecar.
pub async fn run(supervisor: &Supervisor, spec: &BridgeSpec, limits: &Limits) -> Report {
    let turns = limits.turns.clone().unwrap_or_else(Turns::scripted);
    let mut suite = Suite { supervisor, spec, limits: limits.clone(), turns, works: None, noise: None };
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
    spec: &'s BridgeSpec,
    pub(super) limits: Limits,
    pub(super) turns: Turns,
    /// Whether the provider of the turns works here, once that is known: why not.
    pub(super) works: Option<Result<(), String>>,
    noise: Option<String>,
}

impl Suite<'_> {
    /// Starts a child and waits until it is ready; also what it said first.
    pub(super) async fn ready(&mut self) -> Result<(Conversation, Value), Trouble> {
        let started = Conversation::start(self.supervisor, self.spec, self.limits.clone()).await;
        let mut talk = started.map_err(|why| Trouble::broken(format!("it cannot be started: {why}")))?;
        let within = self.limits.ready;
        let first = match talk.next(within).await {
            Next::Event(event) => event,
            Next::Closed => {
                let exit = talk.exit(self.limits.exit).await;
                return Err(Trouble::broken(format!("it {} before it was ready", left(exit))));
            }
            Next::Nothing => {
                return Err(Trouble::broken(format!("nothing was on its standard output within {within:?}")));
            }
        };
        if first["type"] != "ready" {
            talk.until("`ready`", within, |event| event["type"] == "ready").await?;
        }
        Ok((talk, first))
    }

    /// The first child, and what there is to say about how it began.
    async fn boot(&mut self, report: &mut Report) -> Option<Conversation> {
        let (talk, first) = match self.ready().await {
            Ok(ready) => ready,
            Err(trouble) => {
                report.judged(&STARTS, Err(trouble));
                report.judged(&READY_FIRST, Err(Trouble::Unseen("it did not start".to_owned())));
                return None;
            }
        };
        report.judged(&STARTS, Ok("it does".to_owned()));
        let is_first = match &talk.noise {
            Some(noise) => {
                let detail = "it is something else".to_owned();
                Err(Trouble::Broken { detail, evidence: Some(noise.clone()) })
            }
            None => demand(first["type"] == "ready" && first["version"] == 1, "it is something else", &first),
        };
        report.judged(&READY_FIRST, is_first.map(|()| "it is".to_owned()));
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
                None => self.ready().await.map(|(talk, _)| talk),
            };
            let Ok(mut talk) = talk else {
                report.judged(rule, Err(Trouble::Unseen("it could not be started again".to_owned())));
                continue;
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
