//! One step of a run in one child: what is sent, by id where the child has it and as bytes where it does not, and what comes
//! back. The policy goes along every time.

use std::time::Duration;

use outrigger_vm::boundary::Plain;

use super::conversation::{Answered, ExchangeError};
use super::key::HostKey;
use super::script::Script;
use super::sidecar::{Sidecar, SidecarError};
use super::store::{CallId, Dialect, Waiting};
use crate::protocol::feature::Feature;
use crate::protocol::ids::{PolicyId, SnapshotId};
use crate::protocol::limits::Limits;
use crate::protocol::request::{Answer, Auth, Claim, Method, Payload, Policy, Resume, Start};
use crate::protocol::response::{Code, Failure, Reply};

/// How much longer than the step a child may take to say that the step took too long.
const GRACE: Duration = Duration::from_millis(250);

/// What a run is allowed, and what it is told about the world.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) capabilities: Vec<String>,
    pub(super) limits: Limits,
    pub(super) seed: Option<u64>,
    pub(super) now_ms: Option<f64>,
    /// The time that a step may take.
    pub(super) within: Duration,
}

/// A machine that stands still.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) id: SnapshotId,
    pub(super) bytes: Vec<u8>,
    pub(super) calls: Vec<Waiting>,
}

/// What came of a step.
#[derive(Debug)]
pub(super) enum Step {
    Completed(Plain),
    Suspended { snapshot: Snapshot, policy: PolicyId },
    Failed(Failure),
}

/// Starts a script. The program is sent by its id when the child should have it, and compiled there when its bytes would be
/// too large or of another engine.
pub(super) async fn start(
    sidecar: &mut Sidecar,
    script: &Script,
    inputs: &[(String, Plain)],
    frame: &Frame,
) -> Result<Step, SidecarError> {
    let mut program = script.program();
    let mut compiled = false;
    loop {
        let bytes: &[u8] = if sidecar.knows(program.id) { &[] } else { &program.bytes };
        let id = program.id.hex();
        let method = Method::Start(Start {
            program_id: Some(id.as_str().into()),
            inputs: inputs.to_vec(),
            capabilities: frame.capabilities.clone(),
            limits: frame.limits,
            profile: false,
            deadline_ms: deadline(sidecar, frame),
            seed: frame.seed.filter(|_| sidecar.has(Feature::World)),
            now_ms: frame.now_ms.filter(|_| sidecar.has(Feature::World)),
        });
        let answered = match sidecar.ask(method, bytes, patience(sidecar, frame)).await {
            // The source may be smaller than what it became.
            Err(SidecarError::TooLarge { .. }) if !bytes.is_empty() && !compiled => {
                (program, compiled) = (script.compile_again(sidecar).await?, true);
                continue;
            }
            answered => answered?,
        };
        match &answered.outcome {
            Err(failure) if bytes.is_empty() && is(failure, &Code::UNKNOWN_PROGRAM, "unknown program_id") => {
                sidecar.forget(program.id);
                if compiled {
                    return Ok(Step::Failed(failure.clone()));
                }
            }
            Err(failure) if !compiled && is_wrong_engine(failure) => {
                (program, compiled) = (script.compile_again(sidecar).await?, true);
            }
            _ => {
                sidecar.remember(program.id);
                // The first call of a run is number 1, whoever counts.
                return read(sidecar, answered, CallId(1)).await;
            }
        }
    }
}

/// The way to a snapshot that this very child made.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// It has it, and the policy.
    Cached(PolicyId),
    /// It is another child.
    Raw,
}

/// Continues from a snapshot with answers to some of its calls.
pub(super) async fn resume(
    sidecar: &mut Sidecar,
    snapshot: &Snapshot,
    answers: Vec<(CallId, Answer)>,
    next_call: CallId,
    frame: &Frame,
    key: &HostKey,
    way: Way,
) -> Result<Step, SidecarError> {
    let mut way = way;
    let payload = payload(sidecar, answers);
    loop {
        let (claim, bytes) = claim(snapshot, frame, key, way);
        let method = Method::Resume(Resume {
            claim,
            payload: payload.clone(),
            profile: false,
            deadline_ms: deadline(sidecar, frame),
            now_ms: frame.now_ms.filter(|_| sidecar.has(Feature::World)),
        });
        let answered = sidecar.ask(method, bytes, patience(sidecar, frame)).await?;
        match (&answered.outcome, way) {
            (Err(failure), Way::Cached(_)) if is_forgotten(failure) => way = Way::Raw,
            _ => return read(sidecar, answered, next_call).await,
        }
    }
}

