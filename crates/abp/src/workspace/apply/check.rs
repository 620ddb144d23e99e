//! Whether the source is what a change was made for, file by file.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};

use rustix::fs::Stat;

use super::super::beneath::{self, Kind, Root};
use super::super::path::TreePath;
use super::blobs::Blobs;
use super::{ApplyError, Conflict, Content, ContentKind, Difference, Step, removed};

/// What was at the path of each step when it was looked at.
pub(super) type Checked = Vec<Option<Stat>>;

/// Looks at every path of the change. All that is different is named at once.
pub(super) async fn check(root: &Root, steps: &[Step], blobs: &mut Blobs) -> Result<Checked, ApplyError> {
    let removed = removed(steps);
    let (mut checked, mut files) = (Vec::with_capacity(steps.len()), Vec::new());
    for step in steps {
        let failed = |error| ApplyError::Io { path: step.path.clone(), error };
        let stat = root.stat(&step.path).map_err(failed)?;
        let difference = match (&step.old, &stat) {
            (Some(_), None) => Some(Difference::Missing),
            (Some(old), Some(stat)) => different(root, &step.path, old, stat, blobs).await?,
            (None, Some(stat)) => is_in_the_way(root, &step.path, stat, &removed).map_err(failed)?,
            (None, None) => is_blocked(root, &step.path, &removed).map_err(failed)?,
        };
        files.extend(difference.map(|difference| Conflict { path: step.path.clone(), difference }));
        checked.push(stat);
    }
    match files.is_empty() {
        true => Ok(checked),
        false => Err(ApplyError::Conflict { files }),
    }
}

/// How a file is different from its old content.
async fn different(
    root: &Root,
    path: &TreePath,
    old: &Content,
    stat: &Stat,
    blobs: &mut Blobs,
) -> Result<Option<Difference>, ApplyError> {
    let failed = |error| ApplyError::Io { path: path.clone(), error };
    let folder = root.folder_of(path).map_err(failed)?;
    match (beneath::kind(stat), old.kind) {
        (Kind::Symlink, ContentKind::Symlink) => {
            let target = beneath::read_link(&folder, path.name()).map_err(failed)?;
            let same = blobs.short(&old.object).await? == target;
            Ok((!same).then_some(Difference::Changed))
        }
        (Kind::File, ContentKind::Plain | ContentKind::Executable) => {
            let mut file = File::from(beneath::open_file(&folder, path.name()).map_err(failed)?);
            if !same_content(&mut file, old, blobs).await? {
                return Ok(Some(Difference::Changed));
            }
            let same_mode = beneath::is_executable(stat) == (old.kind == ContentKind::Executable);
            Ok((!same_mode).then_some(Difference::Mode))
        }
        (Kind::File | Kind::Symlink | Kind::Folder | Kind::Special, _) => Ok(Some(Difference::OtherKind)),
    }
}

/// Compares piece by piece; a file that cannot be read is not the same.
async fn same_content(file: &mut File, old: &Content, blobs: &mut Blobs) -> Result<bool, ApplyError> {
    let mut same = true;
    let mut buffer = Vec::new();
    blobs
        .read(&old.object, |chunk| {
            if same {
                buffer.resize(chunk.len(), 0);
                same = file.read_exact(&mut buffer).is_ok() && buffer == chunk;
            }
        })
        .await?;
    // Nothing may come behind.
    Ok(same && matches!(file.read(&mut [0]), Ok(0)))
}

/// Something is where a new file is to go. That is fine if it is a folder and all of it goes away.
fn is_in_the_way(
    root: &Root,
    path: &TreePath,
    stat: &Stat,
    removed: &HashSet<&TreePath>,
) -> io::Result<Option<Difference>> {
    if beneath::kind(stat) != Kind::Folder {
        return Ok(Some(Difference::Exists));
    }
    let mut waiting = vec![path.clone()];
    while let Some(path) = waiting.pop() {
        let folder = root.folder(&path)?;
        for name in beneath::names(&folder)? {
            let here = path.child(&name);
            match beneath::kind(&beneath::stat(&folder, here.name())?) {
                Kind::Folder => waiting.push(here),
                Kind::File | Kind::Symlink | Kind::Special if removed.contains(&here) => {}
                Kind::File | Kind::Symlink | Kind::Special => return Ok(Some(Difference::Exists)),
            }
        }
    }
    Ok(None)
}

/// Something that is no folder is above where a new file is to go. That is fine if it goes away.
fn is_blocked(root: &Root, path: &TreePath, removed: &HashSet<&TreePath>) -> io::Result<Option<Difference>> {
    for above in path.folders() {
        match root.stat(&above)?.map(|stat| beneath::kind(&stat)) {
            None | Some(Kind::Folder) => {}
            Some(Kind::File | Kind::Symlink | Kind::Special) if removed.contains(&above) => {}
            Some(Kind::File | Kind::Symlink | Kind::Special) => return Ok(Some(Difference::Blocked)),
        }
    }
    Ok(None)
}
