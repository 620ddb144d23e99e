//! A store that is a directory. The state of an entry is the directory its file is in, and `rename` is the only thing that
//! changes it: atomic, also between two processes, and whole or not at all after a crash.
//!
//! ```text
//! fresh/<ticket>                unused
//! used/<ticket>@<milliseconds>  used, then
//! runs/<run>/lock               who runs it
//! runs/<run>/checkpoint         its last snapshot
//! runs/<run>/<call>.begun       a call that is about to be made
//! runs/<run>/<call>.answer      its answer
//! tmp/                          files that are being written; what a crash leaves here is removed at the next opening
//! ```

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::seal::{Kind, open, seal};
use super::{
    CallId, Capacity, Entry, HoldError, Lease, Listed, PeekError, PutError, Record, RunId, Store, StoreError,
    TakeError, Ticket, UnixMillis, Usage,
};
use crate::host::key::HostKey;

/// What is still being written is younger than this; what is older was left by a crash.
const ABANDONED: Duration = Duration::from_secs(3600);

/// A store that is a directory. Any number of processes may use it at once; those that put something at the very same moment
/// may each take the last free place.
#[derive(Debug)]
pub struct Directory {
    root: PathBuf,
    key: HostKey,
    capacity: Capacity,
}

impl Directory {
    /// Opens a store, and makes it if there is none. Only this user can read it.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made or written.
    pub fn open(root: impl Into<PathBuf>, key: HostKey, capacity: Capacity) -> Result<Self, StoreError> {
        let store = Self { root: root.into(), key, capacity };
        for room in ["fresh", "used", "runs", "tmp"] {
            make_directory(&store.root.join(room))?;
        }
        store.sweep()?;
        Ok(store)
    }

    /// Removes what crashes left: files that are half-written, and runs that never came to their first snapshot.
    fn sweep(&self) -> Result<(), StoreError> {
        for path in entries(&self.root.join("tmp"))? {
            if is_abandoned(&path) {
                remove_file(&path)?;
            }
        }
        for path in entries(&self.root.join("runs"))? {
            let run = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
            if let Some(run) = run
                && is_abandoned(&path)
                && !path.join("checkpoint").exists()
                // One that is held is somebody's, however old it is.
                && let Ok(_lease) = self.hold(&run)
            {
                self.forget(&run)?;
            }
        }
        Ok(())
    }

    fn fresh(&self, ticket: &Ticket) -> PathBuf {
        self.root.join("fresh").join(ticket.as_str())
    }

    fn used(&self, ticket: &Ticket, when: UnixMillis) -> PathBuf {
        self.root.join("used").join(format!("{ticket}@{}", when.0))
    }

    fn run(&self, run: &RunId) -> PathBuf {
        self.root.join("runs").join(run.as_str())
    }

    /// When a ticket was used. Looked for from end to end, because only those who come too late need it.
    fn find_used(&self, ticket: &Ticket) -> Result<Option<(PathBuf, UnixMillis)>, StoreError> {
        for path in entries(&self.root.join("used"))? {
            if let Some((found, Usage::Used(when))) = ticket_of(&path)
                && found == *ticket
            {
                return Ok(Some((path, when)));
            }
        }
        Ok(None)
    }

    /// All tickets with what they take.
    fn tickets(&self) -> Result<Vec<(PathBuf, Ticket, Usage, u64)>, StoreError> {
        let mut found = Vec::new();
        for room in ["fresh", "used"] {
            for path in entries(&self.root.join(room))? {
                // One that was moved or removed since is somewhere else or nowhere; what is not ours is not counted.
                let Ok(metadata) = std::fs::metadata(&path) else { continue };
                if let Some((ticket, usage)) = ticket_of(&path) {
                    found.push((path, ticket, usage, metadata.len()));
                }
            }
        }
        Ok(found)
    }

    fn make_room(&self, needed: u64) -> Result<(), PutError> {
        let tickets = self.tickets()?;
        let mut count = tickets.len();
        let mut bytes: u64 = tickets.iter().map(|(.., bytes)| bytes).sum();
        let fits = |count: usize, bytes: u64| {
            count < self.capacity.entries && bytes.saturating_add(needed) <= self.capacity.bytes
        };
        let when = |usage: &Usage| match usage {
            Usage::Fresh => None,
            Usage::Used(when) => Some(*when),
        };
        let mut used: Vec<_> =
            tickets.iter().filter_map(|(path, _, usage, bytes)| Some((when(usage)?, path, bytes))).collect();
        used.sort_unstable();
        for (_, path, size) in used {
            if fits(count, bytes) {
                break;
            }
            remove_file(path)?;
            count -= 1;
            bytes -= size;
        }
        if fits(count, bytes) {
            Ok(())
        } else {
            Err(PutError::Full { entries: count, bytes, needed, capacity: self.capacity })
        }
    }

