//! One attempt at a script: step, calls, answers, step, until it is done, at rest, or somebody wants it to end.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use outrigger_abp::protocol::{AgentEvent, BackendIdentity, EventKind, Outcome as How, Raw, Usage, WorkOrder};
use outrigger_abp::receipt::{Ending, Folder};
use outrigger_mustard::host::store::{CallId, Record};
use outrigger_mustard::host::{Capabilities, Ending as Stepped, Host, HostError, Plain, Run, TopLevelReturn};
use outrigger_policy::{Digest, Policy, Subject};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};

use super::decide::{Behind, By, Leave, Question, Stepping, Todo, decide};
use super::end::End;
use super::journal::{Journal, ReadError, Told};
use super::outcome::{HostCall, Outcome, Thrown};
use super::{NAME, manifest, replay, rules};
use crate::backends::seal::{Sealing, seal};
use crate::backends::tools::{ApprovalRule, Said, Tools, plain};
use crate::engine::EngineError;
use crate::runs::backend::{NewApproval, NotHeard};
use crate::runs::entry::Suspended;
use crate::runs::request::ToolChoice;
use crate::runs::state::Moment;
use crate::runs::{Attempt, Choice, Concluded, Control, DefaultAnswer, Ended, Order, RunId, Teller};

/// How many tools of one run may be at work at once.
const AT_ONCE: usize = 32;

/// How long tools that were begun have when the daemon leaves.
const DRAIN: Duration = Duration::from_secs(5);

/// The name that snapshots are sealed under: the same for every run, so that a fork can go on with a copy.
const SEALED_AS: &str = "run";

/// An attempt under way.
pub(super) struct Course<'a> {
    host: &'a Host,
    tools: &'a Tools,
    run: RunId,
    order: Order,
    /// What the receipt says was ordered.
    work_order: WorkOrder,
    policy: Policy,
    teller: Teller,
    control: mpsc::Receiver<Control>,
    receipts: Arc<Folder>,
    journal: Journal,
    /// How many suspensions there were before this one.
    step: u64,
    /// The calls of the snapshot that the script stands at.
    waiting: BTreeMap<u64, HostCall>,
    /// Those of them that are to be made, in their order.
    queue: VecDeque<Making>,
    /// Those of them that are queued or being made.
    busy: BTreeSet<u64>,
    tasks: JoinSet<Said>,
    /// Which task makes which call.
    makers: HashMap<Id, u64>,
    /// What the script has not heard yet.
    answers: BTreeMap<u64, Outcome>,
}

/// A call of a tool that is about to be made.
struct Making {
    call: u64,
    tool: String,
    by: By,
}

/// Why a course is not continued.
enum Stop {
    /// The script ended, or was ended.
    End(Box<End>),
    /// The daemon leaves.
    Drain,
    /// Nothing can be written down any more; somebody else goes on with what was.
    Silence,
}

impl From<End> for Stop {
    fn from(end: End) -> Self {
        Self::End(Box::new(end))
    }
}

impl From<NotHeard> for Stop {
    fn from(NotHeard: NotHeard) -> Self {
        Self::Silence
    }
}

impl From<EngineError> for Stop {
    fn from(_: EngineError) -> Self {
        Self::Silence
    }
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Engine(error) => error.into(),
            ReadError::Record(_) => End::failed(Ending::Fatal, error.to_string()).into(),
        }
    }
}

/// What there is when nothing more happens at once.
enum Gathered {
    /// Something that the script can go on with.
    Answers,
    /// Only people can help.
    Rest,
}

