//! A model, tools, a host and a listener that do what a test tells them, and remember what they were told.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_steerable::agent::{
    self, Approval, ApprovalAsk, Budgets, Consents, ContentMode, Decision, Ended, History, HostGone,
    HostPort, Model, Notice, Output, Questions, Routing, Status, Steer, SteerMode, Turn, Verdict, World,
};
use outrigger_steerable::chat::{BoxFuture, Message, Role, ToolCall, ToolResult, ToolSpec, Usage};
use outrigger_steerable::model::{Event, Failure, FailureKind, Gone, Provider, Request, Sink, Summary};
use outrigger_steerable::store::{MemoryLimits, RecordId, Store, TraceHead, TraceKey, TraceTree};
use outrigger_steerable::tools::{Grants, Mode, Place, Tool, Toolbox, Turns};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

pub(crate) fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

pub(crate) fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

/// Runs a test on a clock that jumps to the next timer when there is nothing else to do.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test)
}

/// What the model says in one call.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) retries: u32,
    pub(crate) thoughts: &'static str,
    pub(crate) says: String,
    pub(crate) calls: Vec<(ToolCall, Option<String>)>,
    pub(crate) usage: Option<Usage>,
    pub(crate) finish: &'static str,
    pub(crate) then: Then,
}

#[derive(Clone, Debug)]
pub(crate) enum Then {
    Done,
    Fail(Failure),
    /// Says what it says, and then nothing more.
    Hang,
}

pub(crate) fn says(text: &str) -> Answer {
    Answer {
        retries: 0,
        thoughts: "",
        says: text.to_owned(),
        calls: Vec::new(),
        usage: None,
        finish: "stop",
        then: Then::Done,
    }
}

pub(crate) fn calls<const N: usize>(calls: [(&str, &str, Value); N]) -> Answer {
    let calls = calls.map(|(id, name, arguments)| {
        let call = ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: raw(&arguments) };
        (call, None)
    });
    Answer { calls: calls.into(), finish: "tool_calls", ..says("") }
}

pub(crate) fn fails(kind: FailureKind) -> Answer {
    Answer { then: Then::Fail(Failure::new(kind, "the provider said no")), ..says("") }
}

pub(crate) fn hangs(text: &str) -> Answer {
    Answer { then: Then::Hang, ..says(text) }
}

pub(crate) fn cost(tokens: u64) -> Option<Usage> {
    Some(Usage { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens, cached_prompt_tokens: 0 })
}

/// A model that answers from a list.
pub(crate) struct FakeModel {
    answers: Vec<Answer>,
    /// By the number of the assistant's messages in the request, so that a resumed turn goes on where it was.
    pub(crate) by_position: bool,
    pub(crate) seen: Mutex<Vec<Request>>,
    /// Tells that a call hangs.
    pub(crate) hanging: Notify,
}

