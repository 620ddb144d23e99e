//! The end of a record: what is known at the end, the hash over everything, the link to the receipt before, the file.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_policy::Digest;
use serde::Serialize;

use super::claims::{self, Claim, Observed};
use super::head::{Hasher, Meta, ReceiptHead, text};
use super::key::SigningKey;
use super::record::{RecordError, Recorder, TraceHash};
use crate::protocol::{
    Artifact, BackendIdentity, ContractVersion, Manifest, Mode, Negotiation, OrderId, Outcome, Raw,
    ReceivedReceipt, RunId, Timestamp, Usage, WorkOrder,
};

crate::protocol::words! {
    /// How a run ended, as the control plane saw it.
    Ending {
        /// The child was done.
        Final = "final",
        /// The child could not go on.
        Fatal = "fatal",
        /// Somebody cancelled it.
        Cancelled = "cancelled",
        /// A budget was used up.
        Budget = "budget",
        /// The policy forbids what it did.
        Policy = "policy",
        /// It took too long.
        Timeout = "timeout",
        /// It said nothing for too long.
        Stalled = "stalled",
        /// It went away.
        Exited = "exited",
        /// It broke the protocol.
        Protocol = "protocol",
    }
}

/// What is known when a run has ended.
#[derive(Debug)]
pub struct Closing<'c> {
    /// What was to be done, as it was sent.
    pub order: &'c WorkOrder,
    /// Who did it, as it said in its hello.
    pub backend: BackendIdentity,
    /// By which contract, as it said in its hello.
    pub contract_version: ContractVersion,
    /// What it can do, as it said in its hello.
    pub capabilities: Manifest,
    /// How it treats the vendor's messages, as it said in its hello; its receipt may say otherwise for this run.
    pub mode: Mode,
    /// When the run began.
    pub started_at: Timestamp,
    /// How long it took, by a clock that nobody sets.
    pub duration: Duration,
    /// How it ended.
    pub ending: Ending,
    /// Why, if it did not end well.
    pub error: Option<String>,
    /// How well; none to believe the child's receipt, and `complete` if that says nothing.
    pub outcome: Option<Outcome>,
    /// The receipt that the child sent.
    pub received: Option<&'c ReceivedReceipt<'c>>,
    /// What the host counted; it fills the gaps of what the child says.
    pub usage: Usage,
    /// What the host leaves behind, beside what the child names.
    pub artifacts: Vec<Artifact>,
    /// What changed in the workspace, if the host looked.
    pub git_diff: Option<String>,
    /// Which files changed, if the host looked.
    pub git_status: Option<String>,
    /// What came of the requirements.
    pub negotiation: Negotiation,
    /// An object with what was enforced, decided, approved and spent; its members become members of `outrigger`.
    pub account: Raw<'c>,
    /// Who signs.
    pub sign: Option<&'c SigningKey>,
}

/// A receipt that is on disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sealed {
    /// Where.
    pub path: PathBuf,
    /// Its hash.
    pub sha256: Digest,
    /// The receipt before it.
    pub previous: Option<Digest>,
    /// How many events it has.
    pub events: u64,
    /// What the child said that was not so.
    pub claims: Vec<Claim>,
    /// Everything but the events.
    pub receipt: ReceiptHead,
}

/// The member `outrigger` of `usage_raw`, before the account.
#[derive(Serialize)]
struct Note<'n> {
    version: u32,
    previous: Option<Digest>,
    ending: &'n Ending,
    error: Option<&'n str>,
    order_sha256: Digest,
    events: u64,
    claims: &'n [Claim],
}

impl Recorder {
    /// Ends the record: the receipt is written, hashed, linked to the one before it and named, or nothing of it is there.
    ///
    /// # Errors
    /// When it cannot be written. The events stay in their file and can be sealed again by [`Recorder::recover`].
    pub fn seal(mut self, closing: &Closing<'_>) -> Result<Sealed, RecordError> {
        let draft = self.folder.beside(&self.run, "draft");
        let sealed = self.write_receipt(closing, &draft);
        if sealed.is_err() {
            // Half a receipt helps nobody; why there is none is said by the first error.
            let _ = std::fs::remove_file(&draft);
        }
        sealed
    }

