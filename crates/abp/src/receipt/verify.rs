//! Whether a receipt is what it says it is: its hash, its signature, its form. Offline, streaming, whoever wrote it.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

use outrigger_policy::Digest;
use serde::Serialize;

use super::canonical::{self, CanonicalError, Vendor};
use super::head::{Hasher, ReceiptHead, Signature};
use super::key;
use super::scan::{MAX_PIECE, ScanError, Scanner};
use crate::protocol::fields::{Fields, Place};
use crate::protocol::json::Piece;
use crate::protocol::{AgentEvent, EnvelopeError, ReceivedReceipt};

/// The most problems that a check lists.
pub const MAX_PROBLEMS: usize = 64;

/// What came out of looking at a receipt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Which file.
    pub path: PathBuf,
    /// How many events it has.
    pub events: u64,
    /// Its hash.
    pub hash: HashState,
    /// Its signature.
    pub signature: SignatureState,
    /// The receipt before it; none if it is the first or not one of a chain.
    pub previous: Option<Digest>,
    /// What is not as the contract says, at most [`MAX_PROBLEMS`].
    pub problems: Vec<Problem>,
    /// Everything but the events; none if a member that must be there is not.
    pub receipt: Option<ReceiptHead>,
}

/// What a hash is worth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum HashState {
    /// It is the hash of what is there.
    Ok {
        /// The hash.
        sha256: Digest,
    },
    /// It is the hash of something else.
    Mismatch {
        /// What the receipt says.
        stored: String,
        /// What is there.
        computed: Digest,
    },
    /// The receipt has none.
    Missing {
        /// What is there.
        computed: Digest,
    },
    /// There is nothing to hash: the problems say why.
    Unknown,
}

/// What a signature is worth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum SignatureState {
    /// There is none.
    None,
    /// The owner of this key signed this receipt.
    Valid {
        /// In hexadecimal digits.
        public_key: String,
    },
    /// It is worth nothing.
    Invalid {
        /// Why.
        why: String,
    },
}

/// Something that is not as the contract says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where: `trace[3].ts`.
    pub path: String,
    /// What.
    pub what: String,
}

/// Why a file cannot be looked at.
#[derive(Debug, thiserror::Error)]
#[error("the receipt {} cannot be checked: {source}", path.display())]
pub struct VerifyError {
    /// Which file.
    pub path: PathBuf,
    /// Why.
    pub source: ScanError,
}

impl Check {
    /// Whether it can be trusted: the right hash, no wrong signature, no problem.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let hash = matches!(self.hash, HashState::Ok { .. });
        let signature = !matches!(self.signature, SignatureState::Invalid { .. });
        hash && signature && self.problems.is_empty()
    }
}

/// Looks at a receipt, in two passes: the members may be in any order, and the file of any size.
///
/// # Errors
/// When it cannot be read, or is not an object of JSON.
pub fn verify(path: &Path) -> Result<Check, VerifyError> {
    let failed = |source| VerifyError { path: path.to_owned(), source };
    let mut receipt = OpenReceipt::open(path).map_err(failed)?;
    check(&mut receipt, path).map_err(failed)
}

/// A receipt of which everything but the events was read.
pub(super) struct OpenReceipt {
    file: File,
    /// The members but `trace`, as an object.
    rest: String,
    /// Where the array of events begins.
    trace: Option<u64>,
}