impl FakeModel {
    pub(crate) fn times_called(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// The prompt of a call, a line a message.
    pub(crate) fn prompt(&self, call: usize) -> Vec<String> {
        self.seen.lock().unwrap()[call].messages.iter().map(line).collect()
    }
}

impl Model for FakeModel {
    fn stream<'a>(
        &'a self,
        request: &'a Request,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, Result<Summary, Failure>> {
        Box::pin(async move {
            let spoken = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
            let index = if self.by_position { spoken } else { self.times_called() };
            self.seen.lock().unwrap().push(request.clone());
            let answer = self
                .answers
                .get(index)
                .cloned()
                .unwrap_or_else(|| panic!("call {index} is not in the script"));
            let gone = |Gone| Failure::new(FailureKind::Cancelled, "gone");
            // A network would make us wait.
            tokio::task::yield_now().await;
            for attempt in 1..=answer.retries {
                let error = &Failure::new(FailureKind::RateLimit, "slow down");
                sink.event(Event::Retry { attempt, delay: Duration::from_secs(1), error });
                sink.flush().await.map_err(gone)?;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            if !answer.thoughts.is_empty() {
                sink.event(Event::Reasoning(answer.thoughts.into()));
            }
            for word in answer.says.split_inclusive(' ') {
                sink.event(Event::Delta(word.into()));
                sink.flush().await.map_err(gone)?;
                tokio::task::yield_now().await;
            }
            match answer.then {
                Then::Fail(failure) => return Err(failure),
                Then::Hang => {
                    self.hanging.notify_one();
                    std::future::pending::<()>().await;
                }
                Then::Done => {}
            }
            for (call, unread) in answer.calls {
                sink.event(Event::ToolCall { call, unread });
            }
            sink.event(Event::Finish(answer.finish.into()));
            answer.usage.into_iter().for_each(|usage| sink.event(Event::Usage(usage)));
            sink.flush().await.map_err(gone)?;
            Ok(Summary {
                usage: answer.usage,
                finish_reason: Some(answer.finish.to_owned()),
                attempts: 1,
                first_event_after: Some(Duration::from_millis(1)),
            })
        })
    }
}

type Behaviour = Box<dyn Fn(Value, Place) -> BoxFuture<'static, ToolResult> + Send + Sync>;

/// A tool that does what a test says.
pub(crate) struct FakeTool {
    spec: ToolSpec,
    mode: Mode,
    turns: Turns,
    pub(crate) calls: Arc<AtomicUsize>,
    does: Behaviour,
}

impl FakeTool {
    pub(crate) fn new<F>(
        name: &str,
        mode: Mode,
        turns: Turns,
        does: impl Fn(Value, Place) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ToolResult> + Send + 'static,
    {
        Self {
            spec: spec(name),
            mode,
            turns,
            calls: Arc::new(AtomicUsize::new(0)),
            does: Box::new(move |arguments, place| Box::pin(does(arguments, place))),
        }
    }
}

pub(crate) fn spec(name: &str) -> ToolSpec {
    let parameters = raw(&json!({"type": "object"}));
    ToolSpec { name: name.to_owned(), description: String::new(), parameters, as_given: None }
}

/// A tool that succeeds with its own arguments.
pub(crate) fn echo(name: &str, mode: Mode) -> FakeTool {
    FakeTool::new(name, mode, Turns::Together, |arguments, _| async move {
        tokio::task::yield_now().await;
        ok(&arguments.to_string())
    })
}

pub(crate) fn ok(text: &str) -> ToolResult {
    ToolResult::success(Map::new()).with("text", text)
}

impl Tool for FakeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn turns(&self) -> Turns {
        self.turns
    }

    fn invoke<'a>(&'a self, arguments: &'a RawValue, at: &'a Place) -> BoxFuture<'a, ToolResult> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        (self.does)(serde_json::from_str(arguments.get()).unwrap(), at.clone())
    }
}

/// A host that decides from a list, and runs every tool by echoing.
#[derive(Default)]
pub(crate) struct FakeHost {
    pub(crate) decisions: Mutex<VecDeque<Decision>>,
    pub(crate) log: Mutex<Vec<String>>,
    pub(crate) gone: bool,
}

impl HostPort for FakeHost {
    fn invoke<'a>(
        &'a self,
        call: &'a ToolCall,
        context: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<ToolResult, HostGone>> {
        Box::pin(async move {
            let asked =
                format!("invoke {} {} {}", call.name, call.arguments.get(), Value::from(context.clone()));
            self.log.lock().unwrap().push(asked);
            match self.gone {
                true => Err(HostGone { reason: "it hung up".to_owned() }),
                false => Ok(ok("from the host")),
            }
        })
    }

    fn approve<'a>(&'a self, ask: &'a ApprovalAsk<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            let ApprovalAsk { call, mode, category, round, .. } = ask;
            let asked = format!(
                "approve {} {} {} {} {round}",
                call.name,
                call.arguments.get(),
                mode.word(),
                category
            );
            self.log.lock().unwrap().push(asked);
            let decision = self.decisions.lock().unwrap().pop_front();
            match decision {
                Some(decision) => decision,
                None => std::future::pending().await,
            }
        })
    }

    fn ask<'a>(&'a self, questions: &'a Value) -> BoxFuture<'a, Result<Value, HostGone>> {
        Box::pin(async move {
            self.log.lock().unwrap().push(format!("ask {questions}"));
            Ok(json!({"answers": {"q": "blue"}}))
        })
    }
}

/// A listener that writes down what it hears, and can do something at a chosen moment.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) log: Vec<String>,
    heard: usize,
    /// Fires when so much was heard.
    pub(crate) cancel_at: Option<(usize, CancellationToken)>,
    /// Says something in the moment when this is heard; whether it was taken is in the log.
    pub(crate) speaks_at: Option<(&'static str, mpsc::Sender<Steer>)>,
    /// Nobody listens any more when so much was heard.
    pub(crate) gone_at: Option<usize>,
    /// The listener is there and does not read when so much was heard.
    pub(crate) deaf_at: Option<usize>,
}