impl<'a> Course<'a> {
    /// Makes an attempt.
    pub(super) async fn run(host: &'a Host, tools: &'a Tools, attempt: Attempt) -> Concluded {
        let Attempt { run, number: _, order, state, teller, control, receipts } = attempt;
        let script = order.request.script.clone().unwrap_or_default();
        let prepared = order.request.work_order(run.as_str()).map_err(|error| error.to_string());
        let compiled = prepared.and_then(|work_order| {
            let policy = work_order.policy.compile().map_err(|error| error.to_string())?;
            // The receipt vouches for the script, which is what was to be done.
            Ok((WorkOrder { task: script, ..work_order }, policy))
        });
        let (work_order, policy) = match compiled {
            Ok(compiled) => compiled,
            Err(why) => {
                let ended = Ended::failed("fatal", why, crate::runs::backend::Again::Nobody);
                return Concluded::Ended(Box::new(ended));
            }
        };
        let mut course = Self {
            host,
            tools,
            run,
            order,
            work_order,
            policy,
            teller,
            control,
            receipts,
            journal: Journal::default(),
            step: 0,
            waiting: BTreeMap::new(),
            queue: VecDeque::new(),
            busy: BTreeSet::new(),
            tasks: JoinSet::new(),
            makers: HashMap::new(),
            answers: BTreeMap::new(),
        };
        let begun = state.attempt_events > 0;
        let travelled = course.travel(state.suspended, begun.then_some(()).map_or(Told::No, |()| Told::Yes));
        match travelled.await {
            Ok(()) => Concluded::AtRest,
            Err(Stop::End(end)) => course.conclude(*end).await,
            Err(Stop::Drain) => course.drain().await,
            Err(Stop::Silence) => Concluded::Drained,
        }
    }

    /// Goes from where it stands to where only people can help.
    async fn travel(&mut self, suspended: Option<Suspended>, started: Told) -> Result<(), Stop> {
        if suspended.is_some() || started == Told::Yes {
            let waiting = suspended.iter().flat_map(|suspended| &suspended.calls).map(|call| call.id).collect();
            self.journal = Journal::read(&self.teller, &waiting).await?;
            // A daemon that died while the end was written down had seen it already.
            if let Some(end) = self.journal.end.clone() {
                return Err(end.into());
            }
        }
        if started == Told::No {
            let message = "the script begins".into();
            self.teller.event(&AgentEvent::now(EventKind::RunStarted { message })).await?;
        }
        let mut record = match suspended {
            Some(suspended) => {
                let record = self.take_up(&suspended).await?;
                self.stand(&record)?;
                record
            }
            None => {
                let run = self.begin().await?;
                self.advance(run).await?
            }
        };
        loop {
            match self.gather().await? {
                Gathered::Rest => return Ok(()),
                Gathered::Answers => {
                    let run = self.go_on(record)?;
                    record = self.advance(run).await?;
                }
            }
        }
    }

    /// The script from its beginning.
    async fn begin(&mut self) -> Result<Run, Stop> {
        let (host, source) = (self.host.clone(), self.work_order.task.clone());
        let compiled = self.while_hearing(async move { host.compile(source, TopLevelReturn::Allowed).await });
        let script = compiled.await?.map_err(|error| End::not_compiled(&error))?;
        let request = &self.order.request;
        let table = request.tools.keys().fold(Capabilities::none(), |table, name| table.park(name));
        let mut run = self.host.run(&script).capabilities(table).rules(rules(&request.limits));
        run = run.seed(self.order.seed).now_ms(self.order.now_ms as f64);
        for (name, value) in &request.inputs {
            run = run.input(name, plain(value));
        }
        Ok(run)
    }

    /// The snapshot that an earlier life left.
    async fn take_up(&mut self, suspended: &Suspended) -> Result<Record, Stop> {
        let lost = |why: String| End::failed(Ending::Fatal, format!("the script cannot go on: {why}"));
        let bytes = self.teller.kept(&suspended.snapshot).await?;
        let bytes = bytes.ok_or_else(|| lost("its snapshot is not there".to_owned()))?;
        let opened = Record::from_sealed(self.host.key(), SEALED_AS, &bytes);
        Ok(opened.map_err(|error| lost(error.to_string()))?)
    }

    /// The script from where it stands, with the answers that there are.
    fn go_on(&mut self, record: Record) -> Result<Run, Stop> {
        let refused = |error: &dyn std::error::Error| End::failed(Ending::Fatal, error.to_string());
        let run = self.host.continue_record(record).map_err(|error| refused(&error))?;
        let mut run = run.rules(rules(&self.order.request.limits)).now_ms(self.order.now_ms as f64);
        for (call, outcome) in std::mem::take(&mut self.answers) {
            run = run.answer(CallId(call), outcome.reply());
        }
        Ok(run)
    }

