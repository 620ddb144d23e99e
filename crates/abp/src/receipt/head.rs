//! A receipt without its trace: what is the same size however long the run was.

use std::collections::BTreeMap;

use outrigger_policy::Digest;
use schemars::JsonSchema;
use serde::Serialize;
use sha2::Digest as _;

use super::canonical::{self, CanonicalError};
use crate::protocol::{
    Artifact, BackendIdentity, ContractVersion, Manifest, Mode, OrderId, Outcome, Raw, ReceivedReceipt,
    RunId, Timestamp, Usage, Verification,
};

/// A receipt without its trace and its hash.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReceiptHead {
    /// Which run, when, by which contract.
    pub meta: Meta,
    /// By whom.
    pub backend: BackendIdentity,
    /// Who can do what.
    pub capabilities: Manifest,
    /// How the vendor's messages were treated.
    pub mode: Mode,
    /// What was counted.
    pub usage: Usage,
    /// What the vendor counted, and what the control plane added.
    pub usage_raw: Raw<'static>,
    /// What was left behind.
    pub artifacts: Vec<Artifact>,
    /// What was checked.
    pub verification: Verification,
    /// How it ended.
    pub outcome: Outcome,
}

/// Which run, when, by which contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Meta {
    /// The run.
    pub run_id: RunId,
    /// The order.
    pub work_order_id: OrderId,
    /// The contract.
    pub contract_version: ContractVersion,
    /// From when.
    pub started_at: Timestamp,
    /// Till when.
    pub finished_at: Timestamp,
    /// How long.
    pub duration_ms: u64,
}

