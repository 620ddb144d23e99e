//! Reading a policy: strict, because a slip that is ignored is a permission that somebody did not mean to give.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::choice::{Background, BackgroundChoice};
use super::file::{AndroidFile, PolicyFile, ProgramEntry, TrustedEntry};
use super::{AndroidPolicy, ApprovedProgram, HostPolicy, Proof, Trusted};
use crate::manifest::nearest;

/// The longest policy.
const MAX_BYTES: u64 = 1 << 20;

/// Why there is no policy.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("the policy {} cannot be read: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is too large to be one.
    #[error("the policy {} has more than {MAX_BYTES} bytes", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
    },
    /// It is not TOML, has a key that nobody knows, or a value that cannot be.
    #[error("line {line}: {message}")]
    Syntax {
        /// Where, from 1.
        line: usize,
        /// What is wrong, with the key and what was probably meant.
        message: String,
    },
    /// Each value is fine, but not what they say together.
    #[error("`{key}`: {message}")]
    Meaning {
        /// Which key.
        key: String,
        /// What is wrong.
        message: String,
    },
}

pub(super) fn load(path: &Path) -> Result<HostPolicy, PolicyError> {
    let failed = |source| PolicyError::Io { path: path.to_owned(), source };
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(PolicyError::TooLarge { path: path.to_owned() });
    }
    let path = std::path::absolute(path).map_err(failed)?;
    parse(&text, path.parent().unwrap_or(Path::new("/")))
}

pub(super) fn parse(text: &str, folder: &Path) -> Result<HostPolicy, PolicyError> {
    let file: PolicyFile = toml::from_str(text).map_err(|error| syntax(text, &error))?;
    let here = |path: PathBuf| folder.join(path);
    let state_dir = file.state_dir.map_or_else(|| folder.join("state"), here);
    let dirs = file.extensions_dirs.unwrap_or_else(|| vec![PathBuf::from("extensions")]);
    let usual = HostPolicy::new(state_dir, dirs.into_iter().map(here).collect());
    let policy = HostPolicy {
        builtin_dir: file.builtin_dir.map(here),
        keys_dir: file.keys_dir.map_or_else(|| folder.join("keys"), here),
        follow_symlinks: file.follow_symlinks.unwrap_or(usual.follow_symlinks),
        compatible_with: file.compatible_with.unwrap_or(usual.compatible_with),
        untrusted_local: file.untrusted_local.unwrap_or(usual.untrusted_local),
        signatures: file.signatures.unwrap_or(usual.signatures),
        sandbox: file.sandbox.unwrap_or(usual.sandbox),
        transport: file.transport.unwrap_or(usual.transport),
        activation: file.activation.unwrap_or(usual.activation),
        idle_stop: file.idle_stop_ms.filter(|ms| *ms > 0).map(Duration::from_millis),
        runtime_path: file.runtime_path.unwrap_or(usual.runtime_path),
        untrusted_runtimes: file.untrusted_runtimes.unwrap_or(usual.untrusted_runtimes),
        approved_programs: programs("approved_programs", file.approved_programs.unwrap_or_default())?,
        first_party_keys: file.first_party_keys.unwrap_or_default(),
        trusted: trusted(file.trusted.unwrap_or_default())?,
        grants: file.grants.unwrap_or_default(),
        limits: file.limits.unwrap_or_default(),
        android: match file.android {
            Some(android) => read_android(android, usual.android)?,
            None => usual.android,
        },
        trace: file.trace.unwrap_or(usual.trace),
        ..usual
    };
    check(&policy)?;
    Ok(policy)
}

fn programs(key: &str, list: Vec<ProgramEntry>) -> Result<Vec<ApprovedProgram>, PolicyError> {
    let read = |entry: ProgramEntry| match entry.path.is_absolute() {
        true => Ok(ApprovedProgram { path: entry.path, sha256: entry.sha256 }),
        false => Err(meaning(key, format!("{} is not an absolute path", entry.path.display()))),
    };
    list.into_iter().map(read).collect()
}

