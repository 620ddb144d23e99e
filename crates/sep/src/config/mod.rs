//! The policy of a host, as a file: where extensions are, whom to trust, what to allow, how much.
//!
//! Everything has a value that is safe: what is not written down is not allowed. A key that nobody knows is an error.

mod choice;
mod dump;
mod file;
mod limit;
mod read;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_policy::Digest;

pub use choice::{
    Activation, Background, BackgroundChoice, SandboxPolicy, SignaturePolicy, TracePolicy, TransportPolicy,
    UntrustedLocal,
};
pub use limit::{LimitKey, LimitOverrides};
pub use read::PolicyError;

use crate::manifest::{KeyId, TreeDigest};
use crate::protocol::{ExtensionId, Permission, TrustLevel};

/// What the operator decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPolicy {
    /// Where extensions are looked for, in this order.
    pub extensions_dirs: Vec<PathBuf>,
    /// The folder that comes with the host. Looked into first; what is in it is first party.
    pub builtin_dir: Option<PathBuf>,
    /// Where the host keeps its own files.
    pub state_dir: PathBuf,
    /// Where public keys are, each as `<name>.pub`.
    pub keys_dir: PathBuf,
    /// Whether an extension's folder may be a symbolic link. Links inside it are never followed.
    pub follow_symlinks: bool,
    /// The version of the application that extensions compare themselves with.
    pub compatible_with: String,
    /// Whether extensions that nobody vouches for run at all.
    pub untrusted_local: UntrustedLocal,
    /// What signatures are good for.
    pub signatures: SignaturePolicy,
    /// How extensions are boxed.
    pub sandbox: SandboxPolicy,
    /// How extensions connect.
    pub transport: TransportPolicy,
    /// When extensions are started.
    pub activation: Activation,
    /// How long a lazily started extension may have nothing to do; none means for ever.
    pub idle_stop: Option<Duration>,
    /// Where runtimes such as `python3` are looked for, with colons between. The host's own `PATH` does not count.
    pub runtime_path: String,
    /// The runtimes that an untrusted extension may name.
    pub untrusted_runtimes: Vec<String>,
    /// The programs that an extension may name by their absolute path.
    pub approved_programs: Vec<ApprovedProgram>,
    /// The keys of the application's own makers.
    pub first_party_keys: Vec<KeyId>,
    /// The extensions that the operator vouches for.
    pub trusted: Vec<Trusted>,
    /// What the operator allows which extension.
    pub grants: BTreeMap<ExtensionId, Vec<Permission>>,
    /// Other ceilings than the usual ones, by trust.
    pub limits: BTreeMap<TrustLevel, LimitOverrides>,
    /// What a phone allows.
    pub android: AndroidPolicy,
    /// Whether frames are kept for people who look for mistakes.
    pub trace: TracePolicy,
}

/// A program outside the extension that it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovedProgram {
    /// Its absolute path.
    pub path: PathBuf,
    /// What its content must be.
    pub sha256: Option<Digest>,
}

/// An extension that the operator vouches for, and how it is known again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trusted {
    /// Which.
    pub id: ExtensionId,
    /// What proves that it is the one.
    pub proof: Proof,
}

/// How an extension is known again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// By its files.
    Tree(TreeDigest),
    /// By whoever signed it.
    Key(KeyId),
}

/// What a phone allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AndroidPolicy {
    /// Who may run in the background.
    pub background: Background,
    /// The name of the runtime that is packaged with the host.
    pub packaged_runtime: String,
    /// The modules that are packaged with it.
    pub packaged_modules: Vec<String>,
    /// Other runtimes. Each needs its content written down.
    pub approved_runtimes: Vec<ApprovedProgram>,
    /// Whether extensions that are not first party run at all.
    pub allow_third_party: bool,
}

/// Where runtimes are, unless the policy says otherwise.
pub const RUNTIME_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The application version that extensions see, unless the policy says otherwise.
pub const COMPATIBLE_WITH: &str = "4.6.0";
/// The runtime that is packaged with hosts on phones.
pub const PACKAGED_RUNTIME: &str = "meshchatx-android-extension-runtime";

impl HostPolicy {
    /// The policy of somebody who wrote nothing down but where things are.
    #[must_use]
    pub fn new(state_dir: PathBuf, extensions_dirs: Vec<PathBuf>) -> Self {
        Self {
            extensions_dirs,
            builtin_dir: None,
            keys_dir: state_dir.join("keys"),
            state_dir,
            follow_symlinks: false,
            compatible_with: COMPATIBLE_WITH.to_owned(),
            untrusted_local: UntrustedLocal::Deny,
            signatures: SignaturePolicy::VerifyIfPresent,
            sandbox: SandboxPolicy::Auto,
            transport: TransportPolicy::Auto,
            activation: Activation::Eager,
            idle_stop: None,
            runtime_path: RUNTIME_PATH.to_owned(),
            untrusted_runtimes: vec!["python3".to_owned()],
            approved_programs: Vec::new(),
            first_party_keys: Vec::new(),
            trusted: Vec::new(),
            grants: BTreeMap::new(),
            limits: BTreeMap::new(),
            android: AndroidPolicy {
                background: Background::Deny,
                packaged_runtime: PACKAGED_RUNTIME.to_owned(),
                packaged_modules: Vec::new(),
                approved_runtimes: Vec::new(),
                allow_third_party: false,
            },
            trace: TracePolicy::Off,
        }
    }

    /// Reads a policy. Paths in it are relative to its own folder; keys are in `keys` beside it unless it says otherwise.
    ///
    /// # Errors
    /// When it cannot be read, or says something that is not understood: with the line and the key.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        read::load(path)
    }

    /// Reads a policy from a text that stands for a file in `folder`.
    ///
    /// # Errors
    /// As for [`HostPolicy::load`].
    pub fn parse(text: &str, folder: &Path) -> Result<Self, PolicyError> {
        read::parse(text, folder)
    }

    /// The whole policy, with everything that was not written down. Reading it gives the same policy.
    #[must_use]
    pub fn to_toml(&self) -> String {
        dump::to_toml(self)
    }
}
