//! The contract as JSON Schemas, for those who check with other tools.

use schemars::JsonSchema;

/// The policy profile, as its schema is written; the profile itself lives in the policy crate.
#[derive(JsonSchema)]
#[schemars(rename = "PolicyProfile")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) struct Profile {
    /// Only these tools may be called; empty restricts nothing.
    allowed_tools: Vec<String>,
    /// These tools may not be called.
    disallowed_tools: Vec<String>,
    /// These files may not be read.
    deny_read: Vec<String>,
    /// These files may not be written.
    deny_write: Vec<String>,
    /// Only these hosts may be reached; empty restricts nothing.
    allow_network: Vec<String>,
    /// These hosts may not be reached.
    deny_network: Vec<String>,
    /// These tools may be called once a person agrees.
    require_approval_for: Vec<String>,
}
