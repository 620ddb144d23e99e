//! The calls that wait, and what becomes of them: decided, asked, begun, answered.

use outrigger_abp::protocol::{AgentEvent, EventKind, Raw};
use outrigger_abp::receipt::Ending;
use outrigger_mustard::host::{HostError, Plain};
use outrigger_policy::Subject;
use serde_json::{Value, json};
use tokio::task::{Id, JoinError};

use super::super::decide::{Behind, By, Leave, Question, Stepping, Todo, decide};
use super::super::end::End;
use super::super::journal::Told;
use super::super::outcome::{HostCall, Outcome, Thrown};
use super::super::replay;
use super::{Course, Stop};
use crate::backends::tools::{ApprovalRule, Said, plain};
use crate::runs::backend::{NewApproval, NotHeard};
use crate::runs::request::ToolChoice;
use crate::runs::state::Moment;
use crate::runs::{Choice, DefaultAnswer};

/// How many tools of one run may be at work at once.
const AT_ONCE: usize = 32;

/// A call of a tool that is about to be made.
pub(super) struct Making {
    call: u64,
    tool: String,
    by: By,
}

/// What there is when nothing more happens at once.
pub(super) enum Gathered {
    /// Something that the script can go on with.
    Answers,
    /// Only people can help.
    Rest,
}

impl Course<'_> {
    /// Does what can be done about the calls that wait, until the script can go on or only people can help.
    pub(super) async fn gather(&mut self) -> Result<Gathered, Stop> {
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
        let undecided =
            |call: &&HostCall| !self.busy.contains(&call.id) && !self.answers.contains_key(&call.id);
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
        let script = Subject::new("the script");
        let policy = self.house.check_tool(&script, judged).and(self.policy.check_tool(&script, judged));
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
    pub(super) fn behind(&self, capability: &str) -> Behind {
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
                self.tell_result(call, Outcome::Thrown(Thrown::new("Denied", message, "too_many_approvals")))
                    .await
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
            let Some(call) = self.waiting.get(call).cloned() else { continue };
            match self.told(call.id) {
                Told::No => self.tell_call(&call, by).await?,
                Told::Yes => self.tell_again(&call).await?,
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
    pub(super) async fn settle(&mut self, joined: Result<(Id, Said), JoinError>) -> Result<(), Stop> {
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

    /// Answers the next call as it was answered then.
    async fn replay(&mut self) -> Result<(), Stop> {
        let recorded = self.order.recorded.as_deref().unwrap_or_default();
        let next = replay::next(&self.waiting, recorded);
        let (id, outcome) = next.map_err(|error| End::failed(Ending::Protocol, error.to_string()))?;
        let Some(call) = self.waiting.get(&id).cloned() else { return Ok(()) };
        self.tell_call(&call, &By::Order).await?;
        if self.journal.seen(id).is_some_and(|seen| seen.result.is_some()) {
            self.answers.insert(id, outcome);
            return Ok(());
        }
        self.tell_result(&call, outcome).await
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
