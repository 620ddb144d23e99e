//! An extension as it was found on disk, and the host it was found by.

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_policy::Digest;

use super::admission::Admission;
use super::finding::Finding;
use super::model::Manifest;
use super::tree::TreeDigest;
use crate::protocol::words::words;
use crate::protocol::{ExtensionId, Profile};

/// One folder in which there is, or should be, an extension.
#[derive(Clone, Debug)]
pub struct Found {
    /// Who it is. No two of one discovery have the same; a second one with an id that is taken has none.
    pub id: Option<ExtensionId>,
    /// Its folder.
    pub dir: PathBuf,
    /// Whether it may run.
    pub standing: Standing,
    /// What it says about itself, unless it cannot be used.
    pub manifest: Option<Arc<Manifest>>,
    /// Everything that was noticed, sorted by path.
    pub findings: Vec<Finding>,
    /// What it may be and use, if it may run; also when nobody on this platform can run it.
    pub admission: Option<Admission>,
    /// What its files are, if they could all be read. An operator who approves them writes this down.
    pub digest: Option<TreeDigest>,
    /// What the manifest's bytes were.
    pub(super) manifest_digest: Option<Digest>,
    /// What would be started.
    pub(super) resolved: Option<super::resolve::Resolved>,
    /// Where it is in the order of trust.
    pub(super) home: Home,
}

words! {
    /// Whether an extension may run.
    Standing ("standing") {
        /// Its manifest cannot be used.
        Invalid = "invalid",
        /// Its manifest is right, but it may not run here.
        Blocked = "blocked",
        /// The platform has nothing to run it with.
        Unavailable = "unavailable",
        /// It may run.
        Admitted = "admitted",
    }
}

/// Where an extension lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In the folder that comes with the host.
    Builtin,
    /// In one of the operator's folders.
    Configured,
}

/// What an extension could want to know about its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFacts {
    /// The version of this program. What extensions compare with is the policy's `compatible_with`.
    pub version: String,
    /// `linux`, `macos`, `windows`, `android`.
    pub os: String,
    /// `x64`, `arm64`, or what the compiler calls it.
    pub arch: String,
    /// The kind of machine.
    pub profile: Profile,
    /// Whose files are believed, beside those of root.
    pub uid: u32,
}

impl HostFacts {
    /// The facts about this process.
    #[must_use]
    pub fn here(version: &str, profile: Profile) -> Self {
        let arch = match std::env::consts::ARCH {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            other => other,
        };
        let os = match profile {
            Profile::Desktop => std::env::consts::OS,
            Profile::Android => "android",
        };
        let uid = rustix::process::getuid().as_raw();
        Self { version: version.to_owned(), os: os.to_owned(), arch: arch.to_owned(), profile, uid }
    }

    /// The name of the platform in a manifest, as in `linux-x64`.
    #[must_use]
    pub fn platform(&self) -> String {
        format!("{}-{}", self.os, self.arch)
    }
}
