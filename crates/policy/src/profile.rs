//! The policy profile that travels with a work order: lists of globs for tools, files and hosts.
//!
//! A deny list beats a list of what needs approval, and that beats a list of what is allowed. An empty list of
//! what is allowed restricts nothing; one that is not empty allows only what it names.

use crate::decision::{Action, Decision, Reason, Rule};
use crate::glob::{Glob, GlobError, MAX_LIST_BYTES, Reading};
use crate::host::{Host, HostPattern, UnknownPort};
use crate::name::Subject;
use crate::path::{InsidePath, PathError};
use serde::{Deserialize, Serialize};

/// The most entries that one list of a profile may have.
pub const MAX_PROFILE_ENTRIES: usize = 1024;

/// The longest name of a tool, in bytes.
pub const MAX_TOOL_BYTES: usize = 256;

/// The lists as they travel. All seven must be there; none may be null. Unknown members are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyProfile {
    /// Only these tools may be called; empty restricts nothing.
    pub allowed_tools: Vec<String>,
    /// These tools may not be called.
    pub disallowed_tools: Vec<String>,
    /// These files may not be read.
    pub deny_read: Vec<String>,
    /// These files may not be written.
    pub deny_write: Vec<String>,
    /// Only these hosts may be reached; empty restricts nothing.
    pub allow_network: Vec<String>,
    /// These hosts may not be reached.
    pub deny_network: Vec<String>,
    /// These tools may be called once a person agrees.
    pub require_approval_for: Vec<String>,
}

/// Why a profile could not be compiled. A profile that is wrong in one entry is wrong as a whole: leaving out a
/// denial would allow what its author denied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// More than [`MAX_PROFILE_ENTRIES`] in one list.
    #[error("the policy's `{list}` has {count} entries; the limit is {MAX_PROFILE_ENTRIES}")]
    TooMany {
        /// Which list.
        list: &'static str,
        /// How many it has.
        count: usize,
    },
    /// More than [`MAX_LIST_BYTES`] in one list.
    #[error("the policy's `{list}` has {bytes} bytes of patterns; the limit is {MAX_LIST_BYTES}")]
    TooLong {
        /// Which list.
        list: &'static str,
        /// How many bytes its patterns have.
        bytes: usize,
    },
    /// An entry is not a pattern.
    #[error("entry {index} of the policy's `{list}`, `{pattern}`, is not a pattern: {error}")]
    Pattern {
        /// Which list.
        list: &'static str,
        /// Which entry, from 0.
        index: usize,
        /// The entry.
        pattern: String,
        /// What is wrong with it.
        error: GlobError,
    },
}

/// A profile that is ready to be asked.
#[derive(Clone, Debug)]
pub struct Policy {
    allowed_tools: Vec<Glob>,
    disallowed_tools: Vec<Glob>,
    deny_read: Vec<Glob>,
    deny_write: Vec<Glob>,
    allow_network: Vec<HostPattern>,
    deny_network: Vec<HostPattern>,
    require_approval_for: Vec<Glob>,
}

impl PolicyProfile {
    /// A profile that restricts nothing.
    #[must_use]
    pub fn unrestricted() -> PolicyProfile {
        PolicyProfile {
            allowed_tools: Vec::new(),
            disallowed_tools: Vec::new(),
            deny_read: Vec::new(),
            deny_write: Vec::new(),
            allow_network: Vec::new(),
            deny_network: Vec::new(),
            require_approval_for: Vec::new(),
        }
    }

    /// Compiles every list, or says which entry is wrong.
    pub fn compile(&self) -> Result<Policy, ProfileError> {
        let names = |list, entries| compile(list, entries, |text| Glob::new(text, Reading::Name));
        let paths = |list, entries| compile(list, entries, denied_path);
        let hosts = |list, entries| compile(list, entries, HostPattern::new);
        Ok(Policy {
            allowed_tools: names("allowed_tools", &self.allowed_tools)?,
            disallowed_tools: names("disallowed_tools", &self.disallowed_tools)?,
            deny_read: paths("deny_read", &self.deny_read)?,
            deny_write: paths("deny_write", &self.deny_write)?,
            allow_network: hosts("allow_network", &self.allow_network)?,
            deny_network: hosts("deny_network", &self.deny_network)?,
            require_approval_for: names("require_approval_for", &self.require_approval_for)?,
        })
    }
}

