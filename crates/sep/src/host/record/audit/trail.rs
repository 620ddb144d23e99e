//! The writing of a trail: lines wait in memory for a moment, go to the file in order, and go on to the next file when it is
//! full. A write that fails leaves neither a gap nor half a line.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use outrigger_policy::Millis;
use outrigger_policy::audit::{Chain, Coalescer, Head, MAX_LINE_BYTES, Offer, Threshold};

use super::AuditDown;
use super::entry::{Members, Prepared, Same, own_members};
use super::files::{AuditLimits, Disk, Folder};
use super::recover::{Note, Recovered};
use crate::host::record::stamp::Now;

/// Lines that may wait for the disk.
const PENDING_BYTES: usize = 256 * 1024;

/// While the trail cannot be written it is tried again this often, in milliseconds.
const RETRY_MILLIS: u64 = 250;

/// Twenty of the same denial in a minute are written; the rest is counted.
const DENIALS: Threshold = Threshold { written: 20, window_millis: 60_000 };

#[derive(Debug)]
pub(super) struct Trail {
    folder: Folder,
    limits: AuditLimits,
    file: Arc<File>,
    /// How much of the file is whole lines of ours.
    length: u64,
    chain: Chain,
    pending: String,
    denials: Coalescer<Same>,
    /// No count of denials is due before this moment of the steady clock; looking for one is not free.
    repeats_due: Millis,
    down: Option<Down>,
    /// Urgent records that there was no room for while the trail was down.
    lost: u64,
    /// The last line that was handed to the system.
    flushed: Head,
    /// Whether the file has lines that may not be on the disk yet.
    unsynced: bool,
    /// Full files whose lines may not be on the disk yet.
    retired: Vec<Arc<File>>,
    disk: Disk,
}

/// Lines that the system has and the disk perhaps not.
#[derive(Debug)]
pub(super) struct Unsynced {
    folder: Folder,
    full: Vec<Arc<File>>,
    file: Arc<File>,
    head: Head,
}

impl Unsynced {
    /// Brings them to the disk, and then notes how far the trail reaches. Slow: not while the trail is locked.
    pub(super) fn sync(self) -> io::Result<()> {
        self.full.iter().try_for_each(|file| file.sync_data())?;
        self.file.sync_data()?;
        if !self.full.is_empty() {
            self.folder.sync()?;
        }
        self.folder.write_head(self.head)
    }
}

#[derive(Debug)]
struct Down {
    why: String,
    tried: Millis,
}

impl Trail {
    pub(super) fn new(folder: Folder, limits: AuditLimits, recovered: Recovered, now: Now) -> Self {
        let Recovered { head, file, length, notes } = recovered;
        let mut trail = Self {
            folder,
            limits,
            file: Arc::new(file),
            length,
            chain: Chain::after(head),
            pending: String::new(),
            denials: Coalescer::new(DENIALS),
            repeats_due: Millis(u64::MAX),
            down: None,
            lost: 0,
            flushed: head,
            unsynced: length > 0,
            retired: Vec::new(),
            disk: Disk::default(),
        };
        for note in notes {
            let members = match note {
                Note::Torn => own_members("audit.recover", "torn_line", None),
                Note::Missing(count) => own_members("audit.recover", "records_missing", Some(count)),
            };
            // If the disk is full already, the first decision will say so.
            let _ = trail.append(now, &members);
        }
        trail
    }

    /// Writes one decision, or counts it if it is one of many.
    pub(super) fn write(&mut self, now: Now, entry: &Prepared<'_>) -> Result<(), AuditDown> {
        let up = self.revive(now);
        if let Some(same) = entry.same() {
            self.write_repeats(now);
            let window_ends = now.steady.0.saturating_add(DENIALS.window_millis);
            self.repeats_due = self.repeats_due.min(Millis(window_ends));
            if self.denials.offer(now.steady, &same) == Offer::Held {
                return up;
            }
        }
        if let Err(down) = up {
            // What was denied was denied: it is written when that is possible again, as far as there is room.
            if entry.is_urgent() && self.append(now, &entry.members()).is_err() {
                self.lost += 1;
            }
            return Err(down);
        }
        self.append(now, &entry.members())?;
        if entry.is_urgent() { self.flush(now) } else { Ok(()) }
    }

    /// Hands everything that waits to the system.
    pub(super) fn flush(&mut self, now: Now) -> Result<(), AuditDown> {
        if self.pending.is_empty() {
            return self.standing();
        }
        if let Err(error) = self.disk.write(&self.file, self.pending.as_bytes()) {
            // Half of it may be there. What cannot be cut off now is cut off before the next attempt.
            let _ = self.file.set_len(self.length);
            return Err(self.fail(now, &error));
        }
        self.length += self.pending.len() as u64;
        self.pending.clear();
        self.flushed = self.chain.head();
        self.unsynced = true;
        self.standing()
    }

    /// Writes the counts of denials whose minute is over.
    pub(super) fn write_repeats(&mut self, now: Now) {
        if now.steady < self.repeats_due {
            return;
        }
        for repeated in self.denials.due(now.steady) {
            if self
                .append(now, &repeated.denial.members(repeated.repeat, now.wall_at(repeated.first)))
                .is_err()
            {
                self.lost += 1;
            }
        }
        self.repeats_due = self.denials.next_due().unwrap_or(Millis(u64::MAX));
    }