    fn write_receipt(&mut self, closing: &Closing<'_>, draft: &Path) -> Result<Sealed, RecordError> {
        let mut order = Vec::new();
        closing.order.write(&mut order);
        let order = String::from_utf8(order).unwrap_or_default();
        let order_sha256 = super::head::canonical_sha256(&order)?;
        let mut receipt = head(&self.run, closing);
        let trace_claim = closing.received.and_then(ReceivedReceipt::trace_claim);

        let path = self.folder.receipt(&self.run);
        let failed = |source| RecordError::io("write", draft, source);
        let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(draft);
        let mut file = BufWriter::with_capacity(128 * 1024, opened.map_err(failed)?);
        let mut hasher = Hasher::new();
        hasher.update(&receipt.before_trace()?);
        file.write_all(&receipt.file_before_trace()).map_err(failed)?;
        let wanted = match trace_claim {
            Some(claim) if claim.events == self.events() => TraceHash::Wanted,
            Some(_) | None => TraceHash::NotWanted,
        };
        let trace = self.replay(&mut hasher, |bytes| file.write_all(bytes).map_err(failed), wanted)?;

        let observed = Observed {
            meta: &receipt.meta,
            backend: &receipt.backend,
            capabilities: &receipt.capabilities,
            events: self.events(),
            trace,
        };
        let claims = closing.received.map(|received| claims::compare(received, trace_claim, &observed));
        let claims = claims.unwrap_or_default();

        let lock = self.folder.lock()?;
        let previous = self.folder.head()?;
        let note = Note {
            version: 1,
            previous,
            ending: &closing.ending,
            error: closing.error.as_deref(),
            order_sha256,
            events: self.events(),
            claims: &claims,
        };
        receipt.usage_raw = usage_raw(closing, &note);
        hasher.update(&receipt.after_trace()?);
        let sha256 = hasher.finish();
        let signature = closing.sign.map(|key| key.sign(&sha256));
        let written = file
            .write_all(&receipt.file_after_trace(&sha256, signature.as_ref()))
            .and_then(|()| file.into_inner().map_err(std::io::IntoInnerError::into_error))
            .and_then(|file| file.sync_all());
        written.map_err(failed)?;
        self.folder.publish(draft, &path, previous, sha256)?;
        drop(lock);
        self.remove()?;
        Ok(Sealed { path, sha256, previous, events: self.events(), claims, receipt })
    }
}

/// What was seen, and where nothing could be seen what the child says.
fn head(run: &RunId, closing: &Closing<'_>) -> ReceiptHead {
    let received = closing.received;
    let said = received.map(|received| received.usage).unwrap_or_default();
    let counted = closing.usage;
    let mut artifacts = received.map(|received| received.artifacts.clone()).unwrap_or_default();
    artifacts.extend(closing.artifacts.iter().cloned());
    let mut verification = received.map(|received| received.verification.clone()).unwrap_or_default();
    if closing.git_diff.is_some() {
        verification.git_diff.clone_from(&closing.git_diff);
    }
    if closing.git_status.is_some() {
        verification.git_status.clone_from(&closing.git_status);
    }
    let claimed_outcome = received.and_then(|received| received.outcome.clone());
    ReceiptHead {
        meta: Meta {
            run_id: RunId::new(run.canonical()),
            work_order_id: OrderId::new(closing.order.id.canonical()),
            contract_version: closing.contract_version.clone(),
            started_at: closing.started_at,
            finished_at: closing.started_at.after(closing.duration),
            duration_ms: u64::try_from(closing.duration.as_millis()).unwrap_or(u64::MAX),
        },
        backend: closing.backend.clone(),
        capabilities: closing.capabilities.clone(),
        mode: received.and_then(|received| received.mode.clone()).unwrap_or_else(|| closing.mode.clone()),
        usage: Usage {
            input_tokens: said.input_tokens.or(counted.input_tokens),
            output_tokens: said.output_tokens.or(counted.output_tokens),
            cache_read_tokens: said.cache_read_tokens.or(counted.cache_read_tokens),
            cache_write_tokens: said.cache_write_tokens.or(counted.cache_write_tokens),
            request_units: said.request_units.or(counted.request_units),
            estimated_cost_usd: said.estimated_cost_usd.or(counted.estimated_cost_usd),
        },
        usage_raw: Raw::NULL,
        artifacts,
        verification,
        outcome: closing.outcome.clone().or(claimed_outcome).unwrap_or(Outcome::Complete),
    }
}

/// The child's object with our two members; a child cannot write in our name.
fn usage_raw(closing: &Closing<'_>, note: &Note<'_>) -> Raw<'static> {
    let mut members = claims::usage_object(closing.received.and_then(|received| received.usage_raw.as_ref()));
    members.retain(|(name, _)| name != "negotiation_result" && name != "outrigger");
    let mut note = text(note);
    for (name, value) in super::head::members(&closing.account).unwrap_or_default() {
        note.truncate(note.len() - 1);
        note.push_str(&format!(",{}:{}}}", text(&name), value.as_str()));
    }
    members.push(("negotiation_result".to_owned(), Raw::trusted(text(&closing.negotiation))));
    members.push(("outrigger".to_owned(), Raw::trusted(note)));
    let members: Vec<String> =
        members.iter().map(|(name, value)| format!("{}:{}", text(name), value.as_str())).collect();
    Raw::trusted(format!("{{{}}}", members.join(",")))
}
