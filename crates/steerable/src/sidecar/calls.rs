//! `tool.list` and `tool.invoke`: the sidecar's own tools, called by the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use outrigger_wire::peer::Outcome;
use outrigger_wire::rpc::ErrorObject;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answer::{shown, shutting_down};
use super::runtime::{Own, Runtime};
use crate::chat::{BoxFuture, ToolCall, ToolResult};
use crate::protocol::{Kind, ToolInvoke, descriptor, result_value, with_data};
use crate::store::fresh_id;
use crate::tools::{Denial, Dispatch, Mode, Place, TodoList, Tool, denial, denied, mode_of};

/// `tool.list`.
pub(super) fn list(runtime: &Runtime) -> Outcome {
    let tools: Vec<Value> = runtime.own().toolbox.list().iter().map(descriptor).collect();
    shown(&tools)
}

/// `tool.invoke`.
pub(super) async fn invoke(runtime: Arc<Runtime>, params: Option<Box<RawValue>>) -> Outcome {
    let ToolInvoke { name, arguments, id, consent_granted, context: _ } =
        ToolInvoke::read(params.as_deref())?;
    if runtime.streams.is_closed() {
        return Err(shutting_down());
    }
    let allowance =
        Allowance { made: Arc::clone(&runtime.tool_calls), limit: runtime.settings().max_tool_calls };
    if !allowance.take() {
        let error =
            Kind::BudgetExhausted.error(format!("{name}: all {} calls of tools were made", allowance.limit));
        return Err(with_data(
            error,
            &json!({"budget": "toolCalls", "limit": allowance.limit, "used": allowance.limit}),
        ));
    }
    let call = ToolCall { id: id.unwrap_or_else(|| fresh_id("call_")), name, arguments };
    let consent = if consent_granted { Consent::Given } else { Consent::Missing };
    let desk = Desk {
        own: runtime.own().clone(),
        consent,
        cancel: runtime.stop.child_token(),
        todo: runtime.todo.clone(),
        patience: runtime.settings().tool_timeout,
        allowance,
    };
    let began = Instant::now();
    // In a task of its own, so that a tool that panics is a tool that failed.
    let mut task = JoinSet::new();
    let (name, stop) = (call.name.clone(), runtime.stop.clone());
    task.spawn(async move { desk.call_it(call).await });
    let result = tokio::select! {
        biased;
        () = stop.cancelled() => return Err(shutting_down()),
        result = task.join_next() => result,
    };
    let Some(Ok(result)) = result else {
        return Err(Kind::ToolFailed.error(format!("the tool {name} failed unexpectedly")));
    };
    if let Some(denial) = denial(&result) {
        return Err(refused(&denial));
    }
    let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    shown(&result_value(&result.with("durationMs", took)))
}

fn refused(Denial { tool, mode, reason }: &Denial) -> ErrorObject {
    let error = Kind::PolicyDenied.error(format!("{tool}: {reason}"));
    with_data(error, &json!({"tool": tool, "mode": mode.word(), "reason": reason}))
}

/// Whether a person agreed to the call, and with it to what it calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consent {
    Given,
    Missing,
}

/// How many calls may still be made. One is taken before a call, whatever comes of it.
#[derive(Clone, Debug)]
struct Allowance {
    made: Arc<AtomicU64>,
    /// 0 is any number.
    limit: u64,
}

impl Allowance {
    fn take(&self) -> bool {
        let more = |made: u64| (self.limit == 0 || made < self.limit).then_some(made.saturating_add(1));
        self.made.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

/// Makes calls, each judged: the host's, and those that a script makes.
#[derive(Clone)]
struct Desk {
    own: Own,
    consent: Consent,
    cancel: CancellationToken,
    todo: TodoList,
    patience: Duration,
    allowance: Allowance,
}

impl Desk {
    async fn call_it(&self, call: ToolCall) -> ToolResult {
        let toolbox = &self.own.toolbox;
        let Some(tool) = toolbox.get(&call.name) else {
            return match toolbox.missing(&call.name) {
                Some(why) => denied(&call.name, mode_of(&call.name), why),
                None => ToolResult::unknown(&call.name),
            };
        };
        if tool.mode() == Mode::Destructive && self.consent == Consent::Missing {
            return denied(
                &call.name,
                tool.mode(),
                "it can do what cannot be undone, and needs consentGranted",
            );
        }
        self.run(tool.as_ref(), &call).await
    }

    async fn run(&self, tool: &dyn Tool, call: &ToolCall) -> ToolResult {
        let place = Place {
            grants: Arc::clone(&self.own.grants),
            dispatch: Arc::new(self.clone()),
            cancel: self.cancel.child_token(),
            todo: self.todo.clone(),
        };
        let within = timeout(self.patience, tool.invoke(&call.arguments, &place)).await;
        within.unwrap_or_else(|_| {
            place.cancel.cancel();
            ToolResult::failure("tool_timeout").with("timeoutMs", self.patience.as_millis() as u64)
        })
    }
}

impl Dispatch for Desk {
    fn names(&self) -> Vec<String> {
        self.own.toolbox.names().to_vec()
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'_, ToolResult> {
        Box::pin(async move {
            match self.allowance.take() {
                true => self.call_it(call).await,
                false => ToolResult::failure("budget_exhausted: no more calls of tools may be made"),
            }
        })
    }
}
