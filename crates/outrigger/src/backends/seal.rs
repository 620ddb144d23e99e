//! Receipts of runs that no abp child did: the events of the log, sealed.
//!
//! The log is what counts, so sealing reads it again and can be done twice: a daemon that died half-way leaves a spool, which is thrown
//! away, and one that died right after leaves a receipt, which is taken as it is.

use std::path::Path;
use std::sync::Arc;

use outrigger_abp::protocol::{
    AgentEvent, BackendIdentity, ContractVersion, Manifest, Mode, Negotiation, Outcome, Raw, Timestamp,
    Usage, WorkOrder,
};
use outrigger_abp::receipt::{Closing, Ending, Folder, HashState, RecordError, Recorder, SigningKey, verify};
use serde_json::{Map, Value, json};

use crate::engine::{EngineError, ReadLimit, Seq};
use crate::runs::entry::{Answered, Entry, Line};
use crate::runs::state::{Moment, Receipt};
use crate::runs::{Approval, Receipts, RunId, Teller, receipt_id};

/// How much of a log is read at once.
pub(crate) const PAGE: ReadLimit = ReadLimit { records: 256, bytes: 4 << 20 };

/// How often a receipt that is not ours may stand in the way of ours.
const NAMES: u32 = 8;

/// What the log does not say about an attempt.
#[derive(Debug)]
pub(crate) struct Sealing {
    pub(crate) run: RunId,
    pub(crate) attempt: u32,
    /// What was to be done.
    pub(crate) order: WorkOrder,
    pub(crate) backend: BackendIdentity,
    pub(crate) capabilities: Manifest,
    pub(crate) ending: Ending,
    /// Why, if it did not end well.
    pub(crate) error: Option<String>,
    pub(crate) outcome: Outcome,
    pub(crate) usage: Usage,
    /// More for the account, beside the approvals.
    pub(crate) account: Map<String, Value>,
}