    /// Writes a file that is there as a whole or not at all, also after a crash of the machine.
    fn write(&self, path: &Path, bytes: &[u8], existing: Existing) -> Result<(), StoreError> {
        let draft = self.root.join("tmp").join(Ticket::random()?.as_str());
        let written = (|| {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            match existing {
                Existing::Replace => std::fs::rename(&draft, path),
                Existing::Keep => match std::fs::hard_link(&draft, path) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                    other => other,
                },
            }
        })();
        // After a rename there is nothing left to remove.
        let _ = std::fs::remove_file(&draft);
        written.map_err(|source| StoreError::Io { what: "write", path: path.to_owned(), source })?;
        sync_parent(path)
    }
}

/// What happens to a file of the same name.
#[derive(Clone, Copy)]
enum Existing {
    Replace,
    Keep,
}

impl Store for Directory {
    fn put(&self, record: &Record) -> Result<Ticket, PutError> {
        let ticket = Ticket::random().map_err(StoreError::from)?;
        let sealed = record.seal(&self.key, Kind::Ticket, ticket.as_str());
        self.make_room(self.capacity.admit(sealed.len())?)?;
        self.write(&self.fresh(&ticket), &sealed, Existing::Replace)?;
        Ok(ticket)
    }

    fn take(&self, ticket: &Ticket) -> Result<Record, TakeError> {
        let (record, usage) = self.peek(ticket)?;
        if let Usage::Used(when) = usage {
            return Err(TakeError::AlreadyUsed { ticket: ticket.clone(), when });
        }
        let (from, to) = (self.fresh(ticket), self.used(ticket, UnixMillis::now()));
        match std::fs::rename(&from, &to) {
            Ok(()) => {}
            // Files are never changed, so what was read is what somebody else has now taken.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(match self.find_used(ticket)? {
                    Some((_, when)) => TakeError::AlreadyUsed { ticket: ticket.clone(), when },
                    None => TakeError::Unknown { ticket: ticket.clone() },
                });
            }
            Err(source) => return Err(StoreError::Io { what: "use", path: from, source }.into()),
        }
        // The new name first: a crash between the two may leave it used, never fresh again.
        sync_parent(&to)?;
        sync_parent(&from)?;
        Ok(record)
    }

    fn peek(&self, ticket: &Ticket) -> Result<(Record, Usage), PeekError> {
        let open = |bytes: &[u8]| Record::open(&self.key, Kind::Ticket, ticket.as_str(), bytes);
        if let Some(bytes) = read(&self.fresh(ticket))? {
            return Ok((open(&bytes)?, Usage::Fresh));
        }
        if let Some((path, when)) = self.find_used(ticket)?
            && let Some(bytes) = read(&path)?
        {
            return Ok((open(&bytes)?, Usage::Used(when)));
        }
        Err(PeekError::Unknown { ticket: ticket.clone() })
    }

    fn list(&self) -> Result<Vec<Listed>, StoreError> {
        let mut listed = Vec::new();
        for (path, ticket, usage, bytes) in self.tickets()? {
            let record = match read(&path) {
                Ok(Some(sealed)) => Record::open(&self.key, Kind::Ticket, ticket.as_str(), &sealed),
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            listed.push(Listed { ticket, usage, bytes, record: record.map(Record::without_snapshot) });
        }
        Ok(listed)
    }

    fn remove(&self, ticket: &Ticket) -> Result<(), StoreError> {
        let fresh = self.fresh(ticket);
        remove_file(&fresh)?;
        if let Some((path, _)) = self.find_used(ticket)? {
            remove_file(&path)?;
            sync_parent(&path)?;
        }
        sync_parent(&fresh)
    }

    fn hold(&self, run: &RunId) -> Result<Lease, HoldError> {
        let directory = self.run(run);
        loop {
            make_directory(&directory)?;
            match Lease::at(&directory.join("lock"), run) {
                // Whoever finished the run removed the directory between the two steps.
                Err(HoldError::Store(StoreError::Io { source, .. }))
                    if source.kind() == ErrorKind::NotFound => {}
                held => return held,
            }
        }
    }

    fn checkpoint(&self, record: &Record) -> Result<(), PutError> {
        let directory = self.run(&record.run);
        let path = directory.join("checkpoint");
        let sealed = record.seal(&self.key, Kind::Checkpoint, record.run.as_str());
        let needed = self.capacity.admit(sealed.len())?;
        if !path.exists() {
            let entries = self.unfinished()?.len();
            if entries >= self.capacity.entries {
                return Err(PutError::Full { entries, bytes: 0, needed, capacity: self.capacity });
            }
            make_directory(&directory)?;
        }
        self.write(&path, &sealed, Existing::Replace)?;
        for path in entries(&directory)? {
            if let Some((call, _)) = call_of(&path)
                && !record.waits_for(call)
            {
                remove_file(&path)?;
            }
        }
        Ok(())
    }

    fn latest(&self, run: &RunId) -> Result<Option<Record>, StoreError> {
        let sealed = read(&self.run(run).join("checkpoint"))?;
        sealed.map(|sealed| Record::open(&self.key, Kind::Checkpoint, run.as_str(), &sealed)).transpose()
    }

    fn unfinished(&self) -> Result<Vec<RunId>, StoreError> {
        let mut runs = Vec::new();
        for path in entries(&self.root.join("runs"))? {
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some(run) = name.and_then(|name| name.parse().ok())
                && path.join("checkpoint").exists()
            {
                runs.push(run);
            }
        }
        Ok(runs)
    }

    fn begin(&self, run: &RunId, call: CallId) -> Result<(), StoreError> {
        let directory = self.run(run);
        make_directory(&directory)?;
        self.write(&directory.join(format!("{call}.begun")), &[], Existing::Keep)
    }

    fn answer(&self, run: &RunId, call: CallId, payload: &str) -> Result<(), PutError> {
        let sealed = seal(&self.key, Kind::Answer, &answer_name(run, call), &[], payload.as_bytes());
        self.capacity.admit(sealed.len())?;
        let directory = self.run(run);
        make_directory(&directory)?;
        Ok(self.write(&directory.join(format!("{call}.answer")), &sealed, Existing::Keep)?)
    }

    fn journal(&self, run: &RunId) -> Result<BTreeMap<CallId, Entry>, StoreError> {
        let mut journal = BTreeMap::new();
        for path in entries(&self.run(run))? {
            match call_of(&path) {
                Some((call, Note::Begun)) => {
                    journal.entry(call).or_insert(Entry::Begun);
                }
                Some((call, Note::Answer)) => {
                    if let Some(sealed) = read(&path)? {
                        let payload = open_answer(&self.key, run, call, &sealed)?;
                        journal.insert(call, Entry::Answered(payload));
                    }
                }
                None => {}
            }
        }
        Ok(journal)
    }

    fn forget(&self, run: &RunId) -> Result<(), StoreError> {
        let directory = self.run(run);
        // The snapshot first: without it nothing else of the run is looked at.
        remove_file(&directory.join("checkpoint"))?;
        for path in entries(&directory)? {
            remove_file(&path)?;
        }
        match std::fs::remove_dir(&directory) {
            // Somebody takes hold of it at this very moment, and will find nothing.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {}
            Err(source) => return Err(StoreError::Io { what: "remove", path: directory, source }),
            Ok(()) => {}
        }
        sync_parent(&directory)
    }
}

