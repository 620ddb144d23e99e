//! One call of a tool, from what the model wrote to a result: where it goes, whether it may, how long it takes.
//!
//! Calls that a script makes come through here too, so that nothing a script does is judged less strictly.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::consent::{Consents, Whose};
use super::course::{Asked, Blame};
use super::output::{Budget, Exhausted};
use super::patience::{Clock, within};
use super::port::{HostPort, Verdict};
use super::question;
use super::suggest;
use super::trace::{OpenSpan, attrs};
use super::turn::{Approval, Questions, Routing, Turn, World};
use crate::chat::{BoxFuture, ToolCall, ToolResult, ToolSpec};
use crate::protocol::{EventKind, EventStatus, SpanKind, SpanStatus};
use crate::store::{SpanId, Tracer};
use crate::tools::{Dispatch, Grants, Mode, Place, TodoList, Tool, Toolbox, Turns, denied, mode_of};

/// The most notes to the driver that wait.
const ASIDES: usize = 64;
/// The tool whose calls come back here; it does not call itself.
const SCRIPT: &str = "run_script";

/// Makes the calls of one turn.
pub(super) struct Dispatcher {
    toolbox: Arc<Toolbox>,
    host_tools: Vec<ToolSpec>,
    routing: Routing,
    questions: Questions,
    pub(super) host: Arc<dyn HostPort>,
    pub(super) grants: Arc<Grants>,
    pub(super) consents: Consents,
    pub(super) approval: Approval,
    pub(super) record: String,
    pub(super) chat_id: Option<String>,
    context: Map<String, Value>,
    timeout: Duration,
    pub(super) tracer: Tracer,
    cancel: CancellationToken,
    todo: TodoList,
    most_calls: u64,
    calls: AtomicU64,
    pub(super) round: AtomicU64,
    /// A person is asked one thing at a time.
    pub(super) asking: tokio::sync::Mutex<()>,
    pub(super) asides: mpsc::Sender<Aside>,
}

/// What a call tells the driver while it runs.
#[derive(Debug)]
pub(super) enum Aside {
    /// A call was decided upon.
    Decided { tool: String, verdict: Verdict },
    /// A person ended the turn when a script asked.
    Aborted { reason: Option<String> },
}

/// What came of a call.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) call: ToolCall,
    pub(super) result: ToolResult,
    pub(super) took: Duration,
    pub(super) blame: Blame,
    pub(super) stop: Option<Stop>,
}

/// Why the turn does not go on after a call.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    Exhausted(Exhausted),
    Aborted { reason: Option<String> },
}

/// Where a call goes.
enum Route {
    Own(Arc<dyn Tool>),
    Host,
    Question,
}

/// A call that will not be made.
pub(super) struct Refused {
    pub(super) result: ToolResult,
    pub(super) blame: Blame,
    pub(super) stop: Option<Stop>,
}

impl Dispatcher {
    pub(super) fn new(
        turn: &Turn,
        world: &World,
        cancel: &CancellationToken,
    ) -> (Arc<Self>, mpsc::Receiver<Aside>) {
        let (asides, told) = mpsc::channel(ASIDES);
        let mut context = turn.tool_context.clone();
        if let Some(chat_id) = &turn.chat_id {
            context.insert("chatId".to_owned(), Value::from(chat_id.as_str()));
        }
        let dispatcher = Self {
            toolbox: Arc::clone(&world.toolbox),
            host_tools: turn.host_tools.clone(),
            routing: turn.routing,
            questions: turn.questions,
            host: Arc::clone(&world.host),
            grants: Arc::clone(&world.grants),
            consents: world.consents.clone(),
            approval: turn.approval,
            record: turn.record.as_str().to_owned(),
            chat_id: turn.chat_id.clone(),
            context,
            timeout: turn.tool_timeout,
            tracer: world.tracer.clone(),
            cancel: cancel.clone(),
            todo: TodoList::default(),
            most_calls: turn.budgets.tool_calls,
            calls: AtomicU64::new(0),
            round: AtomicU64::new(0),
            asking: tokio::sync::Mutex::new(()),
            asides,
        };
        (Arc::new(dispatcher), told)
    }