impl OpenReceipt {
    /// The first pass.
    pub(super) fn open(path: &Path) -> Result<Self, ScanError> {
        let mut file = File::open(path)?;
        let mut scanner = Scanner::new(&mut file, 0);
        scanner.expect(b'{', "it does not begin with an object")?;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let (mut rest, mut trace) = (b"{".to_vec(), None);
        let mut first = true;
        while scanner.goes_on(b'}', &mut first)? {
            if scanner.peek()? != Some(b'"') {
                return scanner.fail("a key is missing");
            }
            scanner.value(&mut key)?;
            scanner.expect(b':', "a colon is missing")?;
            let name = std::str::from_utf8(&key).ok().and_then(|key| Piece::read(key).ok()?.string());
            if name.as_deref() == Some("trace") {
                trace = (scanner.peek()? == Some(b'[')).then(|| scanner.offset());
                scanner.skip()?;
                continue;
            }
            scanner.value(&mut value)?;
            if rest.len() + key.len() + value.len() > MAX_PIECE {
                return Err(ScanError::TooLarge);
            }
            if rest.len() > 1 {
                rest.push(b',');
            }
            rest.extend_from_slice(&key);
            rest.push(b':');
            rest.extend_from_slice(&value);
        }
        if scanner.peek()?.is_some() {
            return scanner.fail("something follows the receipt");
        }
        rest.push(b'}');
        let rest =
            String::from_utf8(rest).map_err(|_| ScanError::NotJson { at: 0, why: "it is not UTF-8" })?;
        Ok(Self { file, rest, trace })
    }

    /// Everything but the events.
    pub(super) fn rest(&self) -> Result<ReceivedReceipt<'_>, EnvelopeError> {
        ReceivedReceipt::read(&self.rest)
    }

    /// The text of everything but the events.
    pub(super) fn text(&self) -> &str {
        &self.rest
    }

    /// The second pass: the events, one at a time.
    pub(super) fn events(&mut self) -> Result<Option<Events<'_>>, ScanError> {
        let Some(start) = self.trace else { return Ok(None) };
        self.file.seek(SeekFrom::Start(start))?;
        let mut scanner = Scanner::new(&mut self.file, start);
        scanner.expect(b'[', "the trace is no array")?;
        Ok(Some(Events { scanner, first: true, text: Vec::new() }))
    }

    fn signature(&self) -> Option<Result<Signature, EnvelopeError>> {
        let piece = Piece::read(&self.rest).ok()?;
        let root = Place::ROOT;
        let outer = Fields::required(&piece, &root, ["signature"]).ok()?;
        let signature = outer.piece("signature");
        if signature.is_none() {
            return None;
        }
        let place = root.member("signature");
        Some((|| {
            let fields = Fields::required(&signature, &place, ["algorithm", "public_key", "value"])?;
            Ok(Signature {
                algorithm: fields.text("algorithm")?.into_owned(),
                public_key: fields.text("public_key")?.into_owned(),
                value: fields.text("value")?.into_owned(),
            })
        })())
    }
}

/// The events of a receipt.
pub(super) struct Events<'f> {
    scanner: Scanner<&'f mut File>,
    first: bool,
    text: Vec<u8>,
}

impl Events<'_> {
    /// The text of the next one.
    pub(super) fn next(&mut self) -> Result<Option<&str>, ScanError> {
        if !self.scanner.goes_on(b']', &mut self.first)? {
            return Ok(None);
        }
        let at = self.scanner.offset();
        self.scanner.value(&mut self.text)?;
        let text = std::str::from_utf8(&self.text);
        text.map(Some).map_err(|_| ScanError::NotJson { at, why: "it is not UTF-8" })
    }
}

