//! The file of a run's requests and answers, which several processes may write.
//!
//! One JSON object a line, only ever appended to. Whoever writes takes the lock of the file, reads what others wrote in
//! the meantime, and only then appends and syncs; so of two answers the second writer sees the first and refuses. Whoever
//! only reads needs no lock: a line without its newline is not finished yet. A line that a crash tore is closed by the next
//! writer and says nothing.
//!
//! The run notices answers of others by asking for the length of the file, which costs a microsecond. Who can write the
//! file can approve: it must not be in a folder that the child may write.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;

use super::line::{self, Line, MAX_LINE_BYTES};
use super::{Answered, ApprovalId, ApprovalRequest};

/// The most requests that one run may make.
pub const MAX_REQUESTS: usize = 4096;

/// The most requests that may be open at once.
pub const MAX_OPEN: usize = 64;

/// How often and how long the lock is waited for. Whoever holds it appends one line, so this is for a machine that is busy
/// and not for a holder that was stopped.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// The requests and answers of one run, as this process knows them.
#[derive(Debug)]
pub struct Ledger {
    file: File,
    path: PathBuf,
    /// Everything before it is known.
    read_to: u64,
    open: BTreeMap<ApprovalId, ApprovalRequest>,
    settled: BTreeMap<ApprovalId, Answered>,
    /// Answers that were read and not yet asked for.
    news: Vec<Answered>,
    unreadable: u64,
}

/// The ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The system refused.
    #[error("{doing} the approvals in `{}` failed: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody holds the lock and does not let go.
    #[error("the approvals in `{}` are locked by another process", path.display())]
    Busy {
        /// Which file.
        path: PathBuf,
    },
    /// The file is shorter than it was: it is not only appended to.
    #[error("the approvals in `{}` were cut short by somebody", path.display())]
    Shrunk {
        /// Which file.
        path: PathBuf,
    },
    /// A line is longer than [`MAX_LINE_BYTES`].
    #[error("a line of the approvals in `{}` is longer than {MAX_LINE_BYTES} bytes", path.display())]
    LineTooLong {
        /// Which file.
        path: PathBuf,
    },
    /// There are [`MAX_REQUESTS`] requests, or [`MAX_OPEN`] of them are open.
    #[error(
        "there are {requests} requests for approval, {open} of them open; the limits are {MAX_REQUESTS} and {MAX_OPEN}"
    )]
    Full {
        /// How many there are.
        requests: usize,
        /// How many wait for an answer.
        open: usize,
    },
}

