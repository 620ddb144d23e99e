//! Extensions: any bytes as a manifest, as a policy, as the frames of a session, and as a sequence of things that happen to one.

use std::path::Path;

use outrigger_sep::config::HostPolicy;
use outrigger_sep::host::gate;
use outrigger_sep::host::life::model;
use outrigger_sep::manifest::{Severity, check_bytes};

/// A manifest has findings that say where, in order, and the same ones every time; without an error there is a manifest.
pub fn sep_manifest(input: &[u8]) {
    let checked = check_bytes(input);
    assert!(
        checked.findings.iter().all(|finding| finding.code.starts_with("M-") && !finding.message.is_empty())
    );
    assert!(checked.findings.is_sorted_by(|one, next| one.path <= next.path), "findings are sorted by path");
    let broken = checked.findings.iter().any(|finding| finding.severity == Severity::Error);
    assert_eq!(checked.manifest.is_none(), broken, "{:?}", checked.findings);
    assert_eq!(check_bytes(input).findings, checked.findings);
}

/// A policy that can be read is read the same from what it is written as.
pub fn sep_policy(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let folder = Path::new("/nowhere");
    if let Ok(policy) = HostPolicy::parse(text, folder) {
        let again = HostPolicy::parse(&policy.to_toml(), folder);
        assert_eq!(again.expect("what we write can be read"), policy);
    }
}

/// Frames of an extension: see [`gate::fuzz`].
pub fn sep_frames(input: &[u8]) {
    gate::fuzz(input);
}

/// What happens to an extension on a desktop, against a model that is a plain table.
pub fn sep_lifecycle(input: &[u8]) {
    model::lifecycle_bytes(input);
}

/// What happens to one on a phone.
pub fn sep_android(input: &[u8]) {
    model::android_bytes(input);
}
