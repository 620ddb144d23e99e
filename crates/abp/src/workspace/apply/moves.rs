//! The part of applying that changes the source: new contents are written aside, then moved into place, and every move
//! can be undone until the last one is done.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, RenameFlags, Stat};
use rustix::io::Errno;

use super::super::beneath::{self, Root};
use super::super::path::TreePath;
use super::blobs::Blobs;
use super::check::Checked;
use super::{ApplyError, Conflict, ContentKind, Difference, Step, removed};

/// A change whose new contents are in the source already, beside what they replace.
pub(super) struct Prepared {
    root: Root,
    aside: Aside,
    steps: Vec<Step>,
    checked: Checked,
}

/// Our folder in the source.
struct Aside {
    path: TreePath,
    /// For messages.
    shown: PathBuf,
    folder: OwnedFd,
}

/// The file in it that says what is going to happen.
const JOURNAL: &str = "journal";

/// Writes the new contents. Nothing of the source is different afterwards but for our folder.
pub(super) async fn write(
    root: Root,
    path: TreePath,
    shown: PathBuf,
    steps: Vec<Step>,
    checked: Checked,
    blobs: &mut Blobs,
) -> Result<Prepared, ApplyError> {
    let aside = Aside::make(&root, path, shown).map_err(at(&TreePath::root()))?;
    let written = write_all(&aside, &steps, &checked, blobs).await;
    match written {
        Ok(()) => Ok(Prepared { root, aside, steps, checked }),
        Err(error) => {
            // Nothing was moved yet, so there is nothing to lose.
            let _ = aside.remove(&root);
            Err(error)
        }
    }
}

async fn write_all(
    aside: &Aside,
    steps: &[Step],
    checked: &Checked,
    blobs: &mut Blobs,
) -> Result<(), ApplyError> {
    aside.write_journal(steps).map_err(at(&TreePath::root()))?;
    for (number, (step, old)) in steps.iter().zip(checked).enumerate() {
        let Some(new) = &step.new else { continue };
        let failed = at(&step.path);
        let name = new_name(number);
        if new.kind == ContentKind::Symlink {
            let target = blobs.short(&new.object).await?;
            rustix::fs::symlinkat(OsStr::from_bytes(&target), &aside.folder, &name)
                .map_err(|errno| failed(errno.into()))?;
            continue;
        }
        let file = beneath::make_file(&aside.folder, &name, new_mode(new.kind)).map_err(&failed)?;
        let mut file = File::from(file);
        let mut result = Ok(());
        blobs
            .read(&new.object, |chunk| {
                if result.is_ok() {
                    result = file.write_all(chunk);
                }
            })
            .await?;
        result.map_err(&failed)?;
        if let (Some(old), Some(_)) = (old, &step.old) {
            like(&file, new.kind, old).map_err(|errno| failed(errno.into()))?;
        }
    }
    Ok(())
}

impl Prepared {
    pub(super) fn paths(&self) -> Vec<TreePath> {
        self.steps.iter().map(|step| step.path.clone()).collect()
    }

    /// Moves everything, or puts everything back.
    pub(super) fn perform(self) -> Result<(), ApplyError> {
        let mut done = Done { moved: Vec::new(), made: Vec::new() };
        match self.move_all(&mut done) {
            Ok(()) => {
                // Everything is in place. Old contents that cannot be removed are no reason to say otherwise.
                let _ = self.aside.remove(&self.root);
                Ok(())
            }
            Err(Failure { step, error }) => {
                if let Err(error) = self.undo(&done) {
                    return Err(ApplyError::Stuck { folder: self.aside.shown, error });
                }
                let _ = self.aside.remove(&self.root);
                let path = self.steps[step].path.clone();
                match error {
                    MoveError::Conflict(difference) => {
                        Err(ApplyError::Conflict { files: vec![Conflict { path, difference }] })
                    }
                    MoveError::Io(error) => Err(ApplyError::Io { path, error }),
                }
            }
        }
    }

    fn move_all(&self, done: &mut Done) -> Result<(), Failure> {
        let first = self.in_the_way();
        let removal = |number: &usize| self.steps[*number].new.is_none();
        let numbers = || 0..self.steps.len();
        for number in numbers().filter(|number| first.contains(number)) {
            self.take_away(number, done)?;
        }
        for number in numbers().filter(|number| first.contains(number)) {
            self.prune(number);
        }
        for number in numbers().filter(|number| !removal(number)) {
            match self.steps[number].old {
                Some(_) => self.exchange(number, done)?,
                None => self.put(number, done)?,
            }
        }
        for number in numbers().filter(|number| removal(number) && !first.contains(number)) {
            self.take_away(number, done)?;
        }
        for number in numbers().filter(removal) {
            self.prune(number);
        }
        Ok(())
    }