    /// Takes a step, and writes down where it led to before anything is done about it.
    async fn advance(&mut self, run: Run) -> Result<Record, Stop> {
        let stepped = self.while_hearing(run.go()).await?;
        let record = match stepped.map_err(|failed| End::of_run(&failed.why))? {
            Stepped::Finished(finished) => return Err(End::completed(&finished.value).into()),
            Stepped::Parked(parked) => parked.record,
        };
        self.stand(&record)?;
        let sealed = record.to_sealed(self.host.key(), SEALED_AS);
        let snapshot_bytes = sealed.len() as u64;
        let snapshot = self.teller.keep(sealed).await?;
        let calls = self.waiting.values().map(HostCall::shown).collect();
        let attempt = self.teller.attempt();
        self.teller.suspended(Suspended { attempt, step: record.step, snapshot, snapshot_bytes, calls }).await?;
        Ok(record)
    }

    /// Stands at the calls of a snapshot. Those that waited before go on as they were.
    fn stand(&mut self, record: &Record) -> Result<(), Stop> {
        let mut before = std::mem::take(&mut self.waiting);
        for waiting in &record.calls {
            let id = waiting.call.0;
            let call = before.remove(&id).unwrap_or_else(|| HostCall::of(waiting));
            self.waiting.insert(id, call);
        }
        self.step = record.step;
        let waiting = &self.waiting;
        self.journal.retain(|call| waiting.contains_key(&call));
        match self.order.request.limits.host_calls {
            Some(limit) if waiting.keys().any(|call| *call > limit) => Err(End::too_many_calls(limit).into()),
            Some(_) | None => Ok(()),
        }
    }

