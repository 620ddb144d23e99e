//! Consent to one call: remembered, asked for, or refused.

use std::sync::atomic::Ordering;

use serde_json::Value;
use serde_json::value::RawValue;

use super::consent::{self, Matter, Need, Whose};
use super::course::Blame;
use super::dispatch::{Aside, Dispatcher, Refused, Stop};
use super::patience::Clock;
use super::port::{ApprovalAsk, Decision, Verdict};
use super::trace::{OpenSpan, attrs};
use super::turn::Approval;
use crate::chat::{ToolCall, ToolResult};
use crate::protocol::{EventKind, EventStatus, SpanKind, SpanStatus};
use crate::store::SpanId;
use crate::tools::Mode;

impl Dispatcher {
    /// Whether the call may be made, and with which other arguments.
    pub(super) async fn consent(
        &self,
        call: &ToolCall,
        mode: Mode,
        whose: Whose,
        span: SpanId,
        clock: Option<&Clock>,
    ) -> Result<Option<Box<RawValue>>, Box<Refused>> {
        let reason = match consent::judge(&call.name, mode, self.approval, self.grants.commands) {
            Need::Nothing => return Ok(None),
            Need::Refuse(reason) => {
                self.policy(call, "refused", Some(reason), EventStatus::Warning);
                return Err(refusal(Some(reason)));
            }
            Need::Ask(reason) => reason,
        };
        let Approval::Host { patience } = self.approval else { return Err(refusal(Some(reason))) };
        let _paused = clock.map(Clock::pause);
        let _one_at_a_time = self.asking.lock().await;
        let matter = Matter::of(call);
        let decision = match self.consents.recall(&self.record, &matter) {
            Some(verdict) => Decision::plain(verdict),
            None => {
                let ask = ApprovalAsk {
                    call,
                    mode,
                    category: consent::category(&call.name, whose),
                    round: self.round.load(Ordering::Relaxed),
                    chat_id: self.chat_id.as_deref(),
                    reason,
                    patience,
                };
                let waiting = attrs([("tool", Value::from(call.name.as_str()))]);
                let wait =
                    OpenSpan::new(&self.tracer, "approval.wait", SpanKind::Policy, Some(span), waiting);
                let answer = tokio::time::timeout(patience, self.host.approve(&ask)).await;
                let decision = answer.unwrap_or(Decision {
                    verdict: Verdict::TimedOut,
                    reason: Some(format!("nobody answered within {} ms", patience.as_millis())),
                    amended: None,
                });
                let is_late = decision.verdict == Verdict::TimedOut;
                let status = if is_late { SpanStatus::Timeout } else { SpanStatus::Ok };
                wait.end(status, attrs([("decision", Value::from(decision.verdict.word()))]));
                decision
            }
        };
        self.decided(call, matter, decision).await
    }

    async fn decided(
        &self,
        call: &ToolCall,
        matter: Matter,
        decision: Decision,
    ) -> Result<Option<Box<RawValue>>, Box<Refused>> {
        let Decision { verdict, reason, amended } = decision;
        self.consents.keep(&self.record, matter, verdict);
        let status = if verdict.allows() { EventStatus::Ok } else { EventStatus::Warning };
        self.policy(call, verdict.word(), reason.as_deref(), status);
        // A driver that is gone does not need to know.
        let _ = self.asides.send(Aside::Decided { tool: call.name.clone(), verdict }).await;
        if verdict.allows() {
            return Ok(amended.filter(|arguments| arguments.get().starts_with('{')));
        }
        let mut refused = refusal(reason.as_deref());
        if verdict == Verdict::Abort {
            refused.stop = Some(Stop::Aborted { reason });
        }
        Err(refused)
    }

    fn policy(&self, call: &ToolCall, decision: &str, reason: Option<&str>, status: EventStatus) {
        let details = attrs([
            ("tool", Value::from(call.name.as_str())),
            ("callId", Value::from(call.id.as_str())),
            ("decision", Value::from(decision)),
            ("reason", reason.map_or(Value::Null, Value::from)),
        ]);
        self.tracer.event(EventKind::Policy, "approval", Some(status), details);
    }
}

/// The result of a call that nobody consents to.
fn refusal(reason: Option<&str>) -> Box<Refused> {
    let mut result = ToolResult::failure("approval_denied");
    result.message = reason.map(str::to_owned);
    Box::new(Refused { result, blame: Blame::Person, stop: None })
}