    /// What the model is told about the tools of this turn.
    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        let mut specs = match self.routing {
            Routing::OwnFirst => self.toolbox.list(),
            Routing::HostOnly => Vec::new(),
        };
        for spec in &self.host_tools {
            if !specs.iter().any(|known| known.name == spec.name) {
                specs.push(spec.clone());
            }
        }
        match self.questions {
            Questions::Allowed => specs.push(question::spec()),
            Questions::Refused => {}
        }
        specs
    }

    /// Whether a call may run beside others that may too.
    pub(super) fn is_together(&self, asked: &Asked) -> bool {
        match self.route(&asked.call.name) {
            Some(Route::Own(tool)) => tool.turns() == Turns::Together,
            // What the host's tools do is not known; those that only read cannot get into each other's way.
            Some(Route::Host) => mode_of(&asked.call.name) == Mode::Read,
            Some(Route::Question) => false,
            None => true,
        }
    }

    /// The round that calls belong to from now on.
    pub(super) fn set_round(&self, round: u64) {
        self.round.store(round, Ordering::Relaxed);
    }

    /// Makes a call of the model. Dropping the future stops it.
    pub(super) async fn make(self: Arc<Self>, asked: Asked, parent: SpanId) -> Made {
        let began = Instant::now();
        let Asked { call, unread } = asked;
        let outcome = match unread {
            Some(text) => Err(self.not_made(&call, unreadable(&call, &text))),
            None => self.judged(&call, parent, None).await,
        };
        let (result, blame, stop) = match outcome {
            Ok(result) => (result, Blame::Tool, None),
            Err(refused) => (refused.result, refused.blame, refused.stop),
        };
        Made { call, result, took: began.elapsed(), blame, stop }
    }

    /// Finds the tool, asks whoever has to be asked, and makes the call. `clock` is that of the script which calls.
    async fn judged(
        self: &Arc<Self>,
        call: &ToolCall,
        parent: SpanId,
        clock: Option<&Clock>,
    ) -> Result<ToolResult, Box<Refused>> {
        let route = self.route(&call.name).ok_or_else(|| self.not_made(call, self.unknown(&call.name)))?;
        let mode = match &route {
            Route::Own(tool) => tool.mode(),
            Route::Host => mode_of(&call.name),
            Route::Question => Mode::Read,
        };
        let span = OpenSpan::new(
            &self.tracer,
            &format!("tool.{}", call.name),
            SpanKind::Tool,
            Some(parent),
            attrs([
                ("tool", Value::from(call.name.as_str())),
                ("callId", Value::from(call.id.as_str())),
                ("mode", Value::from(mode.word())),
            ]),
        );
        self.tracer.event(
            EventKind::ToolCall,
            &call.name,
            None,
            attrs([
                ("callId", Value::from(call.id.as_str())),
                ("arguments", serde_json::from_str(call.arguments.get()).unwrap_or(Value::Null)),
            ]),
        );
        let outcome = self.consented(call, &route, mode, span.id(), clock).await;
        let result = match &outcome {
            Ok(result) => result,
            Err(refused) => &refused.result,
        };
        self.told(call, result);
        let error = result.error.as_deref().map_or(Value::Null, Value::from);
        let status = match (result.success, result.error.as_deref()) {
            (true, _) => SpanStatus::Ok,
            (false, Some("tool_timeout")) => SpanStatus::Timeout,
            (false, _) => SpanStatus::Error,
        };
        span.end(status, attrs([("success", Value::from(result.success)), ("error", error)]));
        outcome
    }

    async fn consented(
        self: &Arc<Self>,
        call: &ToolCall,
        route: &Route,
        mode: Mode,
        span: SpanId,
        clock: Option<&Clock>,
    ) -> Result<ToolResult, Box<Refused>> {
        self.spend()?;
        let whose = match route {
            Route::Host => Whose::Host,
            Route::Own(_) | Route::Question => Whose::Ours,
        };
        let amended = match self.consent(call, mode, whose, span, clock).await {
            Ok(amended) => amended,
            Err(refused) => {
                // What is not made does not count.
                self.calls.fetch_sub(1, Ordering::Relaxed);
                return Err(refused);
            }
        };
        let arguments = amended.unwrap_or_else(|| call.arguments.clone());
        let call = ToolCall { id: call.id.clone(), name: call.name.clone(), arguments };
        Ok(self.run(&call, route, span).await)
    }

    /// Runs the tool within its time.
    async fn run(self: &Arc<Self>, call: &ToolCall, route: &Route, span: SpanId) -> ToolResult {
        let clock = Clock::new();
        // The tool hears of it too when this future is dropped.
        let token = self.cancel.child_token();
        let _stopped = token.clone().drop_guard();
        let (work, limit): (BoxFuture<'_, ToolResult>, Duration) = match route {
            Route::Own(tool) => {
                let nested = Nested { dispatcher: Arc::clone(self), span, clock: clock.clone() };
                let place = Place {
                    grants: Arc::clone(&self.grants),
                    dispatch: Arc::new(nested),
                    cancel: token,
                    todo: self.todo.clone(),
                };
                (Box::pin(async move { tool.invoke(&call.arguments, &place).await }), self.timeout)
            }
            Route::Host => (
                Box::pin(async {
                    let answer = self.host.invoke(call, &self.context).await;
                    answer.unwrap_or_else(|gone| ToolResult::failure(gone.to_string()))
                }),
                self.timeout,
            ),
            Route::Question => {
                // A person thinks as long as one who is asked for consent.
                let limit = match self.approval {
                    Approval::Host { patience } => patience.max(self.timeout),
                    Approval::Nobody | Approval::Auto => self.timeout,
                };
                (Box::pin(question::put(&*self.host, &call.arguments, self.chat_id.as_deref())), limit)
            }
        };
        within(limit, &clock, work).await.unwrap_or_else(|| {
            let mut result = ToolResult::failure("tool_timeout");
            result.message =
                Some(format!("the tool took longer than {} ms and was stopped", limit.as_millis()));
            result
        })
    }

    /// One call more, if there is one left.
    fn spend(&self) -> Result<(), Box<Refused>> {
        let most = self.most_calls;
        let more = |made: u64| (made < most).then_some(made + 1);
        match self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(used) => {
                let mut result = ToolResult::failure("budget_exhausted");
                result.message = Some(format!("the turn may make {most} calls of tools and has made {used}"));
                let exhausted = Exhausted { budget: Budget::ToolCalls, limit: most, used };
                Err(Box::new(Refused {
                    result,
                    blame: Blame::Nobody,
                    stop: Some(Stop::Exhausted(exhausted)),
                }))
            }
        }
    }

    /// A call that goes nowhere is in the trace too.
    fn not_made(&self, call: &ToolCall, refused: Box<Refused>) -> Box<Refused> {
        self.told(call, &refused.result);
        refused
    }

    fn told(&self, call: &ToolCall, result: &ToolResult) {
        let status = if result.success { EventStatus::Ok } else { EventStatus::Warning };
        let text = |text: &Option<String>| text.as_deref().map_or(Value::Null, Value::from);
        let details = attrs([
            ("callId", Value::from(call.id.as_str())),
            ("success", Value::from(result.success)),
            ("error", text(&result.error)),
            ("message", text(&result.message)),
            ("data", result.data.clone().map_or(Value::Null, Value::Object)),
        ]);
        self.tracer.event(EventKind::ToolResult, &call.name, Some(status), details);
    }

    fn route(&self, name: &str) -> Option<Route> {
        if name == question::NAME && self.questions == Questions::Allowed {
            return Some(Route::Question);
        }
        let own = match self.routing {
            Routing::OwnFirst => self.toolbox.get(name),
            Routing::HostOnly => None,
        };
        own.map(Route::Own)
            .or_else(|| self.host_tools.iter().any(|spec| spec.name == name).then_some(Route::Host))
    }

    fn unknown(&self, name: &str) -> Box<Refused> {
        let mut result = match (self.routing, self.toolbox.missing(name)) {
            (Routing::OwnFirst, Some(reason)) => denied(name, mode_of(name), reason),
            (Routing::OwnFirst, None) | (Routing::HostOnly, _) => {
                ToolResult { needs_followup: Some(true), ..ToolResult::unknown(name) }
            }
        };
        let specs = self.specs();
        let near = suggest::nearest(name, specs.iter().map(|spec| spec.name.as_str()));
        let names = specs.iter().map(|spec| spec.name.as_str());
        result.message = match near.as_slice() {
            [] if specs.is_empty() => Some("There are no tools in this turn.".to_owned()),
            [] => Some(format!("The tools are: {}.", names.take(50).collect::<Vec<_>>().join(", "))),
            near => Some(format!("Did you mean {}?", near.join(" or "))),
        };
        Box::new(Refused { result, blame: Blame::Tool, stop: None })
    }
}