    /// The end: all counts are written.
    pub(super) fn finish(&mut self, now: Now) {
        for repeated in self.denials.finish() {
            if self
                .append(now, &repeated.denial.members(repeated.repeat, now.wall_at(repeated.first)))
                .is_err()
            {
                self.lost += 1;
            }
        }
    }

    /// Tries again, if it is time to.
    pub(super) fn revive(&mut self, now: Now) -> Result<(), AuditDown> {
        let Some(down) = &mut self.down else { return Ok(()) };
        if now.steady.0.saturating_sub(down.tried.0) < RETRY_MILLIS {
            return Err(AuditDown { why: down.why.clone() });
        }
        down.tried = now.steady;
        if let Err(error) = self.reopen() {
            return Err(self.fail(now, &error));
        }
        let before = self.down.take();
        self.flush(now)?;
        // A disk that takes what waited and nothing more is not good enough: the record of the gap must fit too.
        if let Err(down) = self.note_gap(now) {
            self.down = self.down.take().or(before);
            return Err(down);
        }
        Ok(())
    }

    /// What has to be synced; none when all is.
    pub(super) fn unsynced(&mut self) -> Option<Unsynced> {
        if !self.unsynced {
            return None;
        }
        self.unsynced = false;
        let full = std::mem::take(&mut self.retired);
        Some(Unsynced { folder: self.folder.clone(), full, file: Arc::clone(&self.file), head: self.flushed })
    }

    /// What became of syncing.
    pub(super) fn synced(&mut self, now: Now, result: io::Result<()>) {
        if let Err(error) = result {
            self.unsynced = true;
            self.fail(now, &error);
        }
    }

    /// Whether a flusher has anything to do.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty() && !self.unsynced && self.down.is_none()
    }

    pub(super) fn next_due(&self) -> Option<Millis> {
        Some(self.repeats_due).filter(|due| *due < Millis(u64::MAX))
    }

    pub(super) fn head(&self) -> Head {
        self.chain.head()
    }

    pub(super) fn standing(&self) -> Result<(), AuditDown> {
        match &self.down {
            None => Ok(()),
            Some(down) => Err(AuditDown { why: down.why.clone() }),
        }
    }

    /// Adds a line to those that wait; makes room for it first, in memory and in the file.
    fn append(&mut self, now: Now, members: &Members<'_>) -> Result<(), AuditDown> {
        if self.pending.len() + MAX_LINE_BYTES > PENDING_BYTES {
            self.standing()?;
            self.flush(now)?;
        }
        let before = self.pending.len();
        let mut head = self.line(now, members)?;
        let length = self.length + self.pending.len() as u64;
        if length > self.limits.file_bytes && self.length + before as u64 > 0 {
            self.pending.truncate(before);
            self.standing()?;
            self.rotate(now)?;
            head = self.line(now, members)?;
        }
        self.chain.commit_to(head);
        Ok(())
    }

    fn line(&mut self, now: Now, members: &Members<'_>) -> Result<Head, AuditDown> {
        let made = self.chain.next_flat(now.wall, members.as_slice(), &mut self.pending);
        // Words are short and in order, so no line can be refused; if one were, nothing may be allowed for it.
        let head = made.map_err(|error| AuditDown { why: error.to_string() })?;
        self.pending.push('\n');
        Ok(head)
    }

    fn rotate(&mut self, now: Now) -> Result<(), AuditDown> {
        self.flush(now)?;
        let renamed = self.folder.rotate(self.chain.head().seq, self.limits);
        let next = match renamed.and_then(|()| self.folder.open_current()) {
            Ok(next) => Arc::new(next),
            Err(error) => return Err(self.fail(now, &error)),
        };
        // Syncing takes its time, and somebody waits for their decision.
        self.retired.push(std::mem::replace(&mut self.file, next));
        if self.retired.len() > self.limits.files {
            self.retired.remove(0);
        }
        self.unsynced = true;
        self.length = 0;
        // The first line of a file says where it goes on, so that the files before it can be thrown away.
        let head = self.line(now, &own_members("audit.rotate", "continued", None))?;
        self.chain.commit_to(head);
        Ok(())
    }

    fn reopen(&mut self) -> io::Result<()> {
        let file = self.folder.open_current()?;
        let length = file.metadata()?.len();
        if length < self.length {
            // Somebody cut or replaced it. The chain goes on where it was, and the check will show the hole.
            self.length = length;
        }
        file.set_len(self.length)?;
        self.file = Arc::new(file);
        Ok(())
    }

    fn note_gap(&mut self, now: Now) -> Result<(), AuditDown> {
        let lost = (self.lost > 0).then_some(self.lost);
        self.append(now, &own_members("audit.resume", "written_again", lost))?;
        self.lost = 0;
        self.flush(now)
    }

    fn fail(&mut self, now: Now, error: &io::Error) -> AuditDown {
        let why = error.to_string();
        self.down = Some(Down { why: why.clone(), tried: now.steady });
        AuditDown { why }
    }

    /// Notices that the file was taken away under the writer: what is written to it then is lost.
    pub(super) fn check_file(&mut self, now: Now) {
        if self.down.is_none() && self.file.metadata().is_ok_and(|metadata| metadata.nlink() == 0) {
            self.fail(now, &io::Error::other("the current file was removed"));
        }
    }
}

#[cfg(test)]
impl Trail {
    /// From now on the disk takes so many bytes and no more; none takes all.
    pub(super) fn set_room(&mut self, room: Option<usize>) {
        self.disk.room = room;
    }
}
