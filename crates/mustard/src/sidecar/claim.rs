//! Which snapshot a host means, and whether it may have it: the same questions for `resume` and `inspect`, in the same order.
//!
//! Snapshot, then policy, then authentication; only then are bytes looked at. What a policy leaves out is refused, never
//! assumed.

use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::keep::Terms;
use super::problem::Problem;
use super::session::Session;
use super::world::World;
use crate::protocol::ids::{Digest, PolicyId, SnapshotId, SnapshotKey};
use crate::protocol::request::{Claim, Policy};
use crate::protocol::response::Code;

/// A snapshot that a host may have.
pub(super) struct Admitted {
    pub(super) id: SnapshotId,
    pub(super) terms: Rc<Terms>,
}

impl<W: World> Session<W> {
    /// Answers which snapshot is meant and on what terms it may be used.
    pub(super) fn admit(
        &mut self,
        claim: &Claim<'_>,
        blob: &[u8],
        method: &str,
    ) -> Result<Admitted, Problem> {
        let id = self.named(claim, blob, method)?;
        let terms = self.terms(claim, method)?;
        authenticate(claim, id, if blob.is_empty() { Path::Cached } else { Path::Raw })?;
        Ok(Admitted { id, terms })
    }

    fn named(&mut self, claim: &Claim<'_>, blob: &[u8], method: &str) -> Result<SnapshotId, Problem> {
        if !blob.is_empty() {
            let id = SnapshotId::of(blob);
            return match &claim.snapshot_id {
                Some(claimed) if **claimed != *id.hex().as_str() => {
                    Err(Problem::protocol(Code::ID_MISMATCH, "snapshot_id did not match snapshot bytes"))
                }
                _ => Ok(id),
            };
        }
        let Some(claimed) = &claim.snapshot_id else {
            let message = format!("{method} requires snapshot bytes or snapshot_id");
            return Err(Problem::protocol(Code::MISSING, message));
        };
        let known = SnapshotId::parse(claimed).filter(|id| self.kept.snapshot(id).is_some());
        known.ok_or_else(|| unknown(Code::UNKNOWN_SNAPSHOT, "snapshot_id", claimed, "the snapshot bytes"))
    }

    fn terms(&mut self, claim: &Claim<'_>, method: &str) -> Result<Rc<Terms>, Problem> {
        if let Some(policy) = &claim.policy {
            let limits = policy.limits.ok_or_else(|| required("explicit limits"))?;
            let terms = self.kept.agree(&policy.capabilities, limits);
            return match &claim.policy_id {
                Some(claimed) if **claimed != *terms.id.hex().as_str() => {
                    Err(Problem::protocol(Code::ID_MISMATCH, "policy_id did not match policy"))
                }
                _ => Ok(terms),
            };
        }
        let Some(claimed) = &claim.policy_id else {
            return Err(Problem::protocol(Code::MISSING, format!("{method} requires policy or policy_id")));
        };
        let known = PolicyId::parse(claimed).and_then(|id| self.kept.terms(&id));
        let known =
            known.ok_or_else(|| unknown(Code::UNKNOWN_POLICY, "policy_id", claimed, "the policy in full"))?;
        if claim.auth.is_none() {
            let message = format!("{method} with policy_id requires auth metadata");
            return Err(Problem::protocol(Code::MISSING, message));
        }
        Ok(known)
    }
}

/// How the snapshot came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    Cached,
    Raw,
}

/// Key, digest, token and snapshot must belong together. The key itself comes with every request: who has none of the
/// host's keys cannot make a token, and which keys are good is for the host to say.
fn authenticate(claim: &Claim<'_>, id: SnapshotId, path: Path) -> Result<(), Problem> {
    let (key, token, digest) = match (&claim.policy, &claim.auth) {
        (Some(policy), _) => {
            if path == Path::Raw {
                inner_id(policy, id)?;
            }
            let member = |member: &Option<_>, name| match member {
                Some(_) => Ok(()),
                None => Err(required(name)),
            };
            member(&policy.snapshot_key_base64, "snapshot_key_base64")?;
            member(&policy.snapshot_token, "snapshot_token")?;
            member(&policy.snapshot_key_digest, "snapshot_key_digest")?;
            (&policy.snapshot_key_base64, &policy.snapshot_token, &policy.snapshot_key_digest)
        }
        (None, Some(auth)) => (
            &Some(auth.snapshot_key_base64.clone()),
            &Some(auth.snapshot_token.clone()),
            &Some(auth.snapshot_key_digest.clone()),
        ),
        (None, None) => return Err(required("snapshot_token")),
    };
    let (Some(key), Some(token), Some(digest)) = (key, token, digest) else {
        return Err(required("snapshot_token"));
    };
    let key = STANDARD.decode(key.as_bytes()).map_err(|error| {
        Problem::protocol(Code::UNAUTHENTICATED, format!("snapshot_key_base64 is not base64: {error}"))
    })?;
    let key = SnapshotKey::new(key);
    if Digest::parse(digest) != Some(key.digest()) {
        let message = "raw snapshot restore rejected a mismatched snapshot key digest";
        return Err(Problem::protocol(Code::UNAUTHENTICATED, message));
    }
    if key.admits(id, token) { Ok(()) } else { Err(tampered()) }
}

fn inner_id(policy: &Policy<'_>, id: SnapshotId) -> Result<(), Problem> {
    match &policy.snapshot_id {
        None => Err(required("snapshot_id")),
        Some(claimed) if **claimed == *id.hex().as_str() => Ok(()),
        Some(_) => Err(tampered()),
    }
}

fn required(member: &str) -> Problem {
    Problem::protocol(Code::MISSING, format!("raw snapshot restore requires {member}"))
}

fn tampered() -> Problem {
    let message = "raw snapshot restore rejected a tampered or unauthenticated snapshot";
    Problem::protocol(Code::UNAUTHENTICATED, message)
}

/// Nothing is kept under this id. It may have been, so the message says what to send.
pub(super) fn unknown(code: Code, member: &str, claimed: &str, send: &str) -> Problem {
    // Ids have 64 digits; what is much longer is none, and not worth repeating.
    let shown: String = claimed.chars().take(80).collect();
    Problem::protocol(
        code,
        format!("unknown {member} `{shown}`: it was never here or was evicted; send {send}"),
    )
}
