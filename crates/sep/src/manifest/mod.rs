//! What is on disk, and what of it is believed: strict reading, the schema, the semantic rules, trust, signatures.
//!
//! [`check_bytes`] says everything that can be said about a manifest alone. [`discover`] and [`examine`] look at folders
//! and decide with the operator's policy whether an extension may run and what it may use. [`prepare`] looks again before
//! every start. [`sign()`] is for authors.

mod admission;
mod ceilings;
mod check;
mod discover;
mod examine;
mod file;
mod finding;
mod found;
mod key;
mod launch;
mod model;
mod nearest;
mod pattern;
mod requirement;
mod resolve;
mod rules;
mod schema;
mod shape;
mod sign;
mod splice;
mod strict;
mod topic;
mod tree;
mod trust;

pub use admission::{Admission, DeniedTopic, EventPlan, SandboxLevel};
pub use ceilings::{ceilings, grantable};
pub use check::{Checked, check_bytes, check_file};
pub use discover::discover;
pub use examine::examine;
pub use file::FILE_NAME;
pub use finding::{Finding, Severity, code};
pub use found::{Found, Home, HostFacts, Standing};
pub use key::{AuthorKey, BadKeyId, KeyError, KeyId, Keyring, PublicKey};
pub use launch::{Launch, LaunchError, prepare};
pub use model::{
    Android, Compatibility, Entrypoint, Health, Manifest, PanelClaim, RequestLimits, RuntimeMode, Signing,
};
pub(crate) use nearest::nearest;
pub use requirement::{BadRequirement, HostVersion, Requirement};
pub use rules::SCHEMA_VERSION;
pub use schema::{MAX_VIOLATIONS, SCHEMA};
pub use sign::{SignError, Signed, sign};
pub use strict::{MAX_DEPTH, MAX_MANIFEST_BYTES};
pub use tree::{TREE_BOUNDS, TreeBounds, TreeDigest, TreeError};
