//! One attempt: the runtime is started, told what was said, listened to, answered, steered, and stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use outrigger_abp::govern::{Approver, EndReason, Governor, Limits, OnDenied, Rules, RunClock, Verdict};
use outrigger_abp::protocol::{AgentEvent, BackendIdentity, EventKind, Usage};
use outrigger_steerable::host::{NewSession, Sidecar, SteerBy, Steered, Stream, StreamEnd, StreamEvent};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::ask::Put;
use super::ending::{End, Stop};
use super::plan::Plan;
use super::translate::{self, Translator};
use super::{Talk, capabilities, runtime, terms};
use crate::backends::order::job::Window;
use crate::backends::order::memory::Memory;
use crate::backends::seal::{self, Sealing};
use crate::backends::turns::{First, first_of};
use crate::chat::ask::{Asked, Asker};
use crate::runs::backend::{Again, NotHeard};
use crate::runs::state::Moment;
use crate::runs::{Answer, Approval, Attempt, Choice, Concluded, Control, Ended, RunId, Teller};

/// How long words wait for more: twenty times a second is as good as at once.
const TOGETHER: Duration = Duration::from_millis(50);

/// How long a turn that was told to stop may take.
const GRACE: Duration = Duration::from_secs(10);

/// The most that an agent may ask at the same time.
const MAX_OPEN: usize = 64;

/// Does an attempt.
pub(super) async fn attempt(talk: &Talk, attempt: Attempt) -> Concluded {
    let Attempt { run, number, order, state, teller, mut control, receipts } = attempt;
    let plan = match Plan::of(talk, &run, &order.request) {
        Ok(plan) => plan,
        Err(why) => return Concluded::Ended(Box::new(Ended::failed("fatal", why, Again::Nobody))),
    };
    let work_order = plan.order.clone();
    let memory = Memory::of(&state);
    let spoken = match first_of(talk.turns.take(&plan.transcript), &mut control).await {
        First::Come(_turn) => converse(talk, plan, memory, &run, number, &teller, &mut control).await,
        First::Cancelled { why } => Ok(Spoken::without_a_word(&Stop::Cancelled(why))),
        First::Leaving => return Concluded::Unbegun,
    };
    let Ok(Spoken { end, usage, version, account, value, leaving }) = spoken else {
        return Concluded::Ended(Box::new(Ended::failed("fatal", NotHeard.to_string(), Again::Same)));
    };
    let End { ending, outcome, phase, again, error } = end;
    let sealing = Sealing {
        run,
        attempt: number,
        order: work_order,
        backend: BackendIdentity { id: talk.name.clone(), backend_version: version, adapter_version: None },
        capabilities: capabilities(),
        ending: ending.clone(),
        error: error.clone(),
        outcome,
        usage,
        account,
    };
    let receipt = match teller.flush().await {
        Ok(()) => match seal::seal(&teller, &receipts, sealing).await {
            Ok(receipt) => Some(receipt),
            Err(why) => {
                // The run has ended as it has; that it has no receipt is said.
                let _ = teller.note(format!("there is no receipt: {why}")).await;
                None
            }
        },
        Err(NotHeard) => None,
    };
    if leaving == Leaving::Cut {
        return Concluded::Drained;
    }
    let ending = ending.as_str().to_owned();
    let spent = None;
    Concluded::Ended(Box::new(Ended { phase, error, ending, receipt, value, patch: None, again, spent }))
}

/// Whether the end of the daemon cut it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    Cut,
    No,
}

/// What came of a conversation.
struct Spoken {
    end: End,
    usage: Usage,
    /// Of the runtime, if it was there.
    version: Option<String>,
    account: Map<String, Value>,
    /// The structured answer, if one was wanted.
    value: Option<Value>,
    leaving: Leaving,
}

impl Spoken {
    fn without_a_word(stop: &Stop) -> Self {
        let leaving = match stop {
            Stop::Leaving => Leaving::Cut,
            Stop::Cancelled(_) | Stop::Governed(_) => Leaving::No,
        };
        Self { leaving, ..Self::unbegun(End::stopped(stop)) }
    }

    fn unbegun(end: End) -> Self {
        Self {
            end,
            usage: Usage::default(),
            version: None,
            account: Map::new(),
            value: None,
            leaving: Leaving::No,
        }
    }
}

