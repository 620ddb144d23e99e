//! What a course tells: that calls are made and what they came to, and how it ended.

use outrigger_abp::protocol::{AgentEvent, EventKind, Raw};
use serde_json::{Map, Value, json};

use super::super::decide::{Behind, By};
use super::super::end::End;
use super::super::journal::Told;
use super::super::outcome::{HostCall, Outcome, Thrown};
use super::{Course, Stop};

impl Course<'_> {
    /// Whether it was told that a call is made.
    pub(super) fn told(&self, call: u64) -> Told {
        self.journal.seen(call).map_or(Told::No, |seen| seen.told)
    }

    /// Tells that a call is made, unless that was told before.
    pub(super) async fn tell_call(&mut self, call: &HostCall, by: &By) -> Result<(), Stop> {
        if self.told(call.id) == Told::Yes {
            return Ok(());
        }
        let edited = self.journal.seen(call.id).and_then(|seen| seen.edited.clone());
        let kind = EventKind::ToolCall {
            tool_name: call.capability.as_str().into(),
            tool_use_id: Some(call.use_id().into()),
            parent_tool_use_id: None,
            input: Raw::of(&call.args).unwrap_or(Raw::NULL),
        };
        let ext = self.beside_call(call, by, edited);
        self.teller.event(&AgentEvent { ext, ..AgentEvent::now(kind) }).await?;
        self.journal.begin(call.id);
        Ok(())
    }

    /// Tells that a tool that was begun under an earlier daemon is called once more.
    pub(super) async fn tell_again(&mut self, call: &HostCall) -> Result<(), Stop> {
        let message = format!("{} is called again: the daemon was killed while it ran", call.text());
        let ext = Raw::of(&json!({ "again": call.use_id() })).ok();
        let kind = EventKind::Warning { message: message.into() };
        self.teller.event(&AgentEvent { ext, ..AgentEvent::now(kind) }).await?;
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
    pub(super) async fn tell_result(&mut self, call: &HostCall, outcome: Outcome) -> Result<(), Stop> {
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

    /// Closes what is still open, and tells the end.
    pub(super) async fn tell_end(&mut self, end: &End) -> Result<(), Stop> {
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
