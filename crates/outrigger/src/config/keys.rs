//! Which keys a configuration may have. One that nobody knows is a slip, and a slip that is ignored is a surprise later.

use anyhow::{anyhow, bail};
use toml::de::{DeTable, DeValue};

use super::{backends, nearest};

/// Whose file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dialect {
    /// `outrigger.toml`.
    Outrigger,
    /// `backplane.toml`; some of its keys mean nothing to us.
    Backplane,
}

/// What the file has without a table.
pub(crate) const TOP: &[&str] = &["default_backend", "receipts_dir", "policy"];

/// The tables that are there once, and what is in them.
pub(crate) const SECTIONS: &[(&str, &[&str])] = &[
    ("chat", &["provider", "model", "base_url", "api_key_env"]),
    (
        "server",
        &["address", "port", "hosts", "behind_tls_proxy", "body_limit", "connections", "requests_per_second"],
    ),
    ("store", &["state_dir", "keep_runs", "keep_at_most"]),
    ("runs", &["queued", "retries", "approve_within", "approve_default"]),
    ("extensions", &["enabled", "home"]),
];

/// What a `[tools.NAME]` has.
pub(crate) const TOOL: &[&str] =
    &["command", "mcp", "tool", "value", "cwd", "approval", "repeat", "within", "about"];

/// What a `[backends.NAME]` has, by its type.
pub(crate) const BACKENDS: &[(&str, &[&str])] = &[
    ("mock", &["type", "script", "at_once"]),
    ("sidecar", &["type", "command", "args", "env", "cwd", "timeout_secs", "sandbox", "read", "at_once"]),
    ("process", &["type", "command", "args", "env", "cwd", "timeout_secs", "sandbox", "read", "at_once"]),
    ("agent", &["type", "provider", "command", "args", "env", "timeout_secs", "at_once"]),
    ("steerable", &["type", "provider", "model", "base_url", "api_key_env", "at_once"]),
    ("mustard", &["type", "at_once"]),
];

/// What the file of another control plane has, and its backends.
const BACKPLANE: &[&str] = &[
    "default_backend",
    "workspace_dir",
    "log_level",
    "receipts_dir",
    "bind_address",
    "port",
    "policy_profiles",
    "backends",
];
const BACKPLANE_BACKEND: &[&str] = &["type", "command", "args", "timeout_secs"];

/// A value that cannot be, and where it is.
#[derive(Debug)]
pub(super) struct Wrong {
    path: Vec<String>,
    why: String,
}

impl Wrong {
    pub(super) fn at(path: &[&str]) -> Self {
        Self { path: path.iter().map(|&key| key.to_owned()).collect(), why: String::new() }
    }

    pub(super) fn why(self, why: String) -> Self {
        Self { why, ..self }
    }

    /// The sentence, with its line.
    pub(super) fn say(&self, text: &str) -> anyhow::Error {
        let path = self.path.join(".");
        match find(text, &self.path) {
            Some(line) => anyhow!("line {line}: `{path}`: {}", self.why),
            None => anyhow!("`{path}`: {}", self.why),
        }
    }
}

/// Refuses what is not TOML and the first key that is not known, with its line.
pub(super) fn check(text: &str, dialect: Dialect) -> anyhow::Result<()> {
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line(text, span.start));
        anyhow!("line {line}: {}", error.message())
    })?;
    let table = table.get_ref();
    if dialect == Dialect::Backplane {
        known(text, table, "", BACKPLANE)?;
        return each(table, "backends", |path, members| known(text, members, path, BACKPLANE_BACKEND));
    }
    let sections = SECTIONS.iter().map(|(section, _)| *section);
    let top: Vec<&str> = TOP.iter().copied().chain(["backends", "tools"]).chain(sections).collect();
    known(text, table, "", &top)?;
    for (section, keys) in SECTIONS {
        if let Some(DeValue::Table(members)) = table.get(*section).map(|value| value.get_ref()) {
            known(text, members, &format!("{section}."), keys)?;
        }
    }
    each(table, "tools", |path, members| known(text, members, path, TOOL))?;
    each(table, "backends", |path, members| {
        let name = path.trim_start_matches("backends.").trim_end_matches('.');
        let written = members.get("type").and_then(|value| value.get_ref().as_str());
        let r#type = written.or(backends::implied(name));
        let all: Vec<&str> = backend_keys();
        known(text, members, path, &all)?;
        let Some((r#type, keys)) = BACKENDS.iter().find(|(known, _)| Some(*known) == r#type) else {
            // What is wrong with the type is said when it is read.
            return Ok(());
        };
        match members.keys().find(|key| !keys.contains(&key.get_ref().as_ref())) {
            None => Ok(()),
            Some(key) => bail!(
                "line {}: a backend of type \"{}\" has no `{}`; it may have: {}",
                line(text, key.span().start),
                r#type,
                key.get_ref(),
                keys.join(", ")
            ),
        }
    })
}

/// Every key that some backend has, once.
pub(crate) fn backend_keys() -> Vec<&'static str> {
    let mut all: Vec<&str> = Vec::new();
    for key in BACKENDS.iter().flat_map(|(_, keys)| *keys) {
        if !all.contains(key) {
            all.push(key);
        }
    }
    all
}

/// Calls with the path and the members of every table in a table of tables.
fn each(
    table: &DeTable<'_>,
    name: &str,
    mut check: impl FnMut(&str, &DeTable<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let Some(DeValue::Table(tables)) = table.get(name).map(|value| value.get_ref()) else { return Ok(()) };
    for (key, value) in tables {
        if let DeValue::Table(members) = value.get_ref() {
            check(&format!("{name}.{}.", key.get_ref()), members)?;
        }
    }
    Ok(())
}

fn known(text: &str, table: &DeTable<'_>, path: &str, keys: &[&str]) -> anyhow::Result<()> {
    let stranger = table.keys().find(|key| !keys.contains(&key.get_ref().as_ref()));
    let Some(stranger) = stranger else { return Ok(()) };
    let word = stranger.get_ref().as_ref();
    let hint = match nearest(word, keys.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there may be: {}", keys.join(", ")),
    };
    bail!("line {}: unknown key `{path}{word}`; {hint}", line(text, stranger.span().start))
}

/// The line of a key, or of the innermost table around it that is written.
pub(super) fn find(text: &str, path: &[String]) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let mut table = table.get_ref();
    let mut found = None;
    for key in path {
        let Some((key, value)) = table.iter().find(|(known, _)| known.get_ref() == key) else { break };
        found = Some(line(text, key.span().start));
        let DeValue::Table(members) = value.get_ref() else { break };
        table = members;
    }
    found
}

/// The line of a byte, from 1.
pub(super) fn line(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}