impl ReceiptHead {
    /// The head of a receipt that was read, or the names of the members that it lacks.
    pub(super) fn of_received(receipt: &ReceivedReceipt<'_>) -> Result<Self, Vec<&'static str>> {
        let lacks = [
            ("meta.run_id", receipt.run_id.is_none()),
            ("meta.work_order_id", receipt.work_order_id.is_none()),
            ("meta.contract_version", receipt.contract_version.is_none()),
            ("meta.started_at", receipt.started_at.is_none()),
            ("meta.finished_at", receipt.finished_at.is_none()),
            ("meta.duration_ms", receipt.duration_ms.is_none()),
            ("backend", receipt.backend.is_none()),
            ("capabilities", receipt.capabilities.is_none()),
            ("outcome", receipt.outcome.is_none()),
        ];
        let missing = || lacks.iter().filter(|(_, lacks)| *lacks).map(|(name, _)| *name).collect::<Vec<_>>();
        let whole = (|| {
            Some(Self {
                meta: Meta {
                    run_id: receipt.run_id.clone()?,
                    work_order_id: receipt.work_order_id.clone()?,
                    contract_version: receipt.contract_version.clone()?,
                    started_at: receipt.started_at?,
                    finished_at: receipt.finished_at?,
                    duration_ms: receipt.duration_ms?,
                },
                backend: receipt.backend.clone()?,
                capabilities: receipt.capabilities.clone()?,
                mode: receipt.mode.clone().unwrap_or(Mode::Mapped),
                usage: receipt.usage,
                usage_raw: receipt.usage_raw.clone().map_or(Raw::NULL, Raw::into_owned),
                artifacts: receipt.artifacts.clone(),
                verification: receipt.verification.clone(),
                outcome: receipt.outcome.clone()?,
            })
        })();
        whole.ok_or_else(missing)
    }

    /// What the control plane noted, if this receipt is one of ours.
    #[must_use]
    pub fn outrigger(&self) -> Option<serde_json::Value> {
        self.usage_raw.to_value().get("outrigger").cloned()
    }

    /// The hash of the receipt before this one: none if it is the first, or no link of a chain.
    #[must_use]
    pub fn previous(&self) -> Option<Digest> {
        self.outrigger()?.get("previous")?.as_str()?.parse().ok()
    }

    /// The canonical text before the events.
    pub(super) fn before_trace(&self) -> Result<Vec<u8>, CanonicalError> {
        let mut out = Vec::new();
        out.extend_from_slice(b"{\"artifacts\":");
        spell(&mut out, &self.artifacts)?;
        out.extend_from_slice(b",\"backend\":");
        spell(&mut out, &self.backend)?;
        out.extend_from_slice(b",\"capabilities\":");
        spell(&mut out, &self.capabilities)?;
        out.extend_from_slice(b",\"meta\":");
        let meta = Meta {
            run_id: RunId::new(self.meta.run_id.canonical()),
            work_order_id: OrderId::new(self.meta.work_order_id.canonical()),
            ..self.meta.clone()
        };
        spell(&mut out, &meta)?;
        out.extend_from_slice(b",\"mode\":");
        spell(&mut out, &self.mode)?;
        out.extend_from_slice(b",\"outcome\":");
        spell(&mut out, &self.outcome)?;
        out.extend_from_slice(b",\"receipt_sha256\":null,\"trace\":[");
        Ok(out)
    }

    /// The canonical text after the events.
    pub(super) fn after_trace(&self) -> Result<Vec<u8>, CanonicalError> {
        let mut out = Vec::new();
        out.extend_from_slice(b"],\"usage\":");
        spell(&mut out, &self.usage)?;
        out.extend_from_slice(b",\"usage_raw\":");
        canonical::write(&mut out, self.usage_raw.as_str())?;
        out.extend_from_slice(b",\"verification\":");
        spell(&mut out, &self.verification)?;
        out.push(b'}');
        Ok(out)
    }

    /// How the file begins: everything before the events.
    pub(super) fn file_before_trace(&self) -> Vec<u8> {
        let members = [
            ("meta", text(&self.meta)),
            ("backend", text(&self.backend)),
            ("capabilities", text(&self.capabilities)),
            ("mode", text(&self.mode)),
            ("usage", text(&self.usage)),
        ];
        let mut out = b"{\n".to_vec();
        for (name, text) in members {
            out.extend_from_slice(format!("\"{name}\":{text},\n").as_bytes());
        }
        out.extend_from_slice(b"\"trace\":[");
        out
    }

    /// How the file ends: everything after the events.
    pub(super) fn file_after_trace(&self, sha256: &Digest, signature: Option<&Signature>) -> Vec<u8> {
        let mut members = vec![
            ("usage_raw", self.usage_raw.as_str().to_owned()),
            ("artifacts", text(&self.artifacts)),
            ("verification", text(&self.verification)),
            ("outcome", text(&self.outcome)),
            ("receipt_sha256", text(sha256)),
        ];
        members.extend(signature.map(|signature| ("signature", text(signature))));
        let mut out = b"]".to_vec();
        for (name, text) in members {
            out.extend_from_slice(format!(",\n\"{name}\":{text}").as_bytes());
        }
        out.extend_from_slice(b"\n}\n");
        out
    }
}

/// A signature, beside the hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Signature {
    /// Always `ed25519`.
    pub algorithm: String,
    /// In hexadecimal digits.
    pub public_key: String,
    /// In hexadecimal digits.
    pub value: String,
}

/// A SHA-256 that is fed piece by piece.
pub(super) struct Hasher(sha2::Sha256);

impl Hasher {
    pub(super) fn new() -> Self {
        Self(sha2::Sha256::new())
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn finish(self) -> Digest {
        let bytes: [u8; 32] = self.0.finalize().into();
        // 64 lower-case digits are a digest; zero is for a day when that is no longer so.
        hex(&bytes).parse().unwrap_or(Digest::ZERO)
    }
}

/// Lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The SHA-256 of the canonical spelling of a JSON text.
///
/// # Errors
/// When it has no canonical spelling.
pub fn canonical_sha256(json: &str) -> Result<Digest, CanonicalError> {
    Ok(Digest::of(canonical::canonical(json)?.as_bytes()))
}

fn spell(out: &mut Vec<u8>, value: &impl Serialize) -> Result<(), CanonicalError> {
    canonical::write(out, &text(value))
}

/// Our own types are maps with string keys and numbers that JSON has.
pub(super) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// The members of an object, each with its text; of those with the same name the last one.
pub(super) fn members(object: &Raw<'_>) -> Option<BTreeMap<String, Raw<'static>>> {
    use crate::protocol::json::{Kind, Piece};
    let piece = Piece::read(object.as_str()).ok().filter(|piece| piece.kind == Kind::Object)?;
    let mut members = BTreeMap::new();
    crate::protocol::fields::each_member(&piece, |key, value| {
        members.insert(key.into_owned(), Raw::of_piece(&value).into_owned());
        Ok(())
    })
    .ok()?;
    Some(members)
}