impl Recorder {
    fn hear(&mut self, what: String) {
        self.log.push(what);
        if let Some((at, ear)) = &self.speaks_at
            && self.log.last().is_some_and(|last| last == at)
        {
            let steer = Steer::Say { content: "Wait!".to_owned(), mode: None };
            let answer = if ear.try_send(steer).is_ok() { "taken" } else { "not taken" };
            self.log.push(answer.to_owned());
        }
        self.heard += 1;
        if let Some((at, token)) = &self.cancel_at
            && self.heard >= *at
        {
            token.cancel();
        }
    }
}

impl Output for Recorder {
    fn model(&mut self, event: Event<'_>) {
        self.hear(match event {
            Event::Delta(text) => format!("delta {text}"),
            Event::Reasoning(text) => format!("thinks {text}"),
            Event::ToolCall { call, .. } => {
                format!("call {} {} {}", call.id, call.name, call.arguments.get())
            }
            other => panic!("{other:?} does not belong here"),
        });
    }

    fn tool_result(&mut self, call: &ToolCall, result: &ToolResult, _: Duration) {
        let outcome = result.error.clone().unwrap_or_else(|| "ok".to_owned());
        self.hear(format!("result {} {outcome}", call.id));
    }

    fn notice(&mut self, notice: Notice<'_>) {
        let told = match notice {
            Notice::RoundEnd { round } => format!(" {round}"),
            Notice::SoftTimeout => String::new(),
            Notice::BudgetExhausted(exhausted) => {
                format!(" {} {}/{}", exhausted.budget.word(), exhausted.used, exhausted.limit)
            }
            Notice::Steer { content } => format!(" {content}"),
            Notice::Compaction { before, after } => format!(" smaller: {}", after < before),
            Notice::Retry { attempt, .. } => format!(" {attempt}"),
            Notice::Approval { tool, decision } => format!(" {tool} {decision}"),
            Notice::McpUnreachable { server, error } => format!(" {server} {error}"),
        };
        self.hear(format!("{}{told}", notice.kind()));
    }

    fn flush(&mut self) -> BoxFuture<'_, Result<(), Gone>> {
        let gone = self.gone_at.is_some_and(|at| self.heard >= at);
        let deaf = self.deaf_at.is_some_and(|at| self.heard >= at);
        Box::pin(async move {
            if deaf {
                std::future::pending::<()>().await;
            }
            tokio::task::yield_now().await;
            if gone { Err(Gone) } else { Ok(()) }
        })
    }
}

/// Everything that a turn needs.
pub(crate) struct Bench {
    pub(crate) model: Arc<FakeModel>,
    pub(crate) host: Arc<FakeHost>,
    pub(crate) store: Store,
    pub(crate) toolbox: Toolbox,
    pub(crate) consents: Consents,
    pub(crate) grants: Grants,
    pub(crate) cancel: CancellationToken,
    pub(crate) record: RecordId,
    pub(crate) recorder: Recorder,
    pub(crate) trace_id: String,
}

impl Bench {
    pub(crate) fn new(answers: impl Into<Vec<Answer>>) -> Self {
        let model = FakeModel {
            answers: answers.into(),
            by_position: false,
            seen: Mutex::new(Vec::new()),
            hanging: Notify::new(),
        };
        Self {
            model: Arc::new(model),
            host: Arc::new(FakeHost::default()),
            store: Store::memory(MemoryLimits::STANDARD),
            toolbox: Toolbox::default(),
            consents: Consents::new(),
            grants: Grants::none(),
            cancel: CancellationToken::new(),
            record: RecordId::new("rec"),
            recorder: Recorder::default(),
            trace_id: String::new(),
        }
    }

    pub(crate) fn by_position(mut self) -> Self {
        Arc::get_mut(&mut self.model).unwrap().by_position = true;
        self
    }

    pub(crate) fn with(mut self, tool: FakeTool) -> Self {
        self.toolbox.add(Arc::new(tool));
        self
    }

    pub(crate) fn deciding(self, decisions: impl IntoIterator<Item = Verdict>) -> Self {
        self.host.decisions.lock().unwrap().extend(decisions.into_iter().map(Decision::plain));
        self
    }