/// By what right, and with which bytes, a child may use a snapshot: the policy goes along, in full or by its id.
fn claim<'a>(snapshot: &'a Snapshot, frame: &Frame, key: &'a HostKey, way: Way) -> (Claim<'a>, &'a [u8]) {
    let id = snapshot.id.hex();
    let (base64, digest, token) = (key.base64(), key.digest(), key.token(id.as_str()));
    let snapshot_id = || Some(id.as_str().to_owned().into());
    match way {
        Way::Cached(policy) => {
            let auth = Auth {
                snapshot_key_base64: base64.into(),
                snapshot_key_digest: digest.into(),
                snapshot_token: token.into(),
            };
            let policy_id = Some(policy.to_string().into());
            (Claim { snapshot_id: snapshot_id(), policy: None, policy_id, auth: Some(auth) }, &[])
        }
        Way::Raw => {
            let policy = Policy {
                capabilities: frame.capabilities.clone(),
                limits: Some(frame.limits),
                snapshot_id: snapshot_id(),
                snapshot_key_base64: Some(base64.into()),
                snapshot_key_digest: Some(digest.into()),
                snapshot_token: Some(token.into()),
            };
            let claim =
                Claim { snapshot_id: snapshot_id(), policy: Some(policy), policy_id: None, auth: None };
            (claim, &snapshot.bytes)
        }
    }
}

fn payload(sidecar: &Sidecar, mut answers: Vec<(CallId, Answer)>) -> Payload {
    if sidecar.has(Feature::Batch) {
        return Payload::Answers(answers.into_iter().map(|(call, answer)| (call.0, answer)).collect());
    }
    match answers.pop() {
        Some((_, answer)) => Payload::Answer(answer),
        // Nobody continues without an answer; if somebody did, the call would find nothing.
        None => Payload::Answer(Answer::Value(Plain::Undefined)),
    }
}

/// What a child says about a step, in our own terms. `next_call` numbers a call whose child does not.
async fn read(sidecar: &mut Sidecar, answered: Answered, next_call: CallId) -> Result<Step, SidecarError> {
    let Answered { outcome, blob } = answered;
    match outcome {
        Err(failure) => Ok(Step::Failed(failure)),
        Ok(Reply::Completed(value)) => Ok(Step::Completed(value)),
        Ok(Reply::Suspended(suspended)) => {
            if SnapshotId::of(&blob) != suspended.snapshot_id {
                let what = format!("its snapshot is not {}", suspended.snapshot_id);
                return Err(sidecar.lose(ExchangeError::Garbage(what)).await);
            }
            let pending = |call: crate::protocol::response::Call| Waiting {
                call: call.call_id.map_or(next_call, CallId),
                capability: call.capability,
                args: call.args,
            };
            let calls: Vec<_> = suspended.calls.into_iter().map(pending).collect();
            if calls.is_empty() {
                let what = "it waits for no call at all".to_owned();
                return Err(sidecar.lose(ExchangeError::Garbage(what)).await);
            }
            let snapshot = Snapshot { id: suspended.snapshot_id, bytes: blob, calls };
            Ok(Step::Suspended { snapshot, policy: suspended.policy_id })
        }
        Ok(other) => Err(sidecar.nonsense(&other).await),
    }
}

/// The deadline that the child itself is told.
fn deadline(sidecar: &Sidecar, frame: &Frame) -> Option<u64> {
    let millis = u64::try_from(frame.within.as_millis()).unwrap_or(u64::MAX).max(1);
    sidecar.has(Feature::Deadline).then_some(millis)
}

/// How long we wait: a child that watches its own deadline gets the time to say so.
fn patience(sidecar: &Sidecar, frame: &Frame) -> Duration {
    match sidecar.dialect() {
        Dialect::Version2 => frame.within,
        Dialect::Extended => frame.within.saturating_add(GRACE),
    }
}

/// Whether it is this failure, which children of version 2 only say in words.
fn is(failure: &Failure, code: &Code, words: &str) -> bool {
    match &failure.detail {
        Some(detail) => detail.code == *code,
        None => failure.error.starts_with(words),
    }
}

fn is_forgotten(failure: &Failure) -> bool {
    is(failure, &Code::UNKNOWN_SNAPSHOT, "unknown snapshot_id")
        || is(failure, &Code::UNKNOWN_POLICY, "unknown policy_id")
}

fn is_wrong_engine(failure: &Failure) -> bool {
    failure.detail.as_ref().is_some_and(|detail| detail.code == Code::WRONG_ENGINE)
}
