//! Finding extensions: one level deep, in the order of the policy, by the bytes of their names. Nothing stops the search.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::examine::examine;
use super::file::FILE_NAME;
use super::finding::{Finding, code};
use super::found::{Found, Home, HostFacts, Standing};
use crate::config::HostPolicy;

/// So many entries of one folder are looked at.
const MAX_ENTRIES: usize = 4096;

/// Looks for extensions in the folder that comes with the host and in those of the operator. Never fails as a whole:
/// what cannot be used is found as well, with the reason.
#[must_use]
pub fn discover(policy: &HostPolicy, facts: &HostFacts) -> Vec<Found> {
    let builtin = policy.builtin_dir.iter().map(|dir| (dir, Home::Builtin));
    let configured = policy.extensions_dirs.iter().map(|dir| (dir, Home::Configured));
    let mut all = Vec::new();
    for (root, home) in builtin.chain(configured) {
        let (dirs, trouble) = entries(root);
        all.extend(dirs.into_iter().map(|dir| examine(&dir, home, policy, facts)));
        all.extend(trouble.map(|finding| unreadable(root, home, finding)));
    }
    one_for_each_id(&mut all);
    all
}

/// The folders of `root` that may be extensions, sorted, and what went wrong.
fn entries(root: &Path) -> (Vec<PathBuf>, Option<Finding>) {
    let trouble = |why: String| Some(Finding::error(code::ROOT, "", format!("{} {why}", root.display())));
    let listing = match fs::read_dir(root) {
        Ok(listing) => listing,
        // Not made yet: nothing is in it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (Vec::new(), None),
        Err(error) => return (Vec::new(), trouble(format!("cannot be read: {error}"))),
    };
    let mut dirs = Vec::new();
    let mut finding = None;
    for (index, entry) in listing.enumerate() {
        if index == MAX_ENTRIES {
            finding = trouble(format!("has more than {MAX_ENTRIES} entries; the others are not looked at"));
            break;
        }
        match entry {
            Ok(entry) if may_be_extension(&entry) => dirs.push(entry.path()),
            Ok(_) => {}
            Err(error) => {
                finding = trouble(format!("cannot be read to its end: {error}"));
                break;
            }
        }
    }
    dirs.sort_by(|one, other| one.as_os_str().as_encoded_bytes().cmp(other.as_os_str().as_encoded_bytes()));
    (dirs, finding)
}

/// A folder with a manifest, whatever that is; or a link, so that somebody is told why it is not followed.
fn may_be_extension(entry: &fs::DirEntry) -> bool {
    let kind = entry.file_type();
    match kind {
        Ok(kind) if kind.is_symlink() => true,
        Ok(kind) if kind.is_dir() => {
            let manifest = fs::symlink_metadata(entry.path().join(FILE_NAME));
            !manifest.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        }
        Ok(_) => false,
        Err(_) => true,
    }
}

fn unreadable(root: &Path, home: Home, finding: Finding) -> Found {
    Found {
        id: None,
        dir: root.to_owned(),
        standing: Standing::Invalid,
        manifest: None,
        findings: vec![finding],
        admission: None,
        digest: None,
        manifest_digest: None,
        resolved: None,
        home,
    }
}

/// The first usable one with an id has it. One that is invalid takes no id from one that is not.
fn one_for_each_id(all: &mut [Found]) {
    let mut taken = HashSet::new();
    let (invalid, usable): (Vec<_>, Vec<_>) =
        (0..all.len()).partition(|index| all[*index].standing == Standing::Invalid);
    for index in usable {
        let found = &mut all[index];
        if let Some(id) = found.id.clone()
            && !taken.insert(id.clone())
        {
            let message = format!("another extension is `{id}` already; the first one found has the id");
            found.findings.push(Finding::error(code::DUP_ID, "/id", message).suggest("remove one of them"));
            found.findings.sort();
            found.standing = Standing::Invalid;
            found.admission = None;
            found.resolved = None;
            found.id = None;
        }
    }
    for index in invalid {
        let found = &mut all[index];
        if found.id.as_ref().is_some_and(|id| !taken.insert(id.clone())) {
            found.id = None;
        }
    }
}
