//! The receipt as a child sends it: claims, each of which may be missing or wrong.

use std::borrow::Cow;

use serde::Serialize;

use super::capability::Manifest;
use super::fields::{EnvelopeError, Fields, Place};
use super::hello::{BackendIdentity, Mode};
use super::id::{OrderId, RunId};
use super::json::{Kind, Piece};
use super::raw::Raw;
use super::time::Timestamp;
use super::usage::Usage;
use super::version::ContractVersion;
use super::word::words;

words! {
    /// How a run ended.
    Outcome {
        Complete = "complete",
        Partial = "partial",
        Failed = "failed",
    }
}

/// What a child says about its run. A member that is missing or cannot be read is none; of the latter there is a problem too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReceivedReceipt<'a> {
    /// Which run.
    pub run_id: Option<RunId>,
    /// For which order.
    pub work_order_id: Option<OrderId>,
    /// By which contract.
    pub contract_version: Option<ContractVersion>,
    /// From when.
    pub started_at: Option<Timestamp>,
    /// Till when.
    pub finished_at: Option<Timestamp>,
    /// How long.
    pub duration_ms: Option<u64>,
    /// By whom.
    pub backend: Option<BackendIdentity>,
    /// Who can do what.
    pub capabilities: Option<Manifest>,
    /// In which mode.
    pub mode: Option<Mode>,
    /// What the vendor counted, as it came.
    pub usage_raw: Option<Raw<'a>>,
    /// What was counted.
    pub usage: Usage,
    /// The events that the child says it sent: an array, not looked into.
    pub trace: Option<Raw<'a>>,
    /// What was left behind.
    pub artifacts: Vec<Artifact>,
    /// What was checked.
    pub verification: Verification,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// The hash that the child computed.
    pub receipt_sha256: Option<String>,
    /// What could not be read.
    pub problems: Vec<EnvelopeError>,
}

/// A file that was left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Artifact {
    /// What sort of file.
    pub kind: String,
    /// Relative to the root of the workspace.
    pub path: String,
}

/// What was checked at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Verification {
    /// What changed.
    pub git_diff: Option<String>,
    /// Which files changed.
    pub git_status: Option<String>,
    /// Whether the harness was content.
    pub harness_ok: bool,
}

const NAMES: [&str; 10] = [
    "meta",
    "backend",
    "capabilities",
    "mode",
    "usage_raw",
    "usage",
    "trace",
    "artifacts",
    "verification",
    "outcome",
];

impl<'a> ReceivedReceipt<'a> {
    /// Reads what can be read. The trace may be as long as the line; it is neither decoded nor copied here.
    ///
    /// # Errors
    /// When it is not JSON, or no object.
    pub fn read(text: &'a str) -> Result<Self, EnvelopeError> {
        Self::of_piece(&Piece::read(text)?, &Place::ROOT)
    }

    pub(super) fn of_piece(piece: &Piece<'a>, place: &Place<'_>) -> Result<Self, EnvelopeError> {
        let fields = Fields::required(piece, place, NAMES)?;
        let hash = Fields::required(piece, place, ["receipt_sha256"])?;
        let mut problems = Vec::new();
        let mut receipt = Self::default();
        let meta_place = place.member("meta");
        let names =
            ["run_id", "work_order_id", "contract_version", "started_at", "finished_at", "duration_ms"];
        if let Some(meta) = note(&mut problems, Fields::optional(&fields.piece("meta"), &meta_place, names)) {
            let mut text = |name| note(&mut problems, meta.opt_string(name)).flatten();
            receipt.run_id = text("run_id").map(RunId::new);
            receipt.work_order_id = text("work_order_id").map(OrderId::new);
            receipt.contract_version = text("contract_version").map(ContractVersion::new);
            receipt.started_at = note(&mut problems, meta.opt_time("started_at")).flatten();
            receipt.finished_at = note(&mut problems, meta.opt_time("finished_at")).flatten();
            receipt.duration_ms = note(&mut problems, meta.opt_u64("duration_ms")).flatten();
        }
        let backend = fields.piece("backend");
        if !backend.is_none() {
            receipt.backend =
                note(&mut problems, BackendIdentity::of_piece(&backend, &place.member("backend")));
        }
        let capabilities = fields.piece("capabilities");
        if !capabilities.is_none() {
            receipt.capabilities =
                note(&mut problems, Manifest::of_piece(&capabilities, &place.member("capabilities")));
        }
        let mut word = |name| note(&mut problems, fields.opt_text(name)).flatten();
        receipt.mode = word("mode").map(|mode| Mode::from(&*mode));
        receipt.outcome = word("outcome").map(|outcome| Outcome::from(&*outcome));
        receipt.receipt_sha256 =
            note(&mut problems, hash.opt_text("receipt_sha256")).flatten().map(Cow::into_owned);
        let usage_raw = fields.piece("usage_raw");
        receipt.usage_raw = (usage_raw.kind != Kind::Absent).then(|| Raw::of_piece(&usage_raw));
        let usage = Usage::of_piece(&fields.piece("usage"), &place.member("usage"));
        receipt.usage = note(&mut problems, usage).unwrap_or_default();
        let trace = fields.piece("trace");
        match trace.kind {
            Kind::Absent | Kind::Null => {}
            Kind::Array => receipt.trace = Some(Raw::of_piece(&trace)),
            _ => problems.push(place.member("trace").wrong(&trace, "an array")),
        }
        let artifacts = fields.list("artifacts", |piece, place| {
            let fields = Fields::required(piece, place, ["kind", "path"])?;
            Ok(Artifact { kind: fields.text("kind")?.into_owned(), path: fields.text("path")?.into_owned() })
        });
        receipt.artifacts = note(&mut problems, artifacts).unwrap_or_default();
        let verification =
            Verification::of_piece(&fields.piece("verification"), &place.member("verification"));
        receipt.verification = note(&mut problems, verification).unwrap_or_default();
        receipt.problems = problems;
        Ok(receipt)
    }

    /// The same, owned.
    #[must_use]
    pub fn into_owned(self) -> ReceivedReceipt<'static> {
        ReceivedReceipt {
            usage_raw: self.usage_raw.map(Raw::into_owned),
            trace: self.trace.map(Raw::into_owned),
            run_id: self.run_id,
            work_order_id: self.work_order_id,
            contract_version: self.contract_version,
            started_at: self.started_at,
            finished_at: self.finished_at,
            duration_ms: self.duration_ms,
            backend: self.backend,
            capabilities: self.capabilities,
            mode: self.mode,
            usage: self.usage,
            artifacts: self.artifacts,
            verification: self.verification,
            outcome: self.outcome,
            receipt_sha256: self.receipt_sha256,
            problems: self.problems,
        }
    }
}

impl Verification {
    pub(crate) fn of_piece(piece: &Piece<'_>, place: &Place<'_>) -> Result<Self, EnvelopeError> {
        let fields = Fields::optional(piece, place, ["git_diff", "git_status", "harness_ok"])?;
        Ok(Self {
            git_diff: fields.opt_string("git_diff")?,
            git_status: fields.opt_string("git_status")?,
            harness_ok: fields.opt_bool("harness_ok")?.unwrap_or(false),
        })
    }
}

/// The value, or its error among the problems.
fn note<T>(problems: &mut Vec<EnvelopeError>, read: Result<T, EnvelopeError>) -> Option<T> {
    read.map_err(|error| problems.push(error)).ok()
}
