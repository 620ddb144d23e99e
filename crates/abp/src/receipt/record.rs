//! The events of a run, written down as they happen.
//!
//! The canonical order of a receipt puts what is known last (the outcome, the time of the end) before the events. So events
//! are spooled to a file, one a line in their canonical spelling, and the hash is made when the run has ended, by one pass
//! over that file. Memory is one buffer, however many events there are.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use outrigger_policy::Digest;
use serde::{Deserialize, Serialize};

use super::canonical::{self, CanonicalError, Spelled, Vendor};
use super::folder::{Folder, SpoolLimit};
use super::head::Hasher;
use crate::protocol::{AgentEvent, EnvelopeError, RunId, Timestamp};

/// What is gathered before it is written.
const BUFFER: usize = 128 * 1024;

/// The first line of a spool.
#[derive(Debug, Serialize, Deserialize)]
struct SpoolHead {
    outrigger_trace: u32,
    run_id: String,
    begun_at: String,
}

/// Why a run cannot be recorded or its receipt not written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The disk is full, or something else is wrong with it.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The run has more events than a receipt may hold.
    #[error("the events of this run take more than {limit} bytes")]
    TooLong {
        /// How much they may take.
        limit: u64,
    },
    /// The run was recorded before.
    #[error("there is a record of this run already: {}", path.display())]
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// Another process records this run.
    #[error("another process is recording this run: {}", path.display())]
    InUse {
        /// Where.
        path: PathBuf,
    },
    /// A file is not a spool.
    #[error("{} is not the record of a run: {why}", path.display())]
    NotASpool {
        /// Which file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The file that names the newest receipt cannot be read.
    #[error("{} does not name the newest receipt: {why}; remove it to begin a new chain", path.display())]
    BadHead {
        /// Which file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Something has no canonical spelling.
    #[error("it cannot be hashed: {0}")]
    Unspellable(#[from] CanonicalError),
    /// A recorded event cannot be read again.
    #[error("a recorded event cannot be read again: {0}")]
    Unreadable(#[from] EnvelopeError),
}

impl RecordError {
    pub(super) fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }
}

/// Writes down the events of one run.
#[derive(Debug)]
pub struct Recorder {
    pub(super) folder: Folder,
    pub(super) run: RunId,
    begun_at: Timestamp,
    path: PathBuf,
    file: File,
    /// Where the events begin.
    start: u64,
    /// What was written, and what waits in the buffer.
    written: u64,
    buffer: Vec<u8>,
    events: u64,
    /// Whether all lines are canonical as they are.
    spelled: Spelled,
}

impl Recorder {
    /// Begins the record of a run.
    ///
    /// # Errors
    /// When the run was recorded before, or its file cannot be made.
    pub fn begin(folder: &Folder, run: &RunId) -> Result<Self, RecordError> {
        let receipt = folder.receipt(run);
        if receipt.exists() {
            return Err(RecordError::Exists { path: receipt });
        }
        let path = folder.part(run);
        let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
        let file = opened.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => RecordError::Exists { path: path.clone() },
            _ => RecordError::io("make", &path, source),
        })?;
        file.lock().map_err(|source| RecordError::io("lock", &path, source))?;
        let begun_at = Timestamp::now();
        let head =
            SpoolHead { outrigger_trace: 1, run_id: run.as_str().to_owned(), begun_at: begun_at.to_string() };
        let head = format!("{}\n", super::head::text(&head));
        let mut recorder = Self {
            folder: folder.clone(),
            run: run.clone(),
            begun_at,
            path,
            file,
            start: head.len() as u64,
            written: 0,
            buffer: Vec::with_capacity(BUFFER),
            events: 0,
            spelled: Spelled::Canonical,
        };
        recorder.buffer.extend_from_slice(head.as_bytes());
        recorder.flush()?;
        Ok(recorder)
    }

    /// Takes up the record of a run whose host was killed. What had not been written out is lost; a line that was cut is
    /// dropped.
    ///
    /// # Errors
    /// When there is none, it belongs to a process that is alive, or it is not a record.
    pub fn recover(folder: &Folder, part: &Path) -> Result<Self, RecordError> {
        let failed = |what| move |source| RecordError::io(what, part, source);
        let file = OpenOptions::new().read(true).write(true).open(part).map_err(failed("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(RecordError::InUse { path: part.to_owned() });
            }
            Err(std::fs::TryLockError::Error(source)) => return Err(failed("lock")(source)),
        }
        let not_a_spool = |why: &str| RecordError::NotASpool { path: part.to_owned(), why: why.to_owned() };
        let mut reader = BufReader::with_capacity(BUFFER, &file);
        let mut line = Vec::new();
        read_line(&mut reader, &mut line, folder.limit()).map_err(failed("read"))?;
        let head: SpoolHead =
            serde_json::from_slice(&line).map_err(|error| not_a_spool(&error.to_string()))?;
        if head.outrigger_trace != 1 {
            return Err(not_a_spool("its version is unknown"));
        }
        let begun_at = Timestamp::parse(&head.begun_at).map_err(|error| not_a_spool(&error.to_string()))?;
        let start = line.len() as u64;
        let (mut whole, mut events) = (start, 0);
        loop {
            let read = read_line(&mut reader, &mut line, folder.limit()).map_err(failed("read"))?;
            let event = line.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
            if read == 0 || event.is_none_or(|event| AgentEvent::read(event).is_err()) {
                break;
            }
            whole += read as u64;
            events += 1;
        }
        drop(reader);
        file.set_len(whole).map_err(failed("shorten"))?;
        Ok(Self {
            folder: folder.clone(),
            run: RunId::new(head.run_id),
            begun_at,
            path: part.to_owned(),
            file,
            start,
            written: whole,
            buffer: Vec::new(),
            events,
            // Whether a vendor's message is among them was not counted; looking costs little.
            spelled: Spelled::WithVendor,
        })
    }

    /// Writes down an event.
    ///
    /// # Errors
    /// When the disk is full, the run is too long, or the event cannot be hashed. The record stays as it was before.
    pub fn event(&mut self, event: &AgentEvent<'_>) -> Result<(), RecordError> {
        let before = self.buffer.len();
        let spelled = match canonical::write_event(&mut self.buffer, event, Vendor::Verbatim) {
            Ok(spelled) => spelled,
            Err(error) => {
                self.buffer.truncate(before);
                return Err(error.into());
            }
        };
        self.buffer.push(b'\n');
        let SpoolLimit(limit) = self.folder.limit();
        if self.written + self.buffer.len() as u64 > limit {
            self.buffer.truncate(before);
            return Err(RecordError::TooLong { limit });
        }
        if spelled == Spelled::WithVendor {
            self.spelled = spelled;
        }
        self.events += 1;
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Hands everything to the system: what was flushed survives the death of this process.
    ///
    /// # Errors
    /// When it cannot be written, for instance because the disk is full.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        let at = self.written;
        let done = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.write_all(&self.buffer));
        done.map_err(|source| RecordError::io("write", &self.path, source))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        // One enormous event must not keep its memory for the rest of the run.
        self.buffer.shrink_to(2 * BUFFER);
        Ok(())
    }

    /// How many events were written down.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// When the record began.
    #[must_use]
    pub fn begun_at(&self) -> Timestamp {
        self.begun_at
    }

    /// Gives the record up: nothing of the run stays.
    ///
    /// # Errors
    /// When its file cannot be removed.
    pub fn discard(self) -> Result<(), RecordError> {
        self.remove()
    }

    pub(super) fn remove(&self) -> Result<(), RecordError> {
        std::fs::remove_file(&self.path).map_err(|source| RecordError::io("remove", &self.path, source))
    }

    /// Goes over all events: gives `file` the text for the receipt's file, feeds `hasher` the canonical text between the
    /// brackets of `trace`, and says what the events alone hash to if somebody wants to know.
    pub(super) fn replay(
        &mut self,
        hasher: &mut Hasher,
        mut file: impl FnMut(&[u8]) -> Result<(), RecordError>,
        wanted: TraceHash,
    ) -> Result<Option<Digest>, RecordError> {
        self.flush()?;
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| RecordError::Io { what: "read", path, source }
        };
        self.file.seek(SeekFrom::Start(self.start)).map_err(failed(&self.path))?;
        let mut alone = match wanted {
            TraceHash::Wanted => Some(Hasher::new()),
            TraceHash::NotWanted => None,
        };
        let mut reader = BufReader::with_capacity(BUFFER, &self.file);
        let (mut line, mut canonical) = (Vec::new(), Vec::new());
        for number in 0..self.events {
            let read = read_line(&mut reader, &mut line, self.folder.limit()).map_err(failed(&self.path))?;
            let Some(text) = line.strip_suffix(b"\n").filter(|_| read > 0) else {
                let why = format!("it ends after {number} of {} events", self.events);
                return Err(RecordError::NotASpool { path: self.path.clone(), why });
            };
            let separator: &[u8] = if number == 0 { b"\n" } else { b",\n" };
            file(separator)?;
            file(text)?;
            if number > 0 {
                hasher.update(b",");
            }
            let text = match self.spelled {
                Spelled::Canonical => text,
                Spelled::WithVendor => respell(text, &mut canonical, &self.path)?,
            };
            hasher.update(text);
            if let Some(alone) = &mut alone {
                alone.update(text);
                alone.update(b"\n");
            }
        }
        Ok(alone.map(Hasher::finish))
    }
}

/// Whether the hash of the events alone is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TraceHash {
    Wanted,
    NotWanted,
}

/// The canonical spelling of a spooled line; its own text unless a vendor's message is in it.
fn respell<'t>(text: &'t [u8], out: &'t mut Vec<u8>, path: &Path) -> Result<&'t [u8], RecordError> {
    if memchr::memmem::find(text, b"\"raw_message\":").is_none() {
        return Ok(text);
    }
    let text = std::str::from_utf8(text)
        .map_err(|error| RecordError::NotASpool { path: path.to_owned(), why: error.to_string() })?;
    out.clear();
    canonical::write_event(out, &AgentEvent::read(text)?, Vendor::Canonical)?;
    Ok(out)
}

/// Reads a line with its newline, no longer than the whole spool may be.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>, limit: SpoolLimit) -> io::Result<usize> {
    line.clear();
    io::Read::take(reader, limit.0).read_until(b'\n', line)
}