/// Talks, from the start of the runtime to its end.
async fn converse(
    talk: &Talk,
    plan: Plan,
    memory: Memory,
    run: &RunId,
    number: u32,
    teller: &Teller,
    control: &mut mpsc::Receiver<Control>,
) -> Result<Spoken, NotHeard> {
    let Plan { order, transcript, cwd, flags, mut members, model, window, notes } = plan;
    for note in notes {
        teller.note(note).await?;
    }
    let rules = Rules {
        run_id: outrigger_abp::protocol::RunId::new(crate::runs::receipt_id(run, number)),
        subject: talk.name.clone(),
        asks: Vec::new(),
        limits: Limits::none(),
        on_denied: OnDenied::End,
        // The runtime asks a person for every call that does more than read, whatever the policy says.
        approver: Approver::Everything,
    };
    let governor = match Governor::new(&order, &cwd, rules, None) {
        Ok(governor) => governor,
        Err(error) => return Ok(Spoken::unbegun(End::impossible(error.to_string()))),
    };
    let spec = match runtime(&talk.name, &cwd, &flags) {
        Ok(spec) => spec,
        Err(why) => return Ok(Spoken::unbegun(End::impossible(why))),
    };
    let (asker, asked) = Asker::new();
    let starting = Sidecar::start(&talk.supervisor, &spec, terms(), Arc::new(asker));
    let sidecar = match first_of(starting, control).await {
        First::Come(Ok(sidecar)) => sidecar,
        First::Come(Err(error)) => return Ok(Spoken::unbegun(End::unstarted(&error))),
        First::Cancelled { why } => return Ok(Spoken::without_a_word(&Stop::Cancelled(why))),
        First::Leaving => return Ok(Spoken::without_a_word(&Stop::Leaving)),
    };
    let version = sidecar.hello().map(|hello| hello.version);
    if number > 1 && goes_on(&sidecar, &transcript, &order.task).await {
        members.insert("messages".to_owned(), json!([]));
        teller.note("the conversation goes on from where the attempt before was cut").await?;
    }
    let opened = async {
        // Made once and found again: a session of that name keeps what it has.
        if sidecar.resume_session(&transcript).await.is_err() {
            let mut session = NewSession::of_chat(&transcript);
            session.session_id = Some(transcript.clone());
            let title = json!({ "title": crate::say::short(&order.task) });
            session.stage_data = serde_json::value::to_raw_value(&title).ok();
            sidecar.create_session(&session).await?;
        }
        sidecar.stream(&members).await
    };
    let spoken = match opened.await {
        Err(error) => Ok(Spoken { version: version.clone(), ..Spoken::unbegun(End::refused(&error)) }),
        Ok(stream) => {
            let turn = Turn {
                teller,
                number,
                sidecar: &sidecar,
                stream,
                asked,
                open: BTreeMap::new(),
                puts: 0,
                memory,
                window,
                governor,
                clock: RunClock::since(std::time::Instant::now()),
                translator: Translator::default(),
                flush_at: None,
                stop: None,
            };
            turn.run(control, &model, version).await
        }
    };
    // Whatever happened, nothing of it stays.
    sidecar.shutdown().await;
    spoken
}

/// Whether the transcript already has what was said and waits for an answer: the attempt before was cut, and nothing of what it did
/// need be done again.
async fn goes_on(sidecar: &Sidecar, transcript: &str, task: &str) -> bool {
    let Ok(found) = sidecar.messages(transcript).await else { return false };
    waits_for_an_answer(&found.messages, task)
}

/// Whether these messages end with what was said last, or with what came of a call that it led to.
fn waits_for_an_answer(messages: &[Map<String, Value>], task: &str) -> bool {
    let role = |message: &Map<String, Value>| message.get("role").and_then(Value::as_str).map(str::to_owned);
    let last = messages.last().and_then(role);
    let said = messages.iter().rev().find(|message| role(message).as_deref() == Some("user"));
    let same = said.and_then(|message| message.get("content")?.as_str()) == Some(task);
    same && matches!(last.as_deref(), Some("user" | "tool"))
}

/// A turn under way.
struct Turn<'a> {
    teller: &'a Teller,
    number: u32,
    sidecar: &'a Sidecar,
    stream: Stream,
    asked: mpsc::Receiver<Asked>,
    /// What waits for a person, by its key.
    open: BTreeMap<String, Asked>,
    puts: u64,
    memory: Memory,
    window: Window,
    governor: Governor,
    clock: RunClock,
    translator: Translator,
    flush_at: Option<Instant>,
    /// Why it was told to stop, and until when it may.
    stop: Option<(Stop, Instant)>,
}