    /// Waits for something while it listens to what is wanted.
    async fn while_hearing<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stop> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                control = self.control.recv() => self.hear(control).await?,
                done = &mut work => return Ok(done),
            }
        }
    }

    async fn hear(&mut self, control: Option<Control>) -> Result<(), Stop> {
        match control {
            None | Some(Control::Drain) => Err(Stop::Drain),
            Some(Control::Cancel { why }) => Err(End::cancelled(&why).into()),
            Some(Control::Steer { text: _ }) => Ok(self.teller.note("scripts take no steering").await?),
            Some(Control::Answered(approval)) => {
                if let Some(given) = approval.given.clone() {
                    self.journal.give(&approval.id, given);
                }
                Ok(())
            }
        }
    }

    /// Does what can be done about the calls that wait, until the script can go on or only people can help.
    async fn gather(&mut self) -> Result<Gathered, Stop> {
        loop {
            if self.order.recorded.is_some() {
                self.replay().await?;
            } else {
                self.consider().await?;
                self.launch().await?;
            }
            // Whatever takes no time is done before the script is woken for the first of it.
            tokio::task::yield_now().await;
            while let Some(joined) = self.tasks.try_join_next_with_id() {
                self.settle(joined).await?;
            }
            if let Ok(control) = self.control.try_recv() {
                self.hear(Some(control)).await?;
                continue;
            }
            if !self.answers.is_empty() {
                self.teller.flush().await?;
                return Ok(Gathered::Answers);
            }
            if self.tasks.is_empty() {
                return Ok(Gathered::Rest);
            }
            tokio::select! {
                control = self.control.recv() => self.hear(control).await?,
                Some(joined) = self.tasks.join_next_with_id() => self.settle(joined).await?,
            }
        }
    }

    /// Decides about every call that nothing was decided about.
    async fn consider(&mut self) -> Result<(), Stop> {
        let undecided = |call: &&HostCall| !self.busy.contains(&call.id) && !self.answers.contains_key(&call.id);
        let calls: Vec<HostCall> = self.waiting.values().filter(undecided).cloned().collect();
        for call in calls {
            match self.decide(&call) {
                Todo::Wait => {}
                Todo::Settled(outcome) => {
                    self.answers.insert(call.id, outcome);
                }
                Todo::Reply(outcome, by) => {
                    self.tell_call(&call, &by).await?;
                    self.tell_result(&call, outcome).await?;
                }
                Todo::Make(by) => {
                    let Behind::Tool { name: tool, .. } = self.behind(&call.capability) else { continue };
                    self.busy.insert(call.id);
                    self.queue.push_back(Making { call: call.id, tool, by });
                }
                Todo::Ask { reason, choices } => self.ask(&call, reason, choices).await?,
            }
        }
        Ok(())
    }

    fn decide(&self, call: &HostCall) -> Todo {
        let behind = self.behind(&call.capability);
        let judged = match &behind {
            Behind::Tool { name, .. } => name,
            Behind::Person | Behind::Value(_) | Behind::Nothing => &call.capability,
        };
        let policy = self.policy.check_tool(&Subject::new("the script"), judged);
        decide(&Question {
            call,
            behind: &behind,
            seen: self.journal.seen(call.id),
            policy: &policy,
            stepping: if self.order.request.step { Stepping::On } else { Stepping::Off },
            leave: if self.journal.is_always(&call.capability) { Leave::Given } else { Leave::None },
        })
    }

    /// What stands behind a name.
    fn behind(&self, capability: &str) -> Behind {
        let tool = |name: &String, strictest: ApprovalRule| match self.tools.find(name) {
            None => Behind::Nothing,
            Some(tool) => {
                let approval = match (strictest, tool.approval) {
                    (ApprovalRule::Never, ApprovalRule::Never) => ApprovalRule::Never,
                    (ApprovalRule::Always, _) | (_, ApprovalRule::Always) => ApprovalRule::Always,
                };
                Behind::Tool { name: name.clone(), approval, repeat: tool.repeat }
            }
        };
        match self.order.request.tools.get(capability) {
            None => Behind::Nothing,
            Some(ToolChoice::Person) => Behind::Person,
            Some(ToolChoice::Value(value)) => Behind::Value(value.clone()),
            Some(ToolChoice::Tool(name)) => tool(name, ApprovalRule::Never),
            Some(ToolChoice::Approved(name)) => tool(name, ApprovalRule::Always),
        }
    }

    async fn ask(&mut self, call: &HostCall, reason: String, choices: &[Choice]) -> Result<(), Stop> {
        let terms = self.order.request.approvals.as_ref();
        let within = terms.and_then(|terms| crate::duration::duration(terms.within.as_deref()?).ok());
        let new = NewApproval {
            key: call.id.to_string(),
            tool: call.capability.clone(),
            input: call.input.clone(),
            input_sha256: call.sha256(),
            reason,
            choices: choices.to_vec(),
            deadline: within.map(|within| Moment::now().after(within)),
            default: terms.map_or(DefaultAnswer::Deny, |terms| terms.default),
        };
        match self.teller.ask(new).await {
            Ok(asked) => {
                self.journal.ask(asked);
                Ok(())
            }
            // Either nothing can be written any more, or so much was asked that nobody is asked anything more.
            Err(NotHeard) => {
                self.teller.flush().await?;
                let message = format!("`{}`: this run has asked people too often", call.capability);
                self.tell_call(call, &By::Fault).await?;
                self.tell_result(call, Outcome::Thrown(Thrown::new("Denied", message, "too_many_approvals"))).await
            }
        }
    }

    /// Begins what is queued, as far as there is room. That it begins is written down before.
    async fn launch(&mut self) -> Result<(), Stop> {
        let room = AT_ONCE.saturating_sub(self.tasks.len()).min(self.queue.len());
        let begun: Vec<Making> = self.queue.drain(..room).collect();
        if begun.is_empty() {
            return Ok(());
        }
        for Making { call, by, .. } in &begun {
            if let Some(call) = self.waiting.get(call).cloned() {
                self.tell_call(&call, by).await?;
            }
        }
        self.teller.flush().await?;
        for Making { call, tool, .. } in begun {
            let Some(waiting) = self.waiting.get(&call) else { continue };
            let edited = self.journal.seen(call).and_then(|seen| seen.edited.as_ref());
            let args: Vec<Plain> = match edited {
                None => waiting.plain.clone(),
                Some(Value::Array(args)) => args.iter().map(plain).collect(),
                Some(single) => vec![plain(single)],
            };
            let tools = self.tools.clone();
            let task = self.tasks.spawn(async move { tools.call(&tool, args).await });
            self.makers.insert(task.id(), call);
        }
        Ok(())
    }

    /// A tool has answered.
    async fn settle(&mut self, joined: Result<(Id, Said), JoinError>) -> Result<(), Stop> {
        let (id, Said { result, aloud }) = match joined {
            Ok(done) => done,
            Err(error) => (error.id(), panicked()),
        };
        // Every task was put into the map when it was spawned, and a call waits until it is answered.
        let Some(call) = self.makers.remove(&id).and_then(|call| self.waiting.get(&call)).cloned() else {
            return Ok(());
        };
        self.busy.remove(&call.id);
        let said_before = self.journal.seen(call.id).map_or(Told::No, |seen| seen.aloud);
        if let (Some(text), Told::No) = (aloud, said_before) {
            let ext = Raw::of(&json!({ "call": call.use_id() })).ok();
            let kind = EventKind::AssistantMessage { text: text.into() };
            self.teller.event(&AgentEvent { ext, ..AgentEvent::now(kind) }).await?;
        }
        let outcome = Outcome::of_tool(&call.capability, result);
        self.tell_result(&call, outcome).await
    }

    /// Tells that a call is made; one that was told before is made again.
    async fn tell_call(&mut self, call: &HostCall, by: &By) -> Result<(), Stop> {
        let seen = self.journal.seen(call.id);
        let edited = seen.and_then(|seen| seen.edited.clone());
        let again = seen.map_or(Told::No, |seen| seen.told);
        let event = match again {
            Told::No => {
                let kind = EventKind::ToolCall {
                    tool_name: call.capability.as_str().into(),
                    tool_use_id: Some(call.use_id().into()),
                    parent_tool_use_id: None,
                    input: Raw::of(&call.args).unwrap_or(Raw::NULL),
                };
                AgentEvent { ext: self.beside_call(call, by, edited), ..AgentEvent::now(kind) }
            }
            Told::Yes => {
                let message = format!("{} is made again: the daemon was killed while it ran", call.text());
                let ext = Raw::of(&json!({ "again": call.use_id() })).ok();
                AgentEvent { ext, ..AgentEvent::now(EventKind::Warning { message: message.into() }) }
            }
        };
        self.teller.event(&event).await?;
        self.journal.begin(call.id);
        Ok(())
    }

    /// What is worth knowing about a call beside what it is: who let it through, and what was changed.
    fn beside_call(&self, call: &HostCall, by: &By, edited: Option<Value>) -> Option<Raw<'static>> {
        let mut beside = Map::new();
        match by {
            By::Order => {}
            By::Policy => drop(beside.insert("by".to_owned(), "policy".into())),
            By::Fault => drop(beside.insert("by".to_owned(), "outrigger".into())),
            By::Person { approval, choice, who } => {
                let person = [("by", who.as_str()), ("approval", approval), ("choice", choice.word())];
                beside.extend(person.map(|(name, word)| (name.to_owned(), word.into())));
            }
        }
        if let Behind::Tool { name, .. } = self.behind(&call.capability)
            && name != call.capability
        {
            beside.insert("tool".to_owned(), name.into());
        }
        if self.order.recorded.is_some() {
            beside.insert("replayed".to_owned(), true.into());
        }
        beside.extend(edited.map(|edited| ("edited".to_owned(), edited)));
        if beside.is_empty() { None } else { Raw::of(&beside).ok() }
    }

    /// Tells what a call came to. The script hears of it after the next flush.
    async fn tell_result(&mut self, call: &HostCall, outcome: Outcome) -> Result<(), Stop> {
        let (output, is_error) = match outcome.written() {
            Ok(value) => (value, false),
            Err(error) => (error, true),
        };
        let kind = EventKind::ToolResult {
            tool_name: call.capability.as_str().into(),
            tool_use_id: Some(call.use_id().into()),
            output: Raw::of(&output).unwrap_or(Raw::NULL),
            is_error,
        };
        let ext = Raw::of(&json!({ "step": self.step })).ok();
        self.teller.event(&AgentEvent { ext, ..AgentEvent::now(kind) }).await?;
        self.journal.settle(call.id, outcome.clone());
        self.answers.insert(call.id, outcome);
        Ok(())
    }

    /// Answers the next call as it was answered then.
    async fn replay(&mut self) -> Result<(), Stop> {
        let recorded = self.order.recorded.as_deref().unwrap_or_default();
        let next = replay::next(&self.waiting, recorded);
        let (id, outcome) = next.map_err(|error| End::failed(Ending::Protocol, error.to_string()))?;
        let Some(call) = self.waiting.get(&id).cloned() else { return Ok(()) };
        match self.journal.seen(id).map_or(Told::No, |seen| seen.told) {
            Told::No => self.tell_call(&call, &By::Order).await?,
            Told::Yes => {}
        }
        if self.journal.seen(id).is_some_and(|seen| seen.result.is_some()) {
            self.answers.insert(id, outcome);
            return Ok(());
        }
        self.tell_result(&call, outcome).await
    }

    /// The daemon leaves: what was begun has a moment to end, and its results are not lost.
    async fn drain(mut self) -> Concluded {
        let until = tokio::time::Instant::now() + DRAIN;
        while let Ok(Some(joined)) = tokio::time::timeout_at(until, self.tasks.join_next_with_id()).await {
            if self.settle(joined).await.is_err() {
                break;
            }
        }
        // If it cannot be written down, the next daemon finds what is.
        let _ = self.teller.flush().await;
        Concluded::Drained
    }

    /// It is over: what is still open is closed, the end is told, and the log is sealed.
    async fn conclude(mut self, end: End) -> Concluded {
        if self.journal.end.is_none() && self.tell_end(&end).await.is_err() {
            return Concluded::Drained;
        }
        let script = &self.work_order.task;
        let mut account = Map::new();
        account.insert("script_sha256".to_owned(), Digest::of(script.as_bytes()).to_string().into());
        account.insert("seed".to_owned(), self.order.seed.into());
        let sealing = Sealing {
            run: self.run,
            attempt: self.teller.attempt(),
            order: self.work_order,
            backend: BackendIdentity {
                id: NAME.to_owned(),
                backend_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                adapter_version: None,
            },
            capabilities: manifest(),
            ending: end.ending.clone(),
            error: end.error.clone(),
            outcome: match end.phase {
                crate::runs::Phase::Completed => How::Complete,
                _ => How::Failed,
            },
            usage: Usage::default(),
            account,
        };
        let receipt = match seal(&self.teller, &self.receipts, sealing).await {
            Ok(receipt) => Some(receipt),
            Err(error) => {
                // The run is over all the same; that it has no receipt is for everybody to read.
                let _ = self.teller.note(format!("there is no receipt: {error}")).await;
                None
            }
        };
        Concluded::Ended(Box::new(Ended {
            phase: end.phase,
            error: end.error,
            ending: end.ending.as_str().to_owned(),
            receipt,
            value: end.value,
            patch: None,
            again: end.again,
            spent: None,
        }))
    }

    async fn tell_end(&mut self, end: &End) -> Result<(), Stop> {
        self.tasks.abort_all();
        let open = |call: &&HostCall| {
            let seen = self.journal.seen(call.id);
            seen.is_some_and(|seen| seen.told == Told::Yes && seen.result.is_none())
        };
        let open: Vec<HostCall> = self.waiting.values().filter(open).cloned().collect();
        for call in open {
            let message = format!("`{}` was not waited for: the run ended before", call.capability);
            let abandoned = Thrown::new("Abandoned", message, "abandoned");
            self.tell_result(&call, Outcome::Thrown(abandoned)).await?;
        }
        self.teller.event(&end.event()).await?;
        Ok(self.teller.flush().await?)
    }
}

fn panicked() -> Said {
    let error = HostError {
        name: "ToolError".to_owned(),
        message: "the tool failed inside".to_owned(),
        code: Some("inside".to_owned()),
        details: None,
    };
    Said { result: Err(error), aloud: None }
}
