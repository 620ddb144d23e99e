//! One prompt and what comes of it: its end as the agent gives it, or as the host wants it.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use outrigger_supervise::tree::{self, Identity};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ear::Stage;
use super::link::CallError;
use super::open::Connection;
use crate::protocol::SendMessage;
use crate::provider::Outcome;
use crate::provider::prompt::{PICTURES, image_blocks, text_of};

/// How long an agent has to end a turn that was cancelled.
const CANCELLED_WITHIN: Duration = Duration::from_secs(2);

/// How long the processes of a cancelled turn have to go by themselves.
const TOOLS_GONE_WITHIN: Duration = Duration::from_millis(500);

/// How often we look whether they have gone.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How a prompt ended.
pub(super) enum Prompted {
    /// By the agent.
    Ended(Outcome),
    /// By the host, and nothing of it is left.
    Stopped,
    /// By the host, and the agent did not do its part: it has to go.
    Unstopped,
}

impl Connection {
    /// Sends the prompt of a turn and waits for its end.
    pub(super) async fn prompt(&self, send: &SendMessage, stage: &Stage) -> Prompted {
        let Stage { desk, stop, .. } = stage;
        let family = self.flavour.family();
        let mut init = json!({ "type": format!("{family}/agent_init"), "session_id": self.session });
        if let Some(model) = self.ear.lasting().options.model {
            init["model"] = Value::from(model.current);
        }
        desk.pass(&init.to_string());
        let blocks = self.blocks(send).await;
        let before = self.processes().await;
        if stop.is_cancelled() {
            return Prompted::Stopped;
        }
        let status = |word: &str| json!({ "type": format!("{family}/status"), "agent_id": self.session, "status": word });
        desk.pass(&status("RUNNING").to_string());
        let params = json!({ "sessionId": self.session, "prompt": blocks });
        let mut answer = pin!(self.link.call("session/prompt", &params));
        let answered = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            answered = &mut answer => Some(answered),
        };
        Prompted::Ended(match answered {
            None => return self.cancel(answer, &before).await,
            Some(Err(error)) => Outcome::Failed(self.failed("finish the turn", error).await),
            Some(Ok(answer)) => {
                let answer = serde_json::from_str::<Value>(answer.get()).unwrap_or_default();
                let mut finished = status("FINISHED");
                for (theirs, ours) in [("stopReason", "stop_reason"), ("usage", "usage")] {
                    if let Some(value) = answer.get(theirs).filter(|value| !value.is_null()) {
                        finished[ours] = value.clone();
                    }
                }
                desk.pass(&finished.to_string());
                self.ended(answer.get("stopReason").and_then(Value::as_str), stage)
            }
        })
    }

    /// What the reason means that an agent gives for the end of its turn.
    fn ended(&self, reason: Option<&str>, stage: &Stage) -> Outcome {
        let badly = |what: &str| Outcome::EndedBadly { message: format!("{} {what}", self.flavour.title()) };
        match reason {
            Some("refusal") => badly("refused to go on"),
            Some("max_tokens") => badly("reached its limit of tokens"),
            Some("max_turn_requests") => badly("reached its limit of requests for one turn"),
            // Who is not allowed to go on and stops has done as it should.
            Some("cancelled") if stage.has_denied() => Outcome::Ended,
            Some("cancelled") => badly("says that the turn was cancelled, which nobody asked for"),
            // `end_turn`. A reason that is newer than us is still an end.
            Some(_) => Outcome::Ended,
            None => badly("ended the turn without a reason"),
        }
    }

    /// Interrupts a turn by the protocol, and looks whether that helped.
    async fn cancel(
        &self,
        answer: impl Future<Output = Result<Box<RawValue>, CallError>>,
        before: &[Identity],
    ) -> Prompted {
        let params = json!({ "sessionId": self.session });
        let cancelled = async {
            self.link.notify("session/cancel", &params).await?;
            answer.await
        };
        match tokio::time::timeout(CANCELLED_WITHIN, cancelled).await {
            // An agent that answers with an error has ended the turn as well.
            Ok(Ok(_) | Err(CallError::Refused(_))) if self.tools_are_gone(before).await => Prompted::Stopped,
            Ok(_) | Err(_) => Prompted::Unstopped,
        }
    }

    /// The prompt as the protocol wants it.
    async fn blocks(&self, send: &SendMessage) -> Vec<Value> {
        let none: &[PathBuf] = &[];
        // Who takes the folders with the session need not be told about them.
        let told = if self.offers.directories { none } else { &send.additional_directories };
        let text = text_of(&send.prompt, &send.images, told);
        if !self.offers.images && !send.images.is_empty() {
            let note = format!("[{} image(s) are not attached: this agent takes none.]", send.images.len());
            return vec![json!({ "type": "text", "text": text }), json!({ "type": "text", "text": note })];
        }
        let blocks = image_blocks(&text, send.images.clone(), PICTURES).await;
        blocks.into_iter().map(image_of_the_protocol).collect()
    }

    /// The processes of an agent. An empty list if they cannot be known.
    async fn processes(&self) -> Vec<Identity> {
        let Some(pid) = self.agent.child().status().pid else { return Vec::new() };
        let listed = tokio::task::spawn_blocking(move || tree::in_box_of(pid)).await;
        listed.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// Whether everything has gone that a turn started. Gives it some time.
    async fn tools_are_gone(&self, before: &[Identity]) -> bool {
        let until = Instant::now() + TOOLS_GONE_WITHIN;
        loop {
            if self.processes().await.iter().all(|process| before.contains(process)) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// A picture of Claude's protocol as one of this.
fn image_of_the_protocol(block: Value) -> Value {
    match (block.pointer("/source/media_type"), block.pointer("/source/data")) {
        (Some(media_type), Some(data)) => json!({ "type": "image", "mimeType": media_type, "data": data }),
        _ => block,
    }
}