    /// The same world for another list of answers: what was stored and decided stays.
    pub(crate) fn then(self, answers: impl Into<Vec<Answer>>) -> Self {
        let fresh = Self::new(answers);
        Self { model: fresh.model, cancel: fresh.cancel, recorder: fresh.recorder, ..self }
    }

    /// The same store and tools, as a new process finds them.
    pub(crate) fn resuming(self, before: Self) -> Self {
        Self { store: before.store, toolbox: before.toolbox, ..self }
    }

    pub(crate) fn turn(&self, messages: &[Message]) -> Turn {
        Turn {
            request: Request::new(Provider::Scripted, "fake", Vec::new()),
            record: self.record.clone(),
            history: History::Resume,
            messages: messages.to_vec(),
            system_prompt: None,
            host_tools: Vec::new(),
            routing: Routing::OwnFirst,
            approval: Approval::Nobody,
            questions: Questions::Refused,
            chat_id: None,
            tool_context: Map::new(),
            budgets: Budgets::STANDARD,
            tool_timeout: Duration::from_secs(300),
            soft_timeout: None,
            max_context_tokens: None,
            steer_mode: SteerMode::Boundary,
            content: ContentMode::All,
        }
    }

    pub(crate) fn world(&mut self) -> World {
        let tracer = self.store.begin_trace(TraceHead::default());
        self.trace_id = tracer.id().to_owned();
        World {
            model: Arc::clone(&self.model) as Arc<dyn Model>,
            store: self.store.clone(),
            tracer,
            toolbox: Arc::new(self.toolbox.clone()),
            host: Arc::clone(&self.host) as Arc<dyn HostPort>,
            grants: Arc::new(self.grants.clone()),
            consents: self.consents.clone(),
        }
    }

    /// Runs a turn that nobody steers.
    pub(crate) async fn run(&mut self, turn: Turn) -> Ended {
        let (_ear, steering) = mpsc::channel(1);
        self.steered(turn, steering).await
    }

    pub(crate) async fn steered(&mut self, turn: Turn, steering: mpsc::Receiver<Steer>) -> Ended {
        let world = self.world();
        agent::run(turn, world, steering, self.cancel.clone(), &mut self.recorder).await
    }

    /// The transcript, a line a message.
    pub(crate) async fn transcript(&self) -> Vec<String> {
        let stored = self.store.transcript(&self.record).await.unwrap();
        stored.iter().map(|stored| line(&stored.message)).collect()
    }

    pub(crate) async fn trace(&self) -> TraceTree {
        self.store.trace(TraceKey::Trace(&self.trace_id)).await.unwrap().unwrap()
    }

    pub(crate) fn log(&self) -> Vec<&str> {
        self.recorder.log.iter().map(String::as_str).collect()
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.host.log.lock().unwrap().clone()
    }
}

/// A message in a line.
pub(crate) fn line(message: &Message) -> String {
    let mut line = format!("{}: {}", message.role.word(), message.plain_text());
    if let Some(id) = &message.tool_call_id {
        line = format!("tool {id}: {}", message.plain_text());
    }
    for call in &message.tool_calls {
        line.push_str(&format!("[{} {} {}]", call.id, call.name, call.arguments.get()));
    }
    line
}

/// Each call of a transcript has exactly one result, behind it and before anybody else speaks.
pub(crate) fn assert_sound(transcript: &[Message]) {
    let mut open: Vec<&str> = Vec::new();
    for message in transcript {
        match (&message.role, &message.tool_call_id) {
            (Role::Tool, Some(id)) => {
                let at = open.iter().position(|open| open == id);
                open.remove(at.unwrap_or_else(|| panic!("{id} is answered and was not called")));
            }
            _ => {
                assert_eq!(open, Vec::<&str>::new(), "calls without results");
                open = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
            }
        }
    }
    assert_eq!(open, Vec::<&str>::new(), "calls without results at the end");
}

pub(crate) fn status(ended: &Ended) -> String {
    match &ended.status {
        Status::Completed => "completed".to_owned(),
        Status::BudgetExhausted => "budget_exhausted".to_owned(),
        Status::Cancelled => "cancelled".to_owned(),
        Status::Failed(failure) => format!("{}: {}", failure.kind.word(), failure.message),
    }
}

/// Calls one tool, and says `done` when it has the result.
pub(crate) fn once(name: &str, arguments: Value) -> [Answer; 2] {
    [calls([("c1", name, arguments)]), says("done")]
}

pub(crate) fn call(id: &str, name: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: raw(&json!({})) }
}