fn trusted(list: Vec<TrustedEntry>) -> Result<Vec<Trusted>, PolicyError> {
    let read = |entry: TrustedEntry| {
        let proof = match (entry.tree_sha256, entry.key_id) {
            (Some(tree), None) => Proof::Tree(tree),
            (None, Some(key)) => Proof::Key(key),
            (None, None) | (Some(_), Some(_)) => {
                let message = format!("`{}` needs either `tree_sha256` or `key_id`", entry.id);
                return Err(meaning("trusted", message));
            }
        };
        Ok(Trusted { id: entry.id, proof })
    };
    list.into_iter().map(read).collect()
}

fn read_android(file: AndroidFile, usual: AndroidPolicy) -> Result<AndroidPolicy, PolicyError> {
    let background = match (file.background, file.background_allowlist) {
        (None | Some(BackgroundChoice::Deny), None) => Background::Deny,
        (Some(BackgroundChoice::Allow), None) => Background::Allow,
        (Some(BackgroundChoice::Allowlist), Some(ids)) => Background::Only(ids),
        (Some(BackgroundChoice::Allowlist), None) => {
            return Err(meaning("android.background", "`allowlist` needs `background_allowlist`"));
        }
        (None | Some(BackgroundChoice::Deny | BackgroundChoice::Allow), Some(_)) => {
            return Err(meaning("android.background_allowlist", "needs `background = \"allowlist\"`"));
        }
    };
    let approved = programs("android.approved_runtimes", file.approved_runtimes.unwrap_or_default())?;
    if let Some(open) = approved.iter().find(|one| one.sha256.is_none()) {
        let message = format!("{} needs its `sha256`", open.path.display());
        return Err(meaning("android.approved_runtimes", message));
    }
    Ok(AndroidPolicy {
        background,
        packaged_runtime: file.packaged_runtime.unwrap_or(usual.packaged_runtime),
        packaged_modules: file.packaged_modules.unwrap_or(usual.packaged_modules),
        approved_runtimes: approved,
        allow_third_party: file.allow_third_party.unwrap_or(usual.allow_third_party),
    })
}

fn check(policy: &HostPolicy) -> Result<(), PolicyError> {
    if let Some(wrong) = policy.runtime_path.split(':').find(|folder| !folder.starts_with('/')) {
        return Err(meaning("runtime_path", format!("`{wrong}` is not an absolute path")));
    }
    let names = policy.untrusted_runtimes.iter().chain([&policy.android.packaged_runtime]);
    if let Some(wrong) = names.into_iter().find(|name| name.is_empty() || name.contains('/')) {
        let message = format!("`{wrong}` is not the name of a program in `runtime_path`");
        return Err(meaning("untrusted_runtimes", message));
    }
    if crate::manifest::HostVersion::parse(&policy.compatible_with).is_err() {
        return Err(meaning("compatible_with", format!("`{}` is not a version", policy.compatible_with)));
    }
    for (trust, overrides) in &policy.limits {
        for (key, value) in overrides {
            let key_path = format!("limits.{trust}.{key}");
            key.check(*trust, *value).map_err(|message| meaning(&key_path, message))?;
        }
    }
    Ok(())
}

fn meaning(key: &str, message: impl Into<String>) -> PolicyError {
    PolicyError::Meaning { key: key.to_owned(), message: message.into() }
}

fn syntax(text: &str, error: &toml::de::Error) -> PolicyError {
    let at = error.span().map_or(0, |span| span.start).min(text.len());
    let line = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    let mut message = error.message().to_owned();
    if let Some(near) = meant(&message) {
        message.push_str(&format!("; did you mean `{near}`?"));
    }
    PolicyError::Syntax { line, message }
}

/// The nearest of the words that serde expected, if its message is about a word it does not know.
fn meant(message: &str) -> Option<&str> {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown ");
    let word = quoted.next().filter(|_| unknown)?;
    nearest(word, quoted)
}