    /// The removals without which something new has no place: a file that becomes a folder, or a folder that becomes a
    /// file.
    fn in_the_way(&self) -> HashSet<usize> {
        let removed = removed(&self.steps);
        let new: HashSet<&TreePath> =
            self.steps.iter().filter(|step| step.old.is_none()).map(|step| &step.path).collect();
        let above_new: HashSet<TreePath> =
            new.iter().flat_map(|path| path.folders()).filter(|path| removed.contains(path)).collect();
        let blocks = |path: &TreePath| {
            removed.contains(path)
                && (above_new.contains(path) || path.folders().any(|above| new.contains(&above)))
        };
        (0..self.steps.len()).filter(|number| blocks(&self.steps[*number].path)).collect()
    }

    /// Old content and new content change places, and the old one is looked at once more.
    fn exchange(&self, number: usize, done: &mut Done) -> Result<(), Failure> {
        let step = &self.steps[number];
        let run = || -> Result<(), MoveError> {
            let folder = self.root.folder_of(&step.path)?;
            let (new, old) = (new_name(number), old_name(number));
            let aside = &self.aside.folder;
            match rustix::fs::renameat_with(aside, &new, &folder, step.path.name(), RenameFlags::EXCHANGE) {
                Ok(()) => rustix::fs::renameat(aside, &new, aside, &old)?,
                // The file system cannot; for a moment there is nothing at the place.
                Err(Errno::INVAL | Errno::NOSYS) => {
                    rustix::fs::renameat(&folder, step.path.name(), aside, &old)?;
                    rustix::fs::renameat(aside, &new, &folder, step.path.name())?;
                }
                Err(Errno::NOENT | Errno::NOTDIR) => return Err(MoveError::Conflict(Difference::Missing)),
                Err(errno) => return Err(errno.into()),
            }
            Ok(())
        };
        run().map_err(|error| Failure { step: number, error })?;
        done.moved.push(Moved { number, how: How::Exchanged });
        self.look_again(number)
    }

    fn put(&self, number: usize, done: &mut Done) -> Result<(), Failure> {
        let step = &self.steps[number];
        let failed = |error| Failure { step: number, error };
        self.make_folders(&step.path, done).map_err(|error| failed(error.into()))?;
        let folder = self.root.folder_of(&step.path).map_err(|error| failed(error.into()))?;
        move_to_nothing(&self.aside.folder, &new_name(number), &folder, step.path.name()).map_err(failed)?;
        done.moved.push(Moved { number, how: How::Put });
        Ok(())
    }

    fn take_away(&self, number: usize, done: &mut Done) -> Result<(), Failure> {
        let step = &self.steps[number];
        let failed = |error| Failure { step: number, error };
        let folder = self.root.folder_of(&step.path).map_err(|error| failed(error.into()))?;
        let old = old_name(number);
        rustix::fs::renameat(&folder, step.path.name(), &self.aside.folder, &old).map_err(
            |errno| match errno {
                Errno::NOENT => failed(MoveError::Conflict(Difference::Missing)),
                errno => failed(errno.into()),
            },
        )?;
        done.moved.push(Moved { number, how: How::Taken });
        self.look_again(number)
    }

    /// Whether what was taken away is what was looked at. Moving changes no content, no size and no time of change.
    fn look_again(&self, number: usize) -> Result<(), Failure> {
        let failed = |error| Failure { step: number, error };
        let now =
            beneath::stat(&self.aside.folder, &old_name(number)).map_err(|error| failed(error.into()))?;
        let facts = |stat: &Stat| {
            (stat.st_dev, stat.st_ino, stat.st_mode, stat.st_size, stat.st_mtime, stat.st_mtime_nsec)
        };
        match self.checked[number].as_ref().is_some_and(|then| facts(then) == facts(&now)) {
            true => Ok(()),
            false => Err(failed(MoveError::Conflict(Difference::Changed))),
        }
    }