/// The way from a script to the other tools.
struct Nested {
    dispatcher: Arc<Dispatcher>,
    span: SpanId,
    clock: Clock,
}

impl Dispatch for Nested {
    fn names(&self) -> Vec<String> {
        let specs = self.dispatcher.specs().into_iter();
        specs.map(|spec| spec.name).filter(|name| name != SCRIPT).collect()
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'_, ToolResult> {
        Box::pin(async move {
            if call.name == SCRIPT {
                return ToolResult::failure("a script cannot run scripts");
            }
            match self.dispatcher.judged(&call, self.span, Some(&self.clock)).await {
                Ok(result) => result,
                Err(refused) => {
                    if let Some(Stop::Aborted { reason }) = refused.stop {
                        let _ = self.dispatcher.asides.send(Aside::Aborted { reason }).await;
                    }
                    refused.result
                }
            }
        })
    }
}

/// The result of a call whose arguments are no JSON object.
fn unreadable(call: &ToolCall, text: &str) -> Box<Refused> {
    const SHOWN: usize = 300;
    let problem = match serde_json::from_str::<Value>(text) {
        Ok(_) => "they are not an object".to_owned(),
        Err(error) => error.to_string(),
    };
    let shown: String = text.chars().take(SHOWN).collect();
    let mut result = ToolResult::failure(format!(
        "invalid_arguments: the arguments of {} are no JSON object: {problem}",
        call.name
    ));
    result.message = Some(format!("The call was not made. What came begins with: {shown}"));
    Box::new(Refused { result, blame: Blame::Tool, stop: None })
}
