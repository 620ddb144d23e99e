//! Everything that can be said about a manifest without looking at anything else.

use std::path::Path;

use serde_json::Value;

use super::file::read_manifest;
use super::finding::{Finding, any_error, code};
use super::model::Manifest;
use super::{rules, schema, shape, strict};

/// What came of looking at a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The manifest; none if there is an error among the findings.
    pub manifest: Option<Manifest>,
    /// Everything that was noticed, sorted by path.
    pub findings: Vec<Finding>,
}

/// Looks at the bytes of a manifest: strict JSON, the schema, and the rules that need no disk. Works for any bytes.
///
/// ```
/// use outrigger_sep::manifest::check_bytes;
///
/// let checked = check_bytes(br#"{"schemaVersion": "1.0.0", "idd": "org.example.notes"}"#);
/// assert!(checked.manifest.is_none());
/// let finding = checked.findings.iter().find(|finding| finding.path == "/idd").unwrap();
/// assert_eq!((finding.code, finding.suggestion.as_deref()), ("M-schema", Some("did you mean `id`?")));
/// ```
#[must_use]
pub fn check_bytes(bytes: &[u8]) -> Checked {
    match strict::read(bytes) {
        (Some(value), findings) => check_value(&value, findings),
        (None, findings) => Checked { manifest: None, findings },
    }
}

/// Looks at one file: [`check_bytes`], if it is a plain file.
#[must_use]
pub fn check_file(path: &Path) -> Checked {
    match read_manifest(path) {
        Ok(file) => check_bytes(&file.bytes),
        Err(finding) => Checked { manifest: None, findings: vec![finding] },
    }
}

/// Looks at a value; `findings` are those of its spelling.
pub(super) fn check_value(value: &Value, mut findings: Vec<Finding>) -> Checked {
    if let Some(foreign) = rules::schema_version(value) {
        findings.push(foreign);
        findings.sort();
        return Checked { manifest: None, findings };
    }
    findings.extend(schema::validate(value));
    findings.extend(rules::check(value));
    let mut manifest = None;
    if !any_error(&findings) {
        manifest = shape::manifest(value);
        if manifest.is_none() {
            findings.push(Finding::error(code::SCHEMA, "", "the manifest cannot be understood"));
        }
    }
    findings.sort();
    findings.dedup();
    Checked { manifest, findings }
}
