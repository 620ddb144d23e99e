//! The splitter: a state machine that turns pushed bytes into lines without ever holding more than one limit of them.

use memchr::memchr;

use super::item::{Content, Defect, Defective, Ending, Head, Item, Line, TooLong, is_blank};
use super::policy::{Blank, Bom, CarriageReturn, Fault, LastLine, LineLimit, LinePolicy, Overlong, Patience};

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A buffer that grew beyond this for one long line is given back before the next.
const KEEP_CAPACITY: usize = 256 * 1024;

/// Turns bytes into lines. It does no I/O: push what arrived with [`Splitter::decode`], say [`Splitter::finish`] at the end.
///
/// A line that lies whole in the pushed bytes is lent out of them; only the unfinished tail is copied and held. The
/// results do not depend on how the stream was cut into pushes.
#[derive(Debug)]
pub struct Splitter {
    policy: LinePolicy,
    state: State,
    /// The line so far (`Inside`), the kept beginning of an over-long one (`Skipping`), or an item on loan (`Lent`).
    held: Vec<u8>,
    /// Bytes of the current over-long line seen so far.
    seen: u64,
    stream_start: bool,
}

/// What one push gave.
#[derive(Debug, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// How many of the pushed bytes were used. Push the rest again.
    pub consumed: usize,
    /// What was found; `None` means that all bytes were used and more are needed.
    pub item: Option<Item<'a>>,
}

/// Why a stream of lines cannot go on. Once given, the same answer is given for ever.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// A line is longer than the limit.
    #[error("line exceeds maximum size of {limit} bytes: {head}…")]
    TooLong {
        /// The limit, in bytes before the newline.
        limit: usize,
        /// Its beginning.
        head: Head,
    },
    /// A line is so much longer than the limit that waiting for its end was given up.
    #[error("line exceeds maximum size of {limit} bytes and did not end within {patience} bytes: {head}…")]
    Overrun {
        /// The limit, in bytes before the newline.
        limit: usize,
        /// How many bytes would have been thrown away patiently.
        patience: u64,
        /// Its beginning.
        head: Head,
    },
    /// The stream ended inside a line.
    #[error("stream ended inside a line, {held} bytes after the last newline: {head}")]
    Truncated {
        /// How many bytes of the line had arrived.
        held: usize,
        /// Its beginning.
        head: Head,
    },
    /// The content of a line is not acceptable.
    #[error("{defect}: {head}")]
    Defect {
        /// What is wrong with it.
        defect: Defect,
        /// Its beginning.
        head: Head,
    },
}

impl Splitter {
    /// A splitter at the start of a stream.
    #[must_use]
    pub fn new(policy: LinePolicy) -> Self {
        Self { policy, state: State::Between, held: Vec::new(), seen: 0, stream_start: true }
    }

