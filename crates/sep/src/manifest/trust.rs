//! How far an extension is trusted: the smaller of what it claims and what can be proved. A claim alone proves nothing.

use super::found::Home;
use super::sign::Verdict;
use super::tree::TreeDigest;
use crate::config::{HostPolicy, Proof, SignaturePolicy};
use crate::protocol::{ExtensionId, TrustLevel};

/// What is known about the one who wants to be trusted.
pub(super) struct Evidence<'e> {
    pub(super) id: &'e ExtensionId,
    pub(super) home: Home,
    pub(super) tree: TreeDigest,
    pub(super) signature: &'e Verdict,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// Trusted so far, and why not as far as it claims.
    Level { trust: TrustLevel, clamped: Option<String> },
    /// The operator approved other files.
    Tampered { approved: Vec<TreeDigest> },
}

pub(super) fn judge(claim: TrustLevel, evidence: &Evidence<'_>, policy: &HostPolicy) -> Judged {
    let signer = match (evidence.signature, policy.signatures) {
        (Verdict::Valid(key), SignaturePolicy::VerifyIfPresent | SignaturePolicy::Require) => Some(key),
        (Verdict::Valid(_), SignaturePolicy::Off) => None,
        (Verdict::Absent | Verdict::Unverified(_) | Verdict::Invalid(_), _) => None,
    };
    let first_party =
        evidence.home == Home::Builtin || signer.is_some_and(|key| policy.first_party_keys.contains(key));
    let entries = || policy.trusted.iter().filter(|entry| entry.id == *evidence.id);
    let vouched = entries().any(|entry| match &entry.proof {
        Proof::Tree(tree) => *tree == evidence.tree,
        Proof::Key(key) => signer == Some(key),
    });
    let approved: Vec<TreeDigest> = entries()
        .filter_map(|entry| match &entry.proof {
            Proof::Tree(tree) => Some(*tree),
            Proof::Key(_) => None,
        })
        .collect();
    let provable = match (first_party, vouched) {
        (true, _) => TrustLevel::FirstParty,
        (false, true) => TrustLevel::TrustedThirdParty,
        (false, false) if !approved.is_empty() => return Judged::Tampered { approved },
        (false, false) => TrustLevel::UntrustedLocal,
    };
    let clamped = (claim > provable).then(|| why_not(claim, provable, evidence));
    Judged::Level { trust: claim.min(provable), clamped }
}

fn why_not(claim: TrustLevel, provable: TrustLevel, evidence: &Evidence<'_>) -> String {
    let signature = match evidence.signature {
        Verdict::Absent => "it is not signed".to_owned(),
        Verdict::Valid(key) => format!("it is signed by `{key}`, which does not prove that"),
        Verdict::Unverified(why) | Verdict::Invalid(why) => why.clone(),
    };
    match provable {
        TrustLevel::UntrustedLocal => {
            format!("it claims to be {claim}, but no entry of the operator vouches for it and {signature}")
        }
        TrustLevel::TrustedThirdParty | TrustLevel::FirstParty => {
            format!("it claims to be {claim}, but only {provable} can be proved: {signature}")
        }
    }
}