/// What is noted about a call.
enum Note {
    Begun,
    Answer,
}

/// The name that an answer is sealed under.
pub(super) fn answer_name(run: &RunId, call: CallId) -> String {
    format!("{run}/{call}")
}

/// The payload of an answer.
pub(super) fn open_answer(
    key: &HostKey,
    run: &RunId,
    call: CallId,
    sealed: &[u8],
) -> Result<String, StoreError> {
    let name = answer_name(run, call);
    let (_, payload) = open(key, Kind::Answer, &name, sealed)?;
    let not_text = |_| StoreError::Tampered { name, why: "it is not text" };
    Ok(std::str::from_utf8(payload).map_err(not_text)?.to_owned())
}

/// The call that a file is about.
fn call_of(path: &Path) -> Option<(CallId, Note)> {
    let (number, note) = path.file_name()?.to_str()?.split_once('.')?;
    let note = match note {
        "begun" => Note::Begun,
        "answer" => Note::Answer,
        _ => return None,
    };
    Some((CallId(number.parse().ok()?), note))
}

/// The ticket that a file is for.
fn ticket_of(path: &Path) -> Option<(Ticket, Usage)> {
    let name = path.file_name()?.to_str()?;
    match name.split_once('@') {
        None => Some((name.parse().ok()?, Usage::Fresh)),
        Some((ticket, when)) => Some((ticket.parse().ok()?, Usage::Used(UnixMillis(when.parse().ok()?)))),
    }
}

/// Whether nobody has touched it for so long that its owner must be dead.
pub(super) fn is_abandoned(path: &Path) -> bool {
    let changed = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    let age = changed.ok().and_then(|changed| SystemTime::now().duration_since(changed).ok());
    age.is_some_and(|age| age > ABANDONED)
}

fn make_directory(path: &Path) -> Result<(), StoreError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| StoreError::Io { what: "make the directory", path: path.to_owned(), source })
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    gone_is_none(std::fs::read(path)).map_err(|source| StoreError::Io {
        what: "read",
        path: path.to_owned(),
        source,
    })
}

fn remove_file(path: &Path) -> Result<(), StoreError> {
    match gone_is_none(std::fs::remove_file(path)) {
        Ok(_) => Ok(()),
        Err(source) => Err(StoreError::Io { what: "remove", path: path.to_owned(), source }),
    }
}

/// The files of a directory; none, if it is gone.
pub(super) fn entries(directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let listed = gone_is_none(std::fs::read_dir(directory)).and_then(|listing| {
        listing.into_iter().flatten().map(|entry| entry.map(|entry| entry.path())).collect()
    });
    listed.map_err(|source| StoreError::Io { what: "list", path: directory.to_owned(), source })
}

fn gone_is_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes a name survive a crash of the machine.
fn sync_parent(path: &Path) -> Result<(), StoreError> {
    let Some(parent) = path.parent() else { return Ok(()) };
    let synced = File::open(parent).and_then(|directory| directory.sync_all());
    synced.map_err(|source| StoreError::Io { what: "write down", path: parent.to_owned(), source })
}