    /// Looks for the next item in `input`.
    ///
    /// # Errors
    /// Whatever the policy calls fatal; the splitter is of no further use.
    #[inline]
    pub fn decode<'a>(&'a mut self, input: &'a [u8]) -> Result<Decoded<'a>, LineError> {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            let step = self.step(rest)?;
            consumed += step.consumed;
            match step.found {
                Some(found) => return Ok(Decoded { consumed, item: Some(self.lend(found, rest)?) }),
                None if consumed == input.len() => return Ok(Decoded { consumed, item: None }),
                // A line that is not delivered, such as a blank one.
                None => {}
            }
        }
    }

    /// Says that the stream has ended. `None` is a clean end; call again until it comes.
    ///
    /// # Errors
    /// Whatever the policy calls fatal about an unterminated last line.
    pub fn finish(&mut self) -> Result<Option<Item<'_>>, LineError> {
        match self.step_end()? {
            Some(found) => self.lend(found, &[]).map(Some),
            None => Ok(None),
        }
    }

    /// How many bytes are held, which is never more than the limit.
    #[must_use]
    pub fn held(&self) -> usize {
        match self.state {
            State::Inside | State::Skipping => self.held.len(),
            State::Between | State::Lent | State::Dead(_) => 0,
        }
    }

    /// How much memory the splitter owns.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.held.capacity()
    }

    /// Changes the limit, for example once a peer has proved who it is. Bytes already held are judged by the new one.
    pub fn set_limit(&mut self, limit: LineLimit) {
        self.policy.limit = limit;
    }

    /// Finds the next raw line or report; its content is not judged yet.
    #[inline(always)]
    pub(super) fn step(&mut self, input: &[u8]) -> Result<Step, LineError> {
        // Nearly every line begins and ends in one push; that path is worth inlining, the others are not.
        if let State::Between = self.state { self.between(input) } else { self.step_inside(input) }
    }

    #[inline(never)]
    fn step_inside(&mut self, input: &[u8]) -> Result<Step, LineError> {
        match &self.state {
            State::Between => self.between(input),
            State::Lent => {
                self.release();
                self.between(input)
            }
            State::Inside => self.inside(input),
            State::Skipping => self.skip(input),
            State::Dead(error) => Err(error.clone()),
        }
    }

    /// As `step`, at the end of the stream.
    pub(super) fn step_end(&mut self) -> Result<Option<Found>, LineError> {
        match &self.state {
            State::Between => Ok(None),
            State::Lent => {
                self.release();
                Ok(None)
            }
            State::Inside => self.end_inside(),
            State::Skipping => Ok(Some(self.end_overlong(Ending::StreamEnd))),
            State::Dead(error) => Err(error.clone()),
        }
    }

    /// Judges the content of what a step found and lends it out. A separate step, so that adapters can loop.
    #[inline(always)]
    pub(super) fn lend<'a>(&'a mut self, found: Found, input: &'a [u8]) -> Result<Item<'a>, LineError> {
        let Self { policy, state, held, .. } = self;
        let bytes = match found.place {
            Place::Input => &input[found.start..found.end],
            Place::Held => &held[found.start..found.end],
        };
        let line = |content| Item::Line(Line { content, ending: found.ending, dropped: found.dropped });
        let (fault, defect) = match found.kind {
            Kind::TooLong => {
                let limit = policy.limit.before_newline;
                return Ok(Item::TooLong(TooLong { limit, dropped: found.dropped, head: bytes }));
            }
            Kind::Line if policy.utf8 == Fault::Pass && policy.nul == Fault::Pass => {
                return Ok(line(Content::Bytes(bytes)));
            }
            Kind::Line => match judge(policy, bytes, found.dropped) {
                Ok(content) => return Ok(line(content)),
                Err(verdict) => verdict,
            },
            Kind::Marked(fault) => (fault, Defect::Bom),
        };
        match fault {
            Fault::Pass | Fault::Report => Ok(Item::Defective(Defective { defect, bytes })),
            Fault::Fatal => {
                let error = LineError::Defect { defect, head: Head::of(bytes) };
                *state = State::Dead(error.clone());
                Err(error)
            }
        }
    }

    #[inline(always)]
    fn between(&mut self, input: &[u8]) -> Result<Step, LineError> {
        let LineLimit { before_newline, at_end } = self.policy.limit;
        let window = &input[..input.len().min(at_end.saturating_add(1))];
        match memchr(b'\n', window) {
            Some(newline) if newline <= before_newline => {
                let found = self.line(Place::Input, &input[..newline], Ending::Newline);
                Ok(Step { consumed: newline + 1, found })
            }
            None if input.len() <= at_end => {
                if !input.is_empty() {
                    self.hold(input);
                }
                Ok(Step { consumed: input.len(), found: None })
            }
            Some(_) | None => self.overflow(input),
        }
    }

    fn inside(&mut self, input: &[u8]) -> Result<Step, LineError> {
        let LineLimit { before_newline, at_end } = self.policy.limit;
        let room = at_end.saturating_sub(self.held.len());
        let window = &input[..input.len().min(room.saturating_add(1))];
        match memchr(b'\n', window) {
            Some(newline) if self.held.len() + newline <= before_newline => {
                self.hold(&input[..newline]);
                Ok(Step { consumed: newline + 1, found: self.held_line(Ending::Newline) })
            }
            None if input.len() <= room => {
                self.hold(input);
                Ok(Step { consumed: input.len(), found: None })
            }
            Some(_) | None => self.overflow(input),
        }
    }

    /// The current line has just proved too long: its beginning is in `held`, the rest begins at `input`.
    #[cold]
    fn overflow(&mut self, input: &[u8]) -> Result<Step, LineError> {
        let limit = self.policy.limit.before_newline;
        let keep = match self.policy.overlong {
            Overlong::Cut => limit,
            Overlong::Fatal | Overlong::Skip(_) => limit.min(Head::BYTES),
        };
        self.seen = self.held.len() as u64;
        if self.held.len() < keep {
            let missing = keep - self.held.len();
            self.hold(&input[..missing.min(input.len())]);
        }
        self.held.truncate(keep);
        if self.policy.overlong == Overlong::Fatal {
            return Err(self.die(LineError::TooLong { limit, head: Head::of(&self.held) }));
        }
        self.state = State::Skipping;
        self.skip(input)
    }

    fn skip(&mut self, input: &[u8]) -> Result<Step, LineError> {
        let newline = memchr(b'\n', input);
        self.seen = self.seen.saturating_add(newline.unwrap_or(input.len()) as u64);
        if let Overlong::Skip(Patience::Bytes(patience)) = self.policy.overlong
            && self.seen > patience
        {
            let limit = self.policy.limit.before_newline;
            return Err(self.die(LineError::Overrun { limit, patience, head: Head::of(&self.held) }));
        }
        match newline {
            Some(newline) => {
                let found = self.end_overlong(Ending::Newline);
                Ok(Step { consumed: newline + 1, found: Some(found) })
            }
            None => Ok(Step { consumed: input.len(), found: None }),
        }
    }

    fn end_overlong(&mut self, ending: Ending) -> Found {
        let end = self.held.len();
        let whole =
            Found { place: Place::Held, start: 0, end, ending, dropped: self.seen, kind: Kind::TooLong };
        let found = match self.policy.overlong {
            Overlong::Cut => {
                let (start, kind) =
                    if self.stream_start { mark(self.policy.bom, &self.held) } else { (0, Kind::Line) };
                Found { start, dropped: self.seen - end as u64, kind, ..whole }
            }
            Overlong::Fatal | Overlong::Skip(_) => whole,
        };
        self.stream_start = false;
        self.state = State::Lent;
        found
    }

    fn end_inside(&mut self) -> Result<Option<Found>, LineError> {
        match self.policy.last_line {
            LastLine::Accept => Ok(self.held_line(Ending::StreamEnd)),
            LastLine::Refuse if self.policy.blank == Blank::Skip && is_blank(&self.held) => {
                self.release();
                Ok(None)
            }
            LastLine::Refuse => {
                let error = LineError::Truncated { held: self.held.len(), head: Head::of(&self.held) };
                Err(self.die(error))
            }
        }
    }

    fn held_line(&mut self, ending: Ending) -> Option<Found> {
        // Taken out and put back so that `line` can look at the bytes and at the policy at once; no copy is made.
        let held = std::mem::take(&mut self.held);
        let found = self.line(Place::Held, &held, ending);
        self.held = held;
        self.state = State::Lent;
        found
    }

    /// Trims a complete raw line as the policy says. `None` is a blank line that nobody wants.
    #[inline(always)]
    fn line(&mut self, place: Place, raw: &[u8], ending: Ending) -> Option<Found> {
        let raw = match raw {
            [line @ .., b'\r'] if self.policy.carriage_return == CarriageReturn::Strip => line,
            line => line,
        };
        let (start, kind) = if self.stream_start {
            self.stream_start = false;
            mark(self.policy.bom, raw)
        } else {
            (0, Kind::Line)
        };
        if self.policy.blank == Blank::Skip && is_blank(&raw[start..]) {
            return None;
        }
        Some(Found { place, start, end: raw.len(), ending, dropped: 0, kind })
    }

    /// Appends, growing by doubling but never past the limit, so that the limit bounds the memory and not just the data.
    #[inline(never)]
    fn hold(&mut self, bytes: &[u8]) {
        let needed = self.held.len() + bytes.len();
        if needed > self.held.capacity() {
            let target = needed.max((self.held.capacity() * 2).min(self.policy.limit.at_end));
            self.held.reserve_exact(target - self.held.len());
        }
        self.held.extend_from_slice(bytes);
        self.state = State::Inside;
    }

    fn release(&mut self) {
        self.held.clear();
        self.held.shrink_to(KEEP_CAPACITY);
        self.state = State::Between;
    }

    fn die(&mut self, error: LineError) -> LineError {
        self.held = Vec::new();
        self.state = State::Dead(error.clone());
        error
    }
}

