//! The effective policy as text, so that nobody has to guess what holds.

use std::time::Duration;

use super::choice::{Background, BackgroundChoice};
use super::file::{AndroidFile, PolicyFile, ProgramEntry, TrustedEntry};
use super::{AndroidPolicy, ApprovedProgram, HostPolicy, Proof, Trusted};

pub(super) fn to_toml(policy: &HostPolicy) -> String {
    // Only a path that is not UTF-8 has no spelling in TOML; a comment is then all that can be shown.
    toml::to_string(&as_file(policy)).unwrap_or_else(|error| format!("# cannot be shown: {error}\n"))
}

fn as_file(policy: &HostPolicy) -> PolicyFile {
    let idle = policy.idle_stop.unwrap_or(Duration::ZERO);
    PolicyFile {
        extensions_dirs: Some(policy.extensions_dirs.clone()),
        builtin_dir: policy.builtin_dir.clone(),
        state_dir: Some(policy.state_dir.clone()),
        keys_dir: Some(policy.keys_dir.clone()),
        follow_symlinks: Some(policy.follow_symlinks),
        compatible_with: Some(policy.compatible_with.clone()),
        untrusted_local: Some(policy.untrusted_local),
        signatures: Some(policy.signatures),
        sandbox: Some(policy.sandbox),
        transport: Some(policy.transport),
        activation: Some(policy.activation),
        idle_stop_ms: Some(u64::try_from(idle.as_millis()).unwrap_or(u64::MAX)),
        runtime_path: Some(policy.runtime_path.clone()),
        untrusted_runtimes: Some(policy.untrusted_runtimes.clone()),
        first_party_keys: Some(policy.first_party_keys.clone()),
        trace: Some(policy.trace),
        approved_programs: Some(programs(&policy.approved_programs)),
        trusted: Some(policy.trusted.iter().map(trusted).collect()),
        grants: Some(policy.grants.clone()),
        limits: Some(policy.limits.clone()),
        android: Some(android(&policy.android)),
    }
}

fn programs(list: &[ApprovedProgram]) -> Vec<ProgramEntry> {
    list.iter().map(|one| ProgramEntry { path: one.path.clone(), sha256: one.sha256 }).collect()
}

fn trusted(entry: &Trusted) -> TrustedEntry {
    let id = entry.id.clone();
    match &entry.proof {
        Proof::Tree(tree) => TrustedEntry { id, tree_sha256: Some(*tree), key_id: None },
        Proof::Key(key) => TrustedEntry { id, tree_sha256: None, key_id: Some(key.clone()) },
    }
}

fn android(policy: &AndroidPolicy) -> AndroidFile {
    let (background, allowlist) = match &policy.background {
        Background::Deny => (BackgroundChoice::Deny, None),
        Background::Allow => (BackgroundChoice::Allow, None),
        Background::Only(ids) => (BackgroundChoice::Allowlist, Some(ids.clone())),
    };
    AndroidFile {
        background: Some(background),
        background_allowlist: allowlist,
        packaged_runtime: Some(policy.packaged_runtime.clone()),
        packaged_modules: Some(policy.packaged_modules.clone()),
        allow_third_party: Some(policy.allow_third_party),
        approved_runtimes: Some(programs(&policy.approved_runtimes)),
    }
}