impl Policy {
    /// May `subject` call the tool `name`?
    #[must_use]
    pub fn check_tool(&self, subject: &Subject, name: &str) -> Decision {
        let decide = |reason, rule| Decision::new(reason, rule, subject, Action::Call, name);
        if name.is_empty() || name.len() > MAX_TOOL_BYTES || name.chars().any(char::is_control) {
            return decide(Reason::ToolInvalid, None);
        }
        if let Some(rule) = matching("disallowed_tools", &self.disallowed_tools, name) {
            return decide(Reason::DenyListed, Some(rule));
        }
        let allowed = matching("allowed_tools", &self.allowed_tools, name);
        if allowed.is_none() && !self.allowed_tools.is_empty() {
            return decide(Reason::NotAllowListed, Some(Rule { list: "allowed_tools", pattern: None }));
        }
        if let Some(rule) = matching("require_approval_for", &self.require_approval_for, name) {
            return decide(Reason::NeedsApproval, Some(rule));
        }
        match allowed {
            Some(rule) => decide(Reason::AllowListed, Some(rule)),
            None => decide(Reason::Unrestricted, None),
        }
    }

    /// May `subject` read the file at `path`, relative to the root of its workspace?
    #[must_use]
    pub fn check_read(&self, subject: &Subject, path: &str) -> Decision {
        check_path("deny_read", &self.deny_read, subject, Action::Read, path)
    }

    /// May `subject` write the file at `path`, relative to the root of its workspace?
    #[must_use]
    pub fn check_write(&self, subject: &Subject, path: &str) -> Decision {
        check_path("deny_write", &self.deny_write, subject, Action::Write, path)
    }

    /// May `subject` talk to `host`, given with or without a port?
    #[must_use]
    pub fn check_network(&self, subject: &Subject, host: &str) -> Decision {
        let decide = |reason, rule| Decision::new(reason, rule, subject, Action::Connect, host);
        let Ok(parsed) = Host::parse(host) else { return decide(Reason::HostInvalid, None) };
        let find = |list: &'_ [HostPattern], unknown| {
            let found = list.iter().find(|pattern| pattern.matches(&parsed, unknown));
            found.map(|pattern| pattern.pattern().to_owned())
        };
        if let Some(pattern) = find(&self.deny_network, UnknownPort::Matches) {
            return decide(Reason::DenyListed, Some(Rule { list: "deny_network", pattern: Some(pattern) }));
        }
        if self.allow_network.is_empty() {
            return decide(Reason::Unrestricted, None);
        }
        match find(&self.allow_network, UnknownPort::Differs) {
            Some(pattern) => {
                decide(Reason::AllowListed, Some(Rule { list: "allow_network", pattern: Some(pattern) }))
            }
            None => decide(Reason::NotAllowListed, Some(Rule { list: "allow_network", pattern: None })),
        }
    }
}

fn check_path(list: &'static str, deny: &[Glob], subject: &Subject, action: Action, path: &str) -> Decision {
    let decide = |reason, rule| Decision::new(reason, rule, subject, action, path);
    let inside = match InsidePath::parse(path) {
        Ok(inside) => inside,
        Err(error) => return decide(refusal(&error), None),
    };
    match matching(list, deny, inside.as_str()) {
        Some(rule) => decide(Reason::DenyListed, Some(rule)),
        None => decide(Reason::Unrestricted, None),
    }
}

/// A pattern for files that are denied, read so that it covers whatever its author can have meant: hosts in the
/// wild disagree whether `*` crosses a slash, `./x` and `/x` are `x` in the root, and `x/` is all of the folder.
fn denied_path(written: &str) -> Result<Glob, GlobError> {
    let mut pattern = written;
    while let Some(rest) = pattern.strip_prefix("./").or_else(|| pattern.strip_prefix('/')) {
        pattern = rest;
    }
    match pattern.strip_suffix('/') {
        Some(folder) => Glob::new(&format!("{folder}/**"), Reading::LoosePath),
        None => Glob::new(pattern, Reading::LoosePath),
    }
    .map(|glob| glob.written_as(written))
}

fn refusal(error: &PathError) -> Reason {
    if error.is_escape() { Reason::PathEscapes } else { Reason::PathInvalid }
}

fn matching(list: &'static str, globs: &[Glob], text: &str) -> Option<Rule> {
    let found = globs.iter().find(|glob| glob.matches(text))?;
    Some(Rule { list, pattern: Some(found.pattern().to_owned()) })
}

fn compile<T>(
    list: &'static str,
    entries: &[String],
    one: impl Fn(&str) -> Result<T, GlobError>,
) -> Result<Vec<T>, ProfileError> {
    if entries.len() > MAX_PROFILE_ENTRIES {
        return Err(ProfileError::TooMany { list, count: entries.len() });
    }
    let bytes = entries.iter().map(String::len).sum();
    if bytes > MAX_LIST_BYTES {
        return Err(ProfileError::TooLong { list, bytes });
    }
    let entry = |(index, pattern): (usize, &String)| {
        one(pattern).map_err(|error| ProfileError::Pattern { list, index, pattern: pattern.clone(), error })
    };
    entries.iter().enumerate().map(entry).collect()
}