/// Looks for a byte order mark in the first line of the stream: where the line starts, and what to make of it.
#[cold]
fn mark(bom: Bom, line: &[u8]) -> (usize, Kind) {
    match bom {
        _ if !line.starts_with(BOM) => (0, Kind::Line),
        Bom::Pass => (0, Kind::Line),
        Bom::Strip => (BOM.len(), Kind::Line),
        Bom::Report => (0, Kind::Marked(Fault::Report)),
        Bom::Fatal => (0, Kind::Marked(Fault::Fatal)),
    }
}

/// Checks the content of a line; the error says how seriously the policy takes what was found.
fn judge<'a>(policy: &LinePolicy, bytes: &'a [u8], dropped: u64) -> Result<Content<'a>, (Fault, Defect)> {
    if policy.nul != Fault::Pass
        && let Some(at) = memchr(0, bytes)
    {
        return Err((policy.nul, Defect::Nul { at }));
    }
    if policy.utf8 == Fault::Pass {
        return Ok(Content::Bytes(bytes));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Content::Text(text)),
        // Where we cut the line ourselves, a character cut in half is our doing: leave it out.
        Err(error) if dropped > 0 && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()])
                .map(Content::Text)
                .map_err(|error| (policy.utf8, Defect::NotUtf8 { at: error.valid_up_to() }))
        }
        Err(error) => Err((policy.utf8, Defect::NotUtf8 { at: error.valid_up_to() })),
    }
}

#[derive(Debug)]
enum State {
    /// At the start of a line, with nothing held.
    Between,
    /// As `Between`, but the last item still lies in `held`.
    Lent,
    /// Inside a line whose beginning is held.
    Inside,
    /// Inside a line that is too long, throwing away.
    Skipping,
    /// A fatal error was given.
    Dead(LineError),
}

pub(super) struct Step {
    pub(super) consumed: usize,
    pub(super) found: Option<Found>,
}

/// An item as offsets, so that finding it and lending it out are separate borrows.
pub(super) struct Found {
    place: Place,
    start: usize,
    end: usize,
    ending: Ending,
    dropped: u64,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Place {
    Input,
    Held,
}

#[derive(Clone, Copy)]
enum Kind {
    Line,
    TooLong,
    /// A line that begins with a byte order mark, and how seriously that is taken.
    Marked(Fault),
}