fn check(receipt: &mut OpenReceipt, path: &Path) -> Result<Check, ScanError> {
    let mut problems = Problems(Vec::new());
    let (mut head, mut stored) = (None, None);
    match receipt.rest() {
        Err(error) => problems.note("", error),
        Ok(received) => {
            received.problems.iter().for_each(|problem| problems.note("", problem.clone()));
            stored.clone_from(&received.receipt_sha256);
            match ReceiptHead::of_received(&received) {
                Ok(whole) => head = Some(whole),
                Err(missing) => missing.into_iter().for_each(|path| {
                    problems.note("", EnvelopeError::Missing { path: path.to_owned() });
                }),
            }
        }
    }
    let mut computed = Computed::begin(head.as_ref());
    let mut events = 0;
    match receipt.events()? {
        None => problems.note("", EnvelopeError::Missing { path: "trace".to_owned() }),
        Some(mut list) => {
            while let Some(text) = list.next()? {
                match AgentEvent::read(text) {
                    Ok(event) => computed.event(&event),
                    Err(error) => {
                        problems.note(&format!("trace[{events}]"), error);
                        computed = Computed::none();
                    }
                }
                events += 1;
            }
        }
    }
    let computed = computed.finish(head.as_ref(), &mut problems);
    let hash = match (stored, computed) {
        (_, None) => HashState::Unknown,
        (None, Some(computed)) => HashState::Missing { computed },
        (Some(stored), Some(computed)) if stored == computed.to_string() => {
            HashState::Ok { sha256: computed }
        }
        (Some(stored), Some(computed)) => HashState::Mismatch { stored, computed },
    };
    let signature = match (receipt.signature(), computed) {
        (None, _) => SignatureState::None,
        (Some(Err(error)), _) => SignatureState::Invalid { why: error.to_string() },
        (Some(Ok(_)), None) => {
            SignatureState::Invalid { why: "there is no hash to check it with".to_owned() }
        }
        // The signature must be for what is there, whatever the receipt says its hash is.
        (Some(Ok(signature)), Some(computed)) => match key::check(&signature, &computed) {
            Ok(()) => SignatureState::Valid { public_key: signature.public_key },
            Err(why) => SignatureState::Invalid { why: why.to_owned() },
        },
    };
    let previous = head.as_ref().and_then(ReceiptHead::previous);
    let problems = problems.0;
    Ok(Check { path: path.to_owned(), events, hash, signature, previous, problems, receipt: head })
}

/// The hash of what is there, as long as there is something to hash.
struct Computed {
    hasher: Option<Hasher>,
    comma: bool,
    text: Vec<u8>,
    error: Option<CanonicalError>,
}

impl Computed {
    fn none() -> Self {
        Self { hasher: None, comma: false, text: Vec::new(), error: None }
    }

    fn begin(head: Option<&ReceiptHead>) -> Self {
        let Some(head) = head else { return Self::none() };
        match head.before_trace() {
            Ok(text) => {
                let mut hasher = Hasher::new();
                hasher.update(&text);
                Self { hasher: Some(hasher), ..Self::none() }
            }
            Err(error) => Self { error: Some(error), ..Self::none() },
        }
    }

    fn event(&mut self, event: &AgentEvent<'_>) {
        let Some(hasher) = &mut self.hasher else { return };
        self.text.clear();
        if std::mem::replace(&mut self.comma, true) {
            hasher.update(b",");
        }
        match canonical::write_event(&mut self.text, event, Vendor::Canonical) {
            Ok(_) => hasher.update(&self.text),
            Err(error) => {
                self.hasher = None;
                self.error = Some(error);
            }
        }
    }

    fn finish(self, head: Option<&ReceiptHead>, problems: &mut Problems) -> Option<Digest> {
        if let Some(error) = self.error {
            problems.say("", error.to_string());
        }
        let mut hasher = self.hasher?;
        match head?.after_trace() {
            Ok(text) => {
                hasher.update(&text);
                Some(hasher.finish())
            }
            Err(error) => {
                problems.say("usage_raw", error.to_string());
                None
            }
        }
    }
}

/// What was found, up to a bound.
struct Problems(Vec<Problem>);

impl Problems {
    fn note(&mut self, within: &str, error: EnvelopeError) {
        let join = |path: &str| match (within, path) {
            ("", path) => path.to_owned(),
            (within, path) => format!("{within}.{path}"),
        };
        match error {
            EnvelopeError::Missing { path } => self.say(&join(&path), "it is missing".to_owned()),
            EnvelopeError::Wrong { path, found, expected } => {
                self.say(&join(&path), format!("it is {found}; it must be {expected}"));
            }
            EnvelopeError::TooMany { path, limit } => {
                self.say(&join(&path), format!("it has more than {limit} entries"));
            }
            other @ (EnvelopeError::NotJson(_) | EnvelopeError::TooDeep) => {
                self.say(within, other.to_string())
            }
        }
    }

    fn say(&mut self, path: &str, what: String) {
        if self.0.len() < MAX_PROBLEMS {
            self.0.push(Problem { path: path.to_owned(), what });
        }
    }
}
