//! The policy as it is written in a file. Every key is optional here; what is missing has its safe value.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::choice::{
    Activation, BackgroundChoice, SandboxPolicy, SignaturePolicy, TracePolicy, TransportPolicy,
    UntrustedLocal,
};
use super::limit::LimitOverrides;
use crate::manifest::{KeyId, TreeDigest};
use crate::protocol::{ExtensionId, Permission, TrustLevel};
use outrigger_policy::Digest;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyFile {
    pub(super) extensions_dirs: Option<Vec<PathBuf>>,
    pub(super) builtin_dir: Option<PathBuf>,
    pub(super) state_dir: Option<PathBuf>,
    pub(super) keys_dir: Option<PathBuf>,
    pub(super) follow_symlinks: Option<bool>,
    pub(super) compatible_with: Option<String>,
    pub(super) untrusted_local: Option<UntrustedLocal>,
    pub(super) signatures: Option<SignaturePolicy>,
    pub(super) sandbox: Option<SandboxPolicy>,
    pub(super) transport: Option<TransportPolicy>,
    pub(super) activation: Option<Activation>,
    pub(super) idle_stop_ms: Option<u64>,
    pub(super) runtime_path: Option<String>,
    pub(super) untrusted_runtimes: Option<Vec<String>>,
    pub(super) first_party_keys: Option<Vec<KeyId>>,
    pub(super) trace: Option<TracePolicy>,
    pub(super) approved_programs: Option<Vec<ProgramEntry>>,
    pub(super) trusted: Option<Vec<TrustedEntry>>,
    pub(super) grants: Option<BTreeMap<ExtensionId, Vec<Permission>>>,
    pub(super) limits: Option<BTreeMap<TrustLevel, LimitOverrides>>,
    pub(super) android: Option<AndroidFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProgramEntry {
    pub(super) path: PathBuf,
    pub(super) sha256: Option<Digest>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrustedEntry {
    pub(super) id: ExtensionId,
    pub(super) tree_sha256: Option<TreeDigest>,
    pub(super) key_id: Option<KeyId>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AndroidFile {
    pub(super) background: Option<BackgroundChoice>,
    pub(super) background_allowlist: Option<Vec<ExtensionId>>,
    pub(super) packaged_runtime: Option<String>,
    pub(super) packaged_modules: Option<Vec<String>>,
    pub(super) allow_third_party: Option<bool>,
    pub(super) approved_runtimes: Option<Vec<ProgramEntry>>,
}