impl Turn<'_> {
    async fn run(
        mut self,
        control: &mut mpsc::Receiver<Control>,
        model: &str,
        version: Option<String>,
    ) -> Result<Spoken, NotHeard> {
        let message = format!("{model} is asked").into();
        self.tell(AgentEvent::now(EventKind::RunStarted { message })).await?;
        let end = loop {
            let flush_at = self.flush_at;
            let stop_at = self.stop.as_ref().map(|(_, at)| *at);
            tokio::select! {
                event = self.stream.next() => match event {
                    Some(StreamEvent::Chunk(chunk)) => {
                        let events = self.translator.chunk(&chunk);
                        self.tell_all(events).await?;
                        if self.translator.waits() && self.flush_at.is_none() {
                            self.flush_at = Some(Instant::now() + TOGETHER);
                        }
                    }
                    Some(StreamEvent::Missed(count)) => {
                        self.teller.note(format!("{count} pieces of the answer were missed")).await?;
                    }
                    Some(StreamEvent::End(end)) => break end,
                    // There is exactly one end, and it was seen.
                    None => break StreamEnd::Done(outrigger_steerable::host::Done::default()),
                },
                Some(asked) = self.asked.recv() => self.put(asked).await?,
                command = control.recv(), if self.stop.is_none() => match command {
                    Some(command) => self.command(command).await?,
                    None => self.stop(Stop::Leaving).await,
                },
                () = until(flush_at) => {
                    self.flush_at = None;
                    let events = self.translator.flush();
                    self.tell_all(events).await?;
                }
                // It was asked to stop and does not: its stream ends with its process.
                () = until(stop_at) => {
                    self.sidecar.kill().await;
                    if let Some((_, at)) = &mut self.stop {
                        *at = Instant::now() + GRACE;
                    }
                }
            }
        };
        self.end(end, version).await
    }

    async fn end(mut self, end: StreamEnd, version: Option<String>) -> Result<Spoken, NotHeard> {
        let rest = self.translator.message();
        self.tell_all(rest).await?;
        let (trace, usage, output) = match &end {
            StreamEnd::Done(done) => (&done.trace_id, done.usage, done.output.as_deref()),
            StreamEnd::Failed(failure) => {
                self.tell(translate::failed(failure)).await?;
                (&failure.trace_id, None, None)
            }
            StreamEnd::Lost(_) => (&None, None, None),
        };
        if let Some(usage) = usage {
            self.tell(translate::used(usage)).await?;
        }
        if let Some(trace) = trace {
            self.teller.note(format!("trace {trace}")).await?;
        }
        let stop = self.stop.as_ref().map(|(stop, _)| stop);
        let verdict = End::of(&end, stop);
        let leaving = match (stop, &verdict.error) {
            (Some(Stop::Leaving), Some(_)) => Leaving::Cut,
            _ => Leaving::No,
        };
        if verdict.error.is_none() {
            let message = "the agent has answered".into();
            self.tell(AgentEvent::now(EventKind::RunCompleted { message })).await?;
        }
        self.governor.close(&self.clock);
        let account = match serde_json::to_value(self.governor.account(None)) {
            Ok(Value::Object(members)) => members,
            Ok(_) | Err(_) => Map::new(),
        };
        Ok(Spoken {
            usage: self.governor.usage(),
            value: output.and_then(|output| serde_json::from_str(output.get()).ok()),
            end: verdict,
            version,
            account,
            leaving,
        })
    }

    async fn tell_all(&mut self, events: Vec<AgentEvent<'static>>) -> Result<(), NotHeard> {
        for event in events {
            self.tell(event).await?;
        }
        Ok(())
    }

    /// Writes an event down, then judges it.
    async fn tell(&mut self, event: AgentEvent<'static>) -> Result<(), NotHeard> {
        self.teller.event(&event).await?;
        let mut verdict = self.governor.event(&self.clock, &event);
        loop {
            match verdict {
                Verdict::Go | Verdict::Answer(_) | Verdict::Raise(_) => {}
                Verdict::Warn(text) => self.teller.note(text).await?,
                Verdict::End(reason) => self.govern(reason).await,
            }
            // Several verdicts about one event come one after the other.
            if self.governor.wake_at() != Some(Duration::ZERO) {
                return Ok(());
            }
            verdict = self.governor.tick(&self.clock);
        }
    }

    async fn govern(&mut self, reason: EndReason) {
        self.stop(Stop::Governed(reason)).await;
    }

    async fn stop(&mut self, stop: Stop) {
        if self.stop.is_some() {
            return;
        }
        self.stop = Some((stop, Instant::now() + GRACE));
        // Whoever waits for a person need not any more.
        self.open.clear();
        // If it does not hear, its time runs out.
        let _ = self.sidecar.cancel(self.stream.id()).await;
    }

    /// Puts something to a person, unless somebody said it before.
    async fn put(&mut self, asked: Asked) -> Result<(), NotHeard> {
        let refuse = |why: &str| Answer { reason: Some(why.to_owned()), ..Answer::plain(Choice::Deny) };
        if self.stop.is_some() {
            asked.give(&refuse("the run is ending"), "daemon");
            return Ok(());
        }
        if self.open.len() >= MAX_OPEN {
            asked.give(&refuse("too many questions are open"), "daemon");
            return Ok(());
        }
        // What was said so far belongs before the question.
        let events = self.translator.flush();
        self.tell_all(events).await?;
        self.puts += 1;
        let deadline = self.window.within.map(|within| Moment::now().after(within));
        let new = asked.put(format!("p{}", self.puts), deadline, self.window);
        if let Some(recalled) = self.memory.recall(&new.tool, &new.input_sha256) {
            let word = recalled.answer.choice.word();
            let note = format!(
                "{}: {word} by {} to an earlier attempt ({}) holds",
                new.tool, recalled.by.0, recalled.id.0
            );
            self.teller.note(note).await?;
            asked.give(&recalled.answer, &recalled.by.0);
            return Ok(());
        }
        let key = new.key.clone();
        match self.teller.ask(new).await {
            Ok(_) => {
                self.open.insert(key, asked);
                Ok(())
            }
            // Either the run has asked too much, or nothing can be written any more, which the next event shows.
            Err(NotHeard) => {
                asked.give(&refuse("this run has asked too much already"), "daemon");
                self.teller
                    .note(format!("nobody was asked about {key}: the run has asked too much already"))
                    .await
            }
        }
    }

    async fn command(&mut self, command: Control) -> Result<(), NotHeard> {
        match command {
            Control::Cancel { why } => self.stop(Stop::Cancelled(why)).await,
            Control::Drain => self.stop(Stop::Leaving).await,
            Control::Answered(approval) => self.answered(&approval),
            Control::Steer { text } => return self.steer(&text).await,
        }
        Ok(())
    }

    fn answered(&mut self, approval: &Approval) {
        if approval.attempt != self.number {
            return;
        }
        if let Some(given) = &approval.given
            && let Some(asked) = self.open.remove(&approval.key)
        {
            asked.give(&given.answer, &given.by.0);
        }
    }

    async fn steer(&self, text: &str) -> Result<(), NotHeard> {
        let problem = match self.sidecar.steer(self.stream.id(), text, SteerBy::AsTheTurnSays).await {
            Ok(Steered::Accepted) => return Ok(()),
            Ok(Steered::Refused(why)) => why,
            Err(error) => error.to_string(),
        };
        self.teller.note(format!("what was said did not reach the agent: {problem}")).await
    }
}

/// Waits for a moment that may never come.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_that_was_cut_goes_on_and_one_that_was_answered_does_not() {
        let messages = |roles: &[(&str, &str)]| -> Vec<Map<String, Value>> {
            let one = |(role, content): &(&str, &str)| {
                let message = json!({ "role": role, "content": content });
                message.as_object().cloned().unwrap_or_default()
            };
            roles.iter().map(one).collect()
        };
        let cases: [(&[(&str, &str)], bool); 7] = [
            (&[], false),
            (&[("user", "do it")], true),
            (&[("user", "do it"), ("assistant", ""), ("tool", "ok")], true),
            (&[("user", "do it"), ("assistant", "done")], false),
            (&[("user", "something else")], false),
            (&[("user", "do it"), ("assistant", "done"), ("user", "and that")], false),
            (&[("user", "before"), ("assistant", "yes"), ("user", "do it")], true),
        ];
        for (roles, expected) in cases {
            assert_eq!(waits_for_an_answer(&messages(roles), "do it"), expected, "{roles:?}");
        }
    }
}