/// Why there is no receipt.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealError {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("the log cannot be read: {0}")]
    Log(#[from] EngineError),
    #[error("the log has a record that cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("sealing failed inside: {0}")]
    Inside(#[from] tokio::task::JoinError),
    #[error("there are {NAMES} other receipts of the run {0} already")]
    Crowded(String),
}

/// Seals what the log has of an attempt. Everything that was told must have been flushed.
pub(crate) async fn seal(
    teller: &Teller,
    receipts: &Receipts,
    sealing: Sealing,
) -> Result<Receipt, SealError> {
    let first = outrigger_abp::protocol::RunId::new(receipt_id(&sealing.run, sealing.attempt));
    let mut name = first.clone();
    for number in 2..=NAMES {
        let (looked, there) = (Arc::clone(&receipts.folder), name.clone());
        let wanted = sealing.ending.clone();
        match tokio::task::spawn_blocking(move || find(&looked, &there, &wanted)).await? {
            Found::Ours(receipt) => return Ok(receipt),
            Found::Nothing => return write(teller, receipts, name, sealing).await,
            // Somebody sealed half of it as something else; a receipt is never taken back.
            Found::Other => {
                name = outrigger_abp::protocol::RunId::new(format!("{}-sealed-{number}", first.as_str()));
            }
        }
    }
    Err(SealError::Crowded(sealing.run.to_string()))
}

/// What there is under the name of a receipt.
enum Found {
    Nothing,
    Ours(Receipt),
    Other,
}

fn find(folder: &Folder, name: &outrigger_abp::protocol::RunId, wanted: &Ending) -> Found {
    let path = folder.receipt(name);
    if !path.exists() {
        return Found::Nothing;
    }
    let Ok(check) = verify(&path) else { return Found::Other };
    let ending = check.receipt.as_ref().and_then(|head| head.outrigger()?.get("ending").cloned());
    match check.hash {
        HashState::Ok { sha256 } if ending.as_ref().and_then(Value::as_str) == Some(wanted.as_str()) => {
            Found::Ours(Receipt { file: file_name(&path), sha256 })
        }
        HashState::Ok { .. }
        | HashState::Mismatch { .. }
        | HashState::Missing { .. }
        | HashState::Unknown => Found::Other,
    }
}

async fn write(
    teller: &Teller,
    receipts: &Receipts,
    name: outrigger_abp::protocol::RunId,
    sealing: Sealing,
) -> Result<Receipt, SealError> {
    let begun = Arc::clone(&receipts.folder);
    let mut recorder = tokio::task::spawn_blocking(move || begin(&begun, &name)).await??;
    let mut gist = Gist { attempt: sealing.attempt, from: None, till: None, approvals: Vec::new() };
    let mut after = Seq(0);
    loop {
        let page = teller.read(after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        let lines = page.iter().map(|stored| Line::read(&stored.record)).collect::<Result<Vec<_>, _>>()?;
        (recorder, gist) = tokio::task::spawn_blocking(move || {
            for line in lines {
                gist.note(&line, &mut recorder)?;
            }
            Ok::<_, SealError>((recorder, gist))
        })
        .await??;
    }
    let sign = receipts.sign.clone();
    let sealed =
        tokio::task::spawn_blocking(move || finish(recorder, gist, sealing, sign.as_ref())).await??;
    Ok(Receipt { file: file_name(&sealed.path), sha256: sealed.sha256 })
}

/// A fresh record; what a daemon that was killed left of an earlier one is thrown away, because the log has it all.
fn begin(folder: &Folder, name: &outrigger_abp::protocol::RunId) -> Result<Recorder, RecordError> {
    let left = folder.beside(name, "trace.part");
    if left.exists() {
        match Recorder::recover(folder, &left) {
            Ok(half) => half.discard()?,
            Err(RecordError::NotASpool { .. }) => {
                let removed = std::fs::remove_file(&left);
                removed.map_err(|source| RecordError::Io { what: "remove", path: left, source })?;
            }
            Err(error) => return Err(error),
        }
    }
    Recorder::begin(folder, name)
}

/// What a receipt says beside the events, as the log has it.
struct Gist {
    attempt: u32,
    from: Option<Moment>,
    till: Option<Moment>,
    approvals: Vec<Approval>,
}

impl Gist {
    fn note(&mut self, line: &Line, recorder: &mut Recorder) -> Result<(), RecordError> {
        match &line.entry {
            Entry::Event(told) if told.attempt == self.attempt => {
                self.till = Some(line.at);
                // What cannot be read was not written by us.
                recorder.event(&AgentEvent::read(told.event.get())?)
            }
            Entry::Started(started) if started.attempt == self.attempt => {
                self.from.get_or_insert(line.at);
                Ok(())
            }
            Entry::Asked(approval) if approval.attempt == self.attempt => {
                self.approvals.push(Approval { input: String::new(), ..approval.clone() });
                Ok(())
            }
            Entry::Answered(answered) => {
                self.answer(answered, line.at);
                Ok(())
            }
            Entry::Accepted(_)
            | Entry::Started(_)
            | Entry::Event(_)
            | Entry::Suspended(_)
            | Entry::Asked(_)
            | Entry::Steered(_)
            | Entry::Cancelling(_)
            | Entry::Attempted(_)
            | Entry::Note(_)
            | Entry::Finished(_)
            | Entry::Other(_) => Ok(()),
        }
    }

    fn answer(&mut self, answered: &Answered, at: Moment) {
        let asked = self.approvals.iter_mut().find(|asked| asked.id == answered.approval);
        if let Some(asked) = asked {
            let given = crate::runs::Given { answer: answered.answer.clone(), by: answered.by.clone(), at };
            asked.given = Some(given);
        }
    }

    /// Who was asked what, and who said what.
    fn account(&self) -> Value {
        let told = |asked: &Approval| {
            let mut members = json!({
                "id": asked.id.0,
                "call": asked.key,
                "tool": asked.tool,
                "input_sha256": asked.input_sha256.to_string(),
                "asked_at": asked.asked_at.to_string(),
                "reason": asked.reason,
            });
            if let Some(given) = &asked.given {
                members["answer"] = json!({
                    "choice": given.answer.choice.word(),
                    "by": given.by.0,
                    "at": given.at.to_string(),
                    "reason": given.answer.reason,
                });
            }
            members
        };
        self.approvals.iter().map(told).collect()
    }
}

fn finish(
    recorder: Recorder,
    gist: Gist,
    sealing: Sealing,
    sign: Option<&SigningKey>,
) -> Result<outrigger_abp::receipt::Sealed, SealError> {
    let from = gist.from.map_or_else(Timestamp::now, |from| from.0);
    let duration = gist.till.map(|till| till.0.since(from)).unwrap_or_default();
    let mut account = sealing.account;
    account.insert("approvals".to_owned(), gist.account());
    account.insert("attempt".to_owned(), gist.attempt.into());
    let sealed = recorder.seal(&Closing {
        order: &sealing.order,
        backend: sealing.backend,
        contract_version: ContractVersion::ours(),
        capabilities: sealing.capabilities,
        mode: Mode::Mapped,
        started_at: from,
        duration,
        ending: sealing.ending,
        error: sealing.error,
        outcome: Some(sealing.outcome),
        received: None,
        usage: sealing.usage,
        artifacts: Vec::new(),
        git_diff: None,
        git_status: None,
        negotiation: Negotiation::default(),
        account: Raw::of(&account)?,
        sign,
    })?;
    Ok(sealed)
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
