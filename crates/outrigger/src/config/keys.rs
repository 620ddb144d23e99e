//! Which keys a configuration may have. One that nobody knows is a slip, and a slip that is ignored is a surprise later.

use anyhow::{anyhow, bail};
use toml::de::{DeTable, DeValue};

use super::nearest;

/// Whose file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dialect {
    /// `outrigger.toml`.
    Outrigger,
    /// `backplane.toml`; some of its keys mean nothing to us.
    Backplane,
}

impl Dialect {
    fn top(self) -> &'static [&'static str] {
        match self {
            Dialect::Outrigger => &["default_backend", "receipts_dir", "policy", "backends", "chat"],
            Dialect::Backplane => &[
                "default_backend",
                "workspace_dir",
                "log_level",
                "receipts_dir",
                "bind_address",
                "port",
                "policy_profiles",
                "backends",
            ],
        }
    }

    fn backend(self) -> &'static [&'static str] {
        match self {
            Dialect::Outrigger => &[
                "type",
                "command",
                "args",
                "env",
                "cwd",
                "timeout_secs",
                "sandbox",
                "read",
                "script",
                "provider",
            ],
            Dialect::Backplane => &["type", "command", "args", "timeout_secs"],
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
    known(text, table, "", dialect.top())?;
    if let Some(DeValue::Table(backends)) = table.get("backends").map(|value| value.get_ref()) {
        for (name, backend) in backends {
            if let DeValue::Table(members) = backend.get_ref() {
                known(text, members, &format!("backends.{}.", name.get_ref()), dialect.backend())?;
            }
        }
    }
    if let Some(DeValue::Table(members)) = table.get("chat").map(|value| value.get_ref()) {
        known(text, members, "chat.", &["provider", "model", "base_url", "api_key_env"])?;
    }
    Ok(())
}

fn known(text: &str, table: &DeTable<'_>, path: &str, keys: &'static [&'static str]) -> anyhow::Result<()> {
    let stranger = table.keys().find(|key| !keys.contains(&key.get_ref().as_ref()));
    let Some(stranger) = stranger else { return Ok(()) };
    let word = stranger.get_ref().as_ref();
    let hint = match nearest(word, keys.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there may be: {}", keys.join(", ")),
    };
    bail!("line {}: unknown key `{path}{word}`; {hint}", line(text, stranger.span().start))
}

/// The line of a byte, from 1.
fn line(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}