    /// Makes the folders above a path, and notes which.
    fn make_folders(&self, path: &TreePath, done: &mut Done) -> io::Result<()> {
        let mut above: Vec<TreePath> = path.folders().collect();
        above.reverse();
        for folder in above {
            let parent = self.root.folder_of(&folder)?;
            match rustix::fs::mkdirat(&parent, folder.name(), Mode::from_raw_mode(0o777)) {
                Ok(()) => done.made.push(folder),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Removes the folders above a path that are empty now, as git does.
    fn prune(&self, number: usize) {
        for folder in self.steps[number].path.folders() {
            if self.remove_folder(&folder).is_err() {
                return;
            }
        }
    }

    fn remove_folder(&self, folder: &TreePath) -> io::Result<()> {
        let parent = self.root.folder_of(folder)?;
        Ok(rustix::fs::unlinkat(&parent, folder.name(), AtFlags::REMOVEDIR)?)
    }

    /// Undoes every move, the last one first.
    fn undo(&self, done: &Done) -> io::Result<()> {
        let aside = &self.aside.folder;
        for Moved { number, how } in done.moved.iter().rev() {
            let path = &self.steps[*number].path;
            // The folders above may have been removed because they were empty.
            self.make_folders(path, &mut Done { moved: Vec::new(), made: Vec::new() })?;
            let folder = self.root.folder_of(path)?;
            match how {
                How::Put => rustix::fs::renameat(&folder, path.name(), aside, new_name(*number))?,
                How::Exchanged => rustix::fs::renameat(aside, old_name(*number), &folder, path.name())?,
                How::Taken => {
                    // A folder that was made for something new may be there; it is empty again by now.
                    let _ = self.remove_folder(path);
                    rustix::fs::renameat(aside, old_name(*number), &folder, path.name())?;
                }
            }
        }
        for folder in done.made.iter().rev() {
            // One that somebody else has put something into stays.
            let _ = self.remove_folder(folder);
        }
        Ok(())
    }
}

/// What has happened so far.
struct Done {
    moved: Vec<Moved>,
    made: Vec<TreePath>,
}

struct Moved {
    number: usize,
    how: How,
}

enum How {
    Exchanged,
    Put,
    Taken,
}

struct Failure {
    step: usize,
    error: MoveError,
}

enum MoveError {
    Conflict(Difference),
    Io(io::Error),
}

impl From<io::Error> for MoveError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for MoveError {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// Moves a file to where nothing is.
fn move_to_nothing(from: &OwnedFd, name: &OsStr, to: &OwnedFd, new_name: &OsStr) -> Result<(), MoveError> {
    match rustix::fs::renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(MoveError::Conflict(Difference::Exists)),
        // The file system cannot say no by itself.
        Err(Errno::INVAL | Errno::NOSYS) => match beneath::stat(to, new_name) {
            Ok(_) => Err(MoveError::Conflict(Difference::Exists)),
            Err(_) => Ok(rustix::fs::renameat(from, name, to, new_name)?),
        },
        Err(errno) => Err(errno.into()),
    }
}

impl Aside {
    fn make(root: &Root, path: TreePath, shown: PathBuf) -> io::Result<Self> {
        let parent = root.folder_of(&path)?;
        rustix::fs::mkdirat(&parent, path.name(), Mode::from_raw_mode(0o700))?;
        let folder = root.folder(&path)?;
        Ok(Self { path, shown, folder })
    }

    fn write_journal(&self, steps: &[Step]) -> io::Result<()> {
        let file = beneath::make_file(&self.folder, OsStr::new(JOURNAL), 0o600)?;
        let mut journal = io::BufWriter::new(File::from(file));
        for (number, step) in steps.iter().enumerate() {
            let what = match (&step.old, &step.new) {
                (Some(_), Some(_)) => "replace",
                (None, _) => "add",
                (Some(_), None) => "remove",
            };
            writeln!(journal, "{number} {what} {}", step.path)?;
        }
        journal.into_inner()?.sync_all()
    }

    /// Removes the folder with the files in it; there are no folders in it.
    fn remove(&self, root: &Root) -> io::Result<()> {
        for name in beneath::names(&self.folder)? {
            rustix::fs::unlinkat(&self.folder, OsStr::from_bytes(&name), AtFlags::empty())?;
        }
        let parent = root.folder_of(&self.path)?;
        Ok(rustix::fs::unlinkat(&parent, self.path.name(), AtFlags::REMOVEDIR)?)
    }
}

fn new_name(number: usize) -> OsString {
    format!("n{number}").into()
}

fn old_name(number: usize) -> OsString {
    format!("o{number}").into()
}

/// The mode of a new file, before the mask of this process.
fn new_mode(kind: ContentKind) -> u32 {
    match kind {
        ContentKind::Executable => 0o777,
        ContentKind::Plain | ContentKind::Symlink => 0o666,
    }
}

/// Gives a new file the owner and the mode of the one that it replaces, but for what the change says.
fn like(file: &File, kind: ContentKind, old: &Stat) -> Result<(), Errno> {
    let permissions = old.st_mode & 0o777;
    let mode = match kind {
        ContentKind::Executable => permissions | ((permissions & 0o444) >> 2),
        ContentKind::Plain => permissions & !0o111,
        ContentKind::Symlink => return Ok(()),
    };
    let (owner, group) = (rustix::fs::Uid::from_raw(old.st_uid), rustix::fs::Gid::from_raw(old.st_gid));
    match rustix::fs::fchown(file, Some(owner), Some(group)) {
        // Not ours to give away: then it is ours.
        Ok(()) | Err(Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode))
}

fn at(path: &TreePath) -> impl Fn(io::Error) -> ApplyError {
    let path = path.clone();
    move |error| ApplyError::Io { path: path.clone(), error }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::super::Content;
    use super::*;
    use crate::workspace::changes::ObjectId;

    /// A source with `replaced`, `d/removed` and `becomes`, and a change that touches them and adds `new/n` and `becomes/b`.
    fn prepared(source: &Path) -> Prepared {
        fs::create_dir(source.join("d")).unwrap();
        for (name, content) in [("replaced", "old"), ("d/removed", "old"), ("becomes", "old")] {
            fs::write(source.join(name), content).unwrap();
        }
        let content =
            || Some(Content { kind: ContentKind::Plain, object: ObjectId::new(&"a".repeat(40)).unwrap() });
        let step = |path: &str, old, new| Step { path: TreePath::new(path).unwrap(), old, new };
        let steps = vec![
            step("becomes", content(), None),
            step("becomes/b", None, content()),
            step("d/removed", content(), None),
            step("new/n", None, content()),
            step("replaced", content(), content()),
        ];
        let root = Root::open(source).unwrap();
        let checked = steps.iter().map(|step| root.stat(&step.path).unwrap()).collect();
        let aside = Aside::make(&root, TreePath::new(".aside").unwrap(), source.join(".aside")).unwrap();
        aside.write_journal(&steps).unwrap();
        for number in [1, 3, 4] {
            fs::write(source.join(".aside").join(new_name(number)), "new").unwrap();
        }
        Prepared { root, aside, steps, checked }
    }

    /// Every file below a folder, with its content.
    fn files(folder: &Path) -> Vec<String> {
        let mut lines = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            match path.is_dir() {
                true => lines.extend(files(&path).into_iter().map(|line| format!("{name}/{line}"))),
                false => lines.push(format!("{name}={}", fs::read_to_string(&path).unwrap())),
            }
        }
        lines.sort();
        lines
    }

    #[test]
    fn everything_is_moved_and_the_old_contents_are_forgotten() {
        let place = tempfile::tempdir().unwrap();
        prepared(place.path()).perform().unwrap();
        assert_eq!(files(place.path()), ["becomes/b=new", "new/n=new", "replaced=new"]);
        assert!(!place.path().join("d").exists() && !place.path().join(".aside").exists());
    }

    #[test]
    fn a_file_that_changes_after_it_was_looked_at_undoes_everything() {
        type Meanwhile = fn(&Path);
        let cases: [(&str, Meanwhile); 4] = [
            ("replaced", |source| fs::write(source.join("replaced"), "by the user").unwrap()),
            ("d/removed", |source| fs::write(source.join("d/removed"), "by the user").unwrap()),
            ("new/n", |source| {
                fs::create_dir(source.join("new")).unwrap();
                fs::write(source.join("new/n"), "by the user").unwrap();
            }),
            ("replaced", |source| fs::remove_file(source.join("replaced")).unwrap()),
        ];
        for (culprit, meanwhile) in cases {
            let place = tempfile::tempdir().unwrap();
            let prepared = prepared(place.path());
            meanwhile(place.path());
            let mut before = files(place.path());
            before.retain(|line| !line.starts_with(".aside"));
            let error = prepared.perform().unwrap_err();
            match error {
                ApplyError::Conflict { files } => assert_eq!(files[0].path.to_string(), culprit),
                other => panic!("{other}"),
            }
            assert_eq!(files(place.path()), before, "{culprit}");
        }
    }

    #[test]
    fn a_kill_in_the_middle_leaves_the_journal_and_every_content() {
        let place = tempfile::tempdir().unwrap();
        let prepared = prepared(place.path());
        let mut done = Done { moved: Vec::new(), made: Vec::new() };
        assert!(prepared.take_away(0, &mut done).is_ok() && prepared.exchange(4, &mut done).is_ok());
        drop(prepared);
        assert_eq!(
            files(place.path()),
            [
                ".aside/journal=0 remove becomes\n1 add becomes/b\n2 remove d/removed\n3 add new/n\n4 replace replaced\n",
                ".aside/n1=new",
                ".aside/n3=new",
                ".aside/o0=old",
                ".aside/o4=old",
                "d/removed=old",
                "replaced=new",
            ]
        );
    }
}
