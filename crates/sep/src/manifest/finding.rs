//! What is wrong, or worth knowing, about a manifest: a stable code for programs, a sentence for people, and where.

use serde::Serialize;

use crate::protocol::words::words;

words! {
    /// What a finding does to the extension. Worst first.
    Severity ("severity") {
        /// The manifest cannot be used.
        Error = "error",
        /// The manifest is right, but the extension may not run here.
        Block = "block",
        /// It runs; somebody may want to know.
        Warning = "warning",
    }
}

/// One thing about a manifest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// Where in the manifest, as a JSON pointer; empty for the whole of it.
    pub path: String,
    /// What it does.
    pub severity: Severity,
    /// Its stable name, one of [`code`].
    pub code: &'static str,
    /// The word of the schema that is not obeyed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyword: Option<&'static str>,
    /// What is wrong, for people.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// The stable names of findings. A name never changes its meaning.
pub mod code {
    /// The manifest is not a regular file, or cannot be read.
    pub const FILE: &str = "M-file";
    /// A folder of extensions cannot be read.
    pub const ROOT: &str = "M-root";
    /// Not one JSON value.
    pub const JSON: &str = "M-json";
    /// Too large.
    pub const SIZE: &str = "M-size";
    /// Not UTF-8, or with a byte order mark.
    pub const UTF8: &str = "M-utf8";
    /// A key twice in one object.
    pub const DUP_KEY: &str = "M-dup-key";
    /// Nested too deep.
    pub const DEPTH: &str = "M-depth";
    /// The schema is not obeyed.
    pub const SCHEMA: &str = "M-schema";
    /// A format of manifests that this host does not read.
    pub const SCHEMA_VERSION: &str = "M-schema-version";
    /// A protocol that this host does not speak.
    pub const API_VERSION: &str = "M-api-version";
    /// The folder has another name than the extension.
    pub const DIR_ID: &str = "M-dir-id";
    /// Another extension has the id already.
    pub const DUP_ID: &str = "M-dup-id";
    /// Others could change the files.
    pub const PERM_UNSAFE: &str = "M-perm-unsafe";
    /// The command or its folder is outside the extension.
    pub const CMD_ESCAPE: &str = "M-cmd-escape";
    /// There is no such program.
    pub const CMD_MISSING: &str = "M-cmd-missing";
    /// A variable that an extension may not set.
    pub const ENV_FORBIDDEN: &str = "M-env-forbidden";
    /// Characters that change how text looks around them.
    pub const TEXT: &str = "M-text";
    /// Two panels with one id.
    pub const PANEL_DUP: &str = "M-panel-dup";
    /// Panels without the permission for them.
    pub const PANEL_PERM: &str = "M-panel-perm";
    /// Events without the permission for them.
    pub const EVENT_PERM: &str = "M-event-perm";
    /// An event that does not exist.
    pub const EVENT_UNKNOWN: &str = "M-event-unknown";
    /// An event whose content needs a further permission.
    pub const EVENT_DATA_PERM: &str = "M-event-data-perm";
    /// Not a requirement on a version.
    pub const COMPAT_RANGE: &str = "M-compat-range";
    /// Made for other hosts.
    pub const COMPAT_HOST: &str = "M-compat-host";
    /// Made for other platforms.
    pub const COMPAT_PLATFORM: &str = "M-compat-platform";
    /// A signature is needed and not there.
    pub const SIGN_MISSING: &str = "M-sign-missing";
    /// The signature is wrong.
    pub const SIGN_INVALID: &str = "M-sign-invalid";
    /// The signature was made with a key that nobody here knows.
    pub const SIGN_UNVERIFIED: &str = "M-sign-unverified";
    /// Made for another kind of machine.
    pub const PROFILE: &str = "M-profile";
    /// The platform has nothing to run it with.
    pub const RUNTIME: &str = "M-runtime";
    /// It asks for more than it can get.
    pub const LIMITS_CLAMPED: &str = "M-limits-clamped";
    /// It claims more trust than anybody can prove.
    pub const TRUST_CLAMPED: &str = "M-trust-clamped";
    /// It is not trusted, and the policy does not run such extensions.
    pub const UNTRUSTED: &str = "M-untrusted";
    /// Its files are not those that were approved.
    pub const TAMPERED: &str = "M-tampered";
    /// Its folder has links, special files, or too much in it, so that it cannot be verified.
    pub const TREE: &str = "M-tree";
}

impl Finding {
    /// The manifest cannot be used.
    pub(crate) fn error(code: &'static str, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, path.into(), message.into())
    }

    /// The extension may not run here.
    pub(crate) fn block(code: &'static str, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Block, code, path.into(), message.into())
    }

    /// Worth knowing.
    pub(crate) fn warning(code: &'static str, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, path.into(), message.into())
    }

    fn new(severity: Severity, code: &'static str, path: String, message: String) -> Self {
        Self { path, severity, code, keyword: None, message, suggestion: None }
    }

    /// The same, with what to do about it.
    #[must_use]
    pub(crate) fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// The same, with the word of the schema.
    #[must_use]
    pub(crate) fn keyword(mut self, keyword: &'static str) -> Self {
        self.keyword = Some(keyword);
        self
    }
}

/// Whether any of them makes the manifest useless.
pub(crate) fn any_error(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

/// Text of somebody else for a message: escaped and cut.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 64;
    let mut shown: String = text.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}
