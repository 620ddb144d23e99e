//! The driver's step that makes the calls of a round: side by side where that is safe, in the model's order otherwise.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::task::{Id, JoinError, JoinSet};

use super::compact::cut;
use super::course::{Asked, Blame};
use super::dispatch::{Aside, Made, Stop};
use super::output::Notice;
use super::run::{Driver, Heard, at};
use crate::chat::{Image, Message, Part, Role, ToolCall, ToolResult};
use crate::model::Provider;
use crate::tools::for_model;

/// The most calls that run at the same time.
const MOST_TOGETHER: usize = 8;
/// The most of a result that a model reads; the middle of more is left out.
const MOST_RESULT_BYTES: usize = 256 << 10;

/// Whether the calls of a round go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Going {
    On,
    /// The person spoke, and does not want to wait.
    Interrupted,
    /// The turn is over.
    Over,
}

impl Driver<'_> {
    /// Makes the calls, and answers those that are not made.
    pub(super) async fn act(&mut self, calls: Vec<Asked>) {
        let mut waiting = VecDeque::from(calls);
        let mut going = Going::On;
        while let (Going::On, Some(first)) = (going, waiting.pop_front()) {
            let mut batch = VecDeque::from([first]);
            if self.dispatcher.is_together(&batch[0]) {
                while let Some(next) = waiting.pop_front_if(|next| self.dispatcher.is_together(next)) {
                    batch.push_back(next);
                }
            }
            going = self.make(batch).await;
        }
        if going == Going::Interrupted {
            self.answer_open_calls("interrupted by the user").await;
        }
        // What ended the turn says in its own words why the rest was not made.
        self.history.settle();
        self.course.acted();
    }

    /// Makes calls side by side until all are done or something stops them.
    async fn make(&mut self, mut batch: VecDeque<Asked>) -> Going {
        let mut running = JoinSet::new();
        let mut names: HashMap<Id, (usize, ToolCall)> = HashMap::new();
        let going = loop {
            if self.course.is_over() {
                break Going::Over;
            }
            while running.len() < MOST_TOGETHER
                && let Some(asked) = batch.pop_front()
            {
                let call = asked.call.clone();
                let task = running.spawn(Arc::clone(&self.dispatcher).make(asked, self.span.id()));
                names.insert(task.id(), (names.len(), call));
            }
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    self.course.cancelled(None);
                }
                heard = self.steering.hear(&mut self.course) => match heard {
                    Heard::Now => break Going::Interrupted,
                    Heard::Later => {}
                },
                Some(aside) = self.asides.recv() => self.aside(aside).await,
                () = at(self.soft_at) => {
                    self.soft_at = None;
                    self.notice(Notice::SoftTimeout).await;
                }
                joined = running.join_next_with_id() => match joined {
                    None => break Going::On,
                    Some(joined) => {
                        let mut done = vec![joined];
                        while let Some(joined) = running.try_join_next_with_id() {
                            done.push(joined);
                        }
                        self.record_all(done, &names).await;
                    }
                },
            }
        };
        // Those that finished in the same moment are done, and it would be a lie to say otherwise.
        running.abort_all();
        let mut done = Vec::new();
        while let Some(joined) = running.join_next_with_id().await {
            if !joined.as_ref().is_err_and(JoinError::is_cancelled) {
                done.push(joined);
            }
        }
        self.record_all(done, &names).await;
        while let Ok(aside) = self.asides.try_recv() {
            self.aside(aside).await;
        }
        if going == Going::On && self.course.is_over() { Going::Over } else { going }
    }

    /// Records what finished in the same moment, in the order of the calls.
    async fn record_all(
        &mut self,
        mut done: Vec<Result<(Id, Made), JoinError>>,
        names: &HashMap<Id, (usize, ToolCall)>,
    ) {
        let id = |joined: &Result<(Id, Made), JoinError>| match joined {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        done.sort_by_key(|joined| names.get(&id(joined)).map(|(place, _)| *place));
        for joined in done {
            let call = names.get(&id(&joined)).map(|(_, call)| call.clone());
            match (joined, call) {
                (Ok((_, made)), _) => self.record(made).await,
                (Err(_), Some(call)) => self.record(broken(call)).await,
                (Err(_), None) => {}
            }
        }
    }

    async fn aside(&mut self, aside: Aside) {
        match aside {
            Aside::Decided { tool, verdict } => {
                self.notice(Notice::Approval { tool: &tool, decision: verdict.word() }).await;
            }
            Aside::Aborted { reason } => {
                self.course.cancelled(Some(reason.unwrap_or_else(|| "abort".to_owned())))
            }
        }
    }

    /// Writes a result to the transcript, then tells it.
    async fn record(&mut self, made: Made) {
        let Made { call, result, took, blame, stop } = made;
        let note = self.course.result(&call, &result, blame);
        match stop {
            Some(Stop::Exhausted(exhausted)) => self.course.exhausted_by(exhausted),
            Some(Stop::Aborted { reason }) => {
                self.course.cancelled(Some(reason.unwrap_or_else(|| "abort".to_owned())));
            }
            None => {}
        }
        self.answer(&call, &result, took, note).await;
    }

    async fn answer(&mut self, call: &ToolCall, result: &ToolResult, took: Duration, note: Option<String>) {
        let mut text = cut(&for_model(result), MOST_RESULT_BYTES);
        let mut pictures = pictures(result);
        // Only Anthropic takes pictures as results of tools; the others refuse the whole conversation.
        if self.turn.request.provider != Provider::Messages && !pictures.is_empty() {
            pictures.clear();
            text.push_str("\n[the tool returned pictures, which this provider cannot be shown]");
        }
        if let Some(note) = note {
            text.push('\n');
            text.push_str(&note);
        }
        let mut message = Message {
            name: Some(call.name.clone()),
            tool_call_id: Some(call.id.clone()),
            ..Message::text(Role::Tool, text)
        };
        message.parts.extend(pictures.into_iter().map(Part::Image));
        if self.say(vec![message]).await.is_err() {
            return;
        }
        self.stage.get().await.tool_result(call, result, took);
        self.flush().await;
    }

    /// Answers the calls that nobody will make any more.
    pub(super) async fn answer_open_calls(&mut self, why: &str) {
        for call in self.history.unanswered() {
            let result = ToolResult::failure(why);
            let note = self.course.result(&call, &result, Blame::Nobody);
            self.answer(&call, &result, Duration::ZERO, note).await;
        }
    }
}

/// A tool that fell over. Its panic is in the log; the model hears that something is broken.
fn broken(call: ToolCall) -> Made {
    let result =
        ToolResult::failure(format!("the tool {} broke down; this is a defect of the runtime", call.name));
    Made { call, result, took: Duration::ZERO, blame: Blame::Tool, stop: None }
}

/// The pictures of a result: `data.images`, each `{mediaType, data}`.
fn pictures(result: &ToolResult) -> Vec<Image> {
    let images = result.data.as_ref().and_then(|data| data.get("images")).and_then(Value::as_array);
    let picture = |image: &Value| {
        let text = |name: &str| image.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Image::Data { media_type: text("mediaType")?, base64: text("data")? })
    };
    images.into_iter().flatten().filter_map(picture).collect()
}