/// An answer that does not count.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// Nobody asked.
    #[error("there is no request for approval `{0}`")]
    Unknown(ApprovalId),
    /// Somebody else was first.
    #[error("`{}` was already {} by {} at {}", .0.id, .0.choice.word(), .0.by, .0.at)]
    Already(Answered),
    /// It could not be written down.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl Ledger {
    /// Opens the ledger at `path`, which is made if need be, and reads what is in it.
    pub fn open(path: &Path) -> Result<Ledger, LedgerError> {
        let mut options = OpenOptions::new();
        // An input may hold secrets.
        options.create(true).mode(0o600);
        Ledger::open_with(path, options)
    }

    /// Opens the ledger of another process, which must be there.
    pub fn open_existing(path: &Path) -> Result<Ledger, LedgerError> {
        Ledger::open_with(path, OpenOptions::new())
    }

    fn open_with(path: &Path, mut options: OpenOptions) -> Result<Ledger, LedgerError> {
        let file = options.read(true).append(true).open(path).map_err(|source| LedgerError::Io {
            doing: "opening",
            path: path.to_owned(),
            source,
        })?;
        let (open, settled, news) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let path = path.to_owned();
        let mut ledger = Ledger { file, path, read_to: 0, open, settled, news, unreadable: 0 };
        ledger.catch_up()?;
        ledger.news.clear();
        Ok(ledger)
    }

    /// The requests that nobody answered, in the order of their ids. Those of a run that died are among them.
    pub fn open_requests(&self) -> impl Iterator<Item = &ApprovalRequest> {
        self.open.values()
    }

    /// The answer that counts, if there is one.
    #[must_use]
    pub fn answer_to(&self, id: &ApprovalId) -> Option<&Answered> {
        self.settled.get(id)
    }

    /// How many requests there ever were.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.open.len() + self.settled.len()
    }

    /// How many lines said nothing: torn by a crash, or of a later version.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Writes a request down.
    pub fn request(&mut self, request: &ApprovalRequest) -> Result<(), LedgerError> {
        let line = line::request(request).map_err(|error| self.failed("writing", error.into()))?;
        self.locked(|ledger| {
            let (requests, open) = (ledger.requests(), ledger.open.len());
            if requests >= MAX_REQUESTS || open >= MAX_OPEN {
                return Err(LedgerError::Full { requests, open });
            }
            ledger.append(&line)
        })
    }

    /// Writes an answer down, unless there is one: then that one counts.
    pub fn answer(&mut self, answer: &Answered) -> Result<(), AnswerError> {
        let line = line::answer(answer).map_err(|error| self.failed("writing", error.into()))?;
        self.locked(|ledger| {
            if let Some(first) = ledger.settled.get(&answer.id) {
                return Err(AnswerError::Already(first.clone()));
            }
            if !ledger.open.contains_key(&answer.id) {
                return Err(AnswerError::Unknown(answer.id.clone()));
            }
            Ok(ledger.append(&line)?)
        })
    }

    /// The answers that were written since the last time, by whomever.
    pub fn refresh(&mut self) -> Result<Vec<Answered>, LedgerError> {
        self.catch_up()?;
        Ok(std::mem::take(&mut self.news))
    }

    /// Reads every finished line that is not known yet.
    fn catch_up(&mut self) -> Result<(), LedgerError> {
        let length = self.length()?;
        if length < self.read_to {
            return Err(LedgerError::Shrunk { path: self.path.clone() });
        }
        if length == self.read_to {
            return Ok(());
        }
        let read_to = self.read_to;
        self.file.seek(SeekFrom::Start(read_to)).map_err(|error| self.failed("reading", error))?;
        let mut unfinished = Vec::new();
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = match self.file.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.failed("reading", error)),
            };
            let mut fresh = &chunk[..count];
            while let Some(end) = memchr::memchr(b'\n', fresh) {
                unfinished.extend_from_slice(&fresh[..end]);
                self.check_length(&unfinished)?;
                self.take(&unfinished);
                self.read_to += unfinished.len() as u64 + 1;
                unfinished.clear();
                fresh = &fresh[end + 1..];
            }
            unfinished.extend_from_slice(fresh);
            self.check_length(&unfinished)?;
        }
    }

    fn check_length(&self, line: &[u8]) -> Result<(), LedgerError> {
        let fits = line.len() <= MAX_LINE_BYTES;
        fits.then_some(()).ok_or_else(|| LedgerError::LineTooLong { path: self.path.clone() })
    }

    fn take(&mut self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match line::read(line) {
            // What a file of somebody else's making has too many of is not kept.
            Some(Line::Request(request)) if self.open.len() < MAX_OPEN && self.requests() < MAX_REQUESTS => {
                if !self.settled.contains_key(&request.id) {
                    self.open.entry(request.id.clone()).or_insert(*request);
                }
            }
            Some(Line::Answer(answer)) => {
                // The first one counts, and only one that was asked for.
                if self.open.remove(&answer.id).is_some() {
                    self.settled.insert(answer.id.clone(), answer.clone());
                    self.news.push(answer);
                }
            }
            Some(Line::Request(_)) | None => self.unreadable += 1,
        }
    }

    /// Does `work` while nobody else writes, knowing everything that was written.
    fn locked<T, E: From<LedgerError>>(
        &mut self,
        work: impl FnOnce(&mut Ledger) -> Result<T, E>,
    ) -> Result<T, E> {
        self.lock()?;
        let done = self.catch_up().map_err(E::from).and_then(|()| work(self));
        // Closing the file would unlock it too; an error here changes nothing.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        done
    }

    fn lock(&self) -> Result<(), LedgerError> {
        for _ in 0..LOCK_TRIES {
            match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(self.failed("locking", errno.into())),
            }
        }
        Err(LedgerError::Busy { path: self.path.clone() })
    }

    /// One write, so that a reader never sees half of two lines; then it is made to last.
    fn append(&mut self, line: &[u8]) -> Result<(), LedgerError> {
        // Under the lock nobody is in the middle of a line: what is unfinished was torn by a crash.
        let torn = self.length()? > self.read_to;
        let text = if torn { [b"\n", line].concat() } else { line.to_owned() };
        self.file.write_all(&text).map_err(|error| self.failed("writing", error))?;
        self.file.sync_data().map_err(|error| self.failed("syncing", error))?;
        self.catch_up()
    }

    fn length(&self) -> Result<u64, LedgerError> {
        Ok(self.file.metadata().map_err(|error| self.failed("reading", error))?.len())
    }

    fn failed(&self, doing: &'static str, source: io::Error) -> LedgerError {
        LedgerError::Io { doing, path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Choice, MAX_SHOWN_INPUT, Waits, input_hash};
    use super::*;
    use crate::protocol::{RunId, Timestamp};

    fn request(number: usize) -> ApprovalRequest {
        let run_id = RunId::new("1435d8a3-b669-4b75-82d5-df8e55e2c877");
        let asked_at = Timestamp::from_unix_millis(1_790_000_000_000);
        ApprovalRequest {
            id: ApprovalId::numbered(&run_id, number),
            run_id,
            tool_name: "Bash".to_owned(),
            tool_use_id: Some("t1".to_owned()),
            input: r#"{"command":"ls"}"#.to_owned(),
            input_bytes: 16,
            input_sha256: input_hash(r#"{"command":"ls"}"#),
            reason: "because".to_owned(),
            waits: Waits::Asked,
            asked_at,
            deadline: asked_at.after(Duration::from_secs(60)),
            default: Choice::Deny,
        }
    }

    fn answer(number: usize, choice: Choice, by: &str) -> Answered {
        let at = Timestamp::from_unix_millis(1_790_000_001_000);
        Answered { id: request(number).id, choice, by: by.to_owned(), at, reason: None }
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("approvals.jsonl");
        (folder, path)
    }

    #[test]
    fn what_a_run_asked_before_it_died_is_seen_by_whoever_opens_the_file_next() {
        let (_folder, path) = folder();
        let mut ledger = Ledger::open(&path).unwrap();
        ledger.request(&request(1)).unwrap();
        ledger.request(&request(2)).unwrap();
        ledger.answer(&answer(1, Choice::Allow, "ann")).unwrap();
        drop(ledger);

        let ledger = Ledger::open_existing(&path).unwrap();
        assert_eq!(ledger.open_requests().collect::<Vec<_>>(), [&request(2)]);
        assert_eq!(ledger.answer_to(&request(1).id), Some(&answer(1, Choice::Allow, "ann")));
        assert_eq!((ledger.requests(), ledger.unreadable()), (2, 0));
    }

    #[test]
    fn a_second_answer_is_refused_with_the_first() {
        let (_folder, path) = folder();
        let mut run = Ledger::open(&path).unwrap();
        run.request(&request(1)).unwrap();
        let mut ann = Ledger::open_existing(&path).unwrap();
        let mut bob = Ledger::open_existing(&path).unwrap();
        ann.answer(&answer(1, Choice::Deny, "ann")).unwrap();
        let refused = bob.answer(&answer(1, Choice::Allow, "bob")).unwrap_err();
        assert_eq!(refused.to_string(), "`1435d8a3-1` was already denied by ann at 2026-09-21T14:13:21Z");
        assert_eq!(run.refresh().unwrap(), [answer(1, Choice::Deny, "ann")]);
        assert_eq!(run.refresh().unwrap(), []);
    }

    #[test]
    fn an_answer_that_came_while_the_run_was_writing_is_not_lost() {
        let (_folder, path) = folder();
        let mut run = Ledger::open(&path).unwrap();
        run.request(&request(1)).unwrap();
        Ledger::open_existing(&path).unwrap().answer(&answer(1, Choice::Allow, "ann")).unwrap();
        run.request(&request(2)).unwrap();
        assert_eq!(run.refresh().unwrap(), [answer(1, Choice::Allow, "ann")]);
    }

    #[test]
    fn an_answer_to_nothing_is_refused() {
        let (_folder, path) = folder();
        let refused = Ledger::open(&path).unwrap().answer(&answer(7, Choice::Allow, "ann")).unwrap_err();
        assert_eq!(refused.to_string(), "there is no request for approval `1435d8a3-7`");
        assert!(matches!(Ledger::open_existing(Path::new("/nowhere/x")), Err(LedgerError::Io { .. })));
    }

    #[test]
    fn a_line_that_a_crash_tore_says_nothing_and_swallows_nothing() {
        let (_folder, path) = folder();
        let mut run = Ledger::open(&path).unwrap();
        run.request(&request(1)).unwrap();
        let whole = line::answer(&answer(1, Choice::Allow, "ann")).unwrap();
        for torn in [1, 5, whole.len() - 2] {
            OpenOptions::new().append(true).open(&path).unwrap().write_all(&whole[..torn]).unwrap();
            assert_eq!(run.refresh().unwrap(), [], "an unfinished line is not an answer");
            run.request(&request(torn + 1)).unwrap();
        }
        assert_eq!((run.requests(), run.unreadable()), (4, 3));
        let again = Ledger::open(&path).unwrap();
        assert_eq!((again.requests(), again.open_requests().count(), again.unreadable()), (4, 4, 3));
    }

    #[test]
    fn lines_of_strangers_are_counted_and_the_first_answer_of_two_counts() {
        let (_folder, path) = folder();
        let mut run = Ledger::open(&path).unwrap();
        run.request(&request(1)).unwrap();
        let mut text = b"nonsense\n{}\n\n{\"t\":\"later\"}\n".to_vec();
        let forged = line::answer(&answer(1, Choice::Allow, "ann")).unwrap();
        text.extend(String::from_utf8(forged.clone()).unwrap().replace("\"v\":1", "\"v\":2").bytes());
        text.extend(line::answer(&answer(1, Choice::Deny, "bob")).unwrap());
        text.extend(forged);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(&text).unwrap();
        assert_eq!(run.refresh().unwrap(), [answer(1, Choice::Deny, "bob")]);
        assert_eq!(run.unreadable(), 4);
    }

    #[test]
    fn a_ledger_takes_so_many_open_requests_and_no_more() {
        let (_folder, path) = folder();
        let mut run = Ledger::open(&path).unwrap();
        for number in 0..MAX_OPEN {
            run.request(&request(number)).unwrap();
        }
        let full = run.request(&request(MAX_OPEN)).unwrap_err();
        assert!(matches!(full, LedgerError::Full { requests: MAX_OPEN, open: MAX_OPEN }), "{full}");
        run.answer(&answer(0, Choice::Deny, "ann")).unwrap();
        run.request(&request(MAX_OPEN)).unwrap();
    }

    #[test]
    fn a_line_may_be_so_long_and_no_longer() {
        for (length, fits) in [(MAX_LINE_BYTES, true), (MAX_LINE_BYTES + 1, false)] {
            for end in ["\n", ""] {
                let (_folder, path) = folder();
                std::fs::write(&path, "x".repeat(length) + end).unwrap();
                assert_eq!(Ledger::open(&path).is_ok(), fits, "{length}");
            }
        }
    }

    #[test]
    fn the_longest_request_fits_into_a_line() {
        let (_folder, path) = folder();
        let long = ApprovalRequest {
            tool_name: "\u{1}".repeat(9000),
            tool_use_id: Some("\u{1}".repeat(9000)),
            input: "\u{1}".repeat(MAX_SHOWN_INPUT * 2),
            reason: "\u{1}".repeat(9000),
            ..request(1)
        };
        Ledger::open(&path).unwrap().request(&long).unwrap();
        let read = Ledger::open(&path).unwrap();
        let kept = read.open_requests().next().unwrap();
        assert_eq!((kept.input.len(), kept.tool_name.len()), (MAX_SHOWN_INPUT, 1024));
        assert_eq!(kept.input_bytes, 16, "the length and the hash are of the whole");
    }

    #[test]
    fn a_file_that_was_cut_short_is_not_trusted() {
        let (_folder, path) = folder();
        let mut run = Ledger::open(&path).unwrap();
        run.request(&request(1)).unwrap();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(3).unwrap();
        assert!(matches!(run.refresh(), Err(LedgerError::Shrunk { .. })));
        assert!(matches!(run.request(&request(2)), Err(LedgerError::Shrunk { .. })));
    }

    #[test]
    fn a_ledger_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let (_folder, path) = folder();
        Ledger::open(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
    }
}
