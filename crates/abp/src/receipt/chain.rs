//! Whether the receipts of a folder are one chain, and all of them are there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use outrigger_policy::Digest;
use serde::Serialize;

use super::folder::Folder;
use super::record::RecordError;
use super::verify::{Check, HashState, VerifyError, verify};

/// The most receipts of one folder that are looked at.
pub const MAX_RECEIPTS: usize = 1_000_000;

/// What came out of looking at a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// How many receipts are links, from the newest back to the first.
    pub links: u64,
    /// The newest receipt, as the folder says.
    pub newest: Option<Digest>,
    /// What is wrong.
    pub breaks: Vec<Break>,
}

/// Something that is wrong with a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Break {
    /// A receipt is not what it says it is.
    Invalid {
        /// Which one.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A receipt names one that is not there.
    Missing {
        /// The one that is not there.
        sha256: Digest,
        /// Who names it; none if the folder's head does.
        named_by: Option<PathBuf>,
    },
    /// A receipt is not reached from the newest one: it was put there, or what came after it was taken away.
    Loose {
        /// Which one.
        path: PathBuf,
    },
}

impl Chain {
    /// Whether all receipts are there and one follows the other.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.breaks.is_empty()
    }
}

/// Looks at every receipt of a folder.
///
/// # Errors
/// When the folder cannot be read.
pub fn verify_chain(folder: &Folder) -> Result<Chain, RecordError> {
    let lock = folder.lock()?;
    let newest = folder.head()?;
    let failed = |source| RecordError::io("read the folder", folder.path(), source);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder.path()).map_err(failed)?.take(MAX_RECEIPTS) {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            paths.push(path);
        }
    }
    // What is added from here on is not looked at; files that are there are never changed.
    drop(lock);
    paths.sort();
    let mut chain = Chain { newest, ..Chain::default() };
    let mut receipts: BTreeMap<Digest, (PathBuf, Option<Digest>)> = BTreeMap::new();
    for path in paths {
        match verify(&path) {
            Ok(check) => match hash_of(&check) {
                Ok(sha256) => _ = receipts.insert(sha256, (path, check.previous)),
                Err(why) => chain.breaks.push(Break::Invalid { path, why }),
            },
            Err(VerifyError { source, .. }) => {
                chain.breaks.push(Break::Invalid { path, why: source.to_string() });
            }
        }
    }
    let (mut next, mut named_by) = (newest, None);
    while let Some(sha256) = next {
        // Taken out of the map, so that no circle can keep this going.
        let Some((path, previous)) = receipts.remove(&sha256) else {
            chain.breaks.push(Break::Missing { sha256, named_by });
            break;
        };
        chain.links += 1;
        next = previous;
        named_by = Some(path);
    }
    chain.breaks.extend(receipts.into_values().map(|(path, _)| Break::Loose { path }));
    Ok(chain)
}

fn hash_of(check: &Check) -> Result<Digest, String> {
    match &check.hash {
        HashState::Ok { sha256 } => Ok(*sha256),
        HashState::Mismatch { .. } => Err("its hash is that of something else".to_owned()),
        HashState::Missing { .. } => Err("it has no hash".to_owned()),
        HashState::Unknown => {
            let first = check.problems.first();
            Err(first.map_or_else(
                || "it has no hash".to_owned(),
                |first| format!("{}: {}", first.path, first.what),
            ))
        }
    }
}
