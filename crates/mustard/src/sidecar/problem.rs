//! Why a request cannot be fulfilled, and how that is said: one sentence that a guest may read, and parts for programs.
//!
//! `Kind: text [a..b]`, then `\n  at NAME [a..b]` for each function, innermost first; the numbers are bytes of the source. What
//! the protocol itself refuses is a bare sentence. Nothing here names paths, addresses or parts of the engine.

use outrigger_vm::boundary::{BoundaryError, ImportError, Plain};
use outrigger_vm::exec::{Limit, LoadError, Place as VmPlace, Report};
use outrigger_vm::heap::OverLimit;
use outrigger_vm::parse::{Diagnostic, DiagnosticKind};
use outrigger_vm::snapshot::{EnvelopeError, ProgramError, SnapshotError};

use crate::protocol::feature::{Feature, Features};
use crate::protocol::request::RequestError;
use crate::protocol::response::{Code, Detail, Failure, Kind, Place};
use crate::protocol::write::write_string;

/// Bytes of a thrown object that are shown, about.
const SKETCH: usize = 200;

/// Source lines that are longer are not quoted.
const LONGEST_LINE: usize = 500;

/// Why a request cannot be fulfilled.
#[derive(Debug)]
pub(super) struct Problem {
    detail: Box<Detail>,
    /// The bytes of the source that the first line names.
    span: Option<(u32, u32)>,
    /// Where it happened.
    places: Vec<VmPlace>,
    /// What the sentence says instead of the detail's message.
    first: Option<String>,
    /// All that is said, if that is more than the detail and the places.
    whole: Option<String>,
}

impl Problem {
    pub(super) fn new(kind: Kind, code: Code, message: impl Into<String>) -> Problem {
        let detail = Box::new(Detail {
            kind,
            code,
            message: message.into(),
            name: None,
            line: None,
            column: None,
            source_line: None,
            frames: Vec::new(),
            error_code: None,
            details: None,
        });
        Problem { detail, span: None, places: Vec::new(), first: None, whole: None }
    }

    /// The protocol refuses it.
    pub(super) fn protocol(code: Code, message: impl Into<String>) -> Problem {
        Problem::new(Kind::PROTOCOL, code, message)
    }

    /// The engine failed, not the script.
    pub(super) fn internal() -> Problem {
        Problem::new(Kind::RUNTIME, Code::INTERNAL, "internal error: the engine failed; this run is lost")
    }

    /// A limit of the run was hit while these functions were active.
    pub(super) fn limit(limit: Limit, places: Vec<VmPlace>) -> Problem {
        let (code, message) = match limit {
            Limit::Instructions => (Code::LIMIT_INSTRUCTIONS, "instruction budget exhausted"),
            Limit::CallDepth => (Code::LIMIT_CALL_DEPTH, "call depth limit exceeded"),
            Limit::HostCalls => (Code::LIMIT_HOST_CALLS, "outstanding host-call limit exhausted"),
            Limit::Heap(over) => heap_limit(over),
        };
        Problem::new(Kind::LIMIT, code, message).at(places)
    }

    /// The step took too long.
    pub(super) fn deadline(ms: u64, places: Vec<VmPlace>) -> Problem {
        let message = format!("deadline of {ms} ms exceeded");
        Problem::new(Kind::LIMIT, Code::LIMIT_DEADLINE, message).at(places)
    }

    /// An exception that nobody caught.
    pub(super) fn thrown(report: Report) -> Problem {
        let message = match report.name {
            Some(_) => report.headline(),
            // What is no error does not say that something is wrong.
            None => format!("Uncaught {}", report.message),
        };
        let mut problem = Problem::new(Kind::RUNTIME, Code::RUNTIME, message);
        if let Some(thrown) = &report.thrown {
            // The sentence is that of version 2, in which every object looks the same.
            let shown = format!("Uncaught {}", sketch(thrown));
            problem.first = Some(std::mem::replace(&mut problem.detail.message, shown));
        }
        problem.detail.name = report.name;
        problem.detail.error_code = report.code;
        problem.detail.details = report.plain_details.or(report.details.map(Plain::String));
        let whole_line = |line: &String| line.chars().count() < 100;
        problem.detail.source_line = report.line.map(|(line, _)| line).filter(whole_line);
        problem.at(report.places)
    }

    /// A value cannot leave the machine.
    pub(super) fn boundary(error: &BoundaryError) -> Problem {
        match error {
            BoundaryError::Limit(limit) => Problem::limit(*limit, Vec::new()),
            other => Problem::new(Kind::RUNTIME, Code::BOUNDARY, other.to_string()),
        }
    }

    /// A value cannot enter the machine.
    pub(super) fn import(error: &ImportError) -> Problem {
        match error {
            ImportError::Limit(limit) => Problem::limit(*limit, Vec::new()),
            other => Problem::new(Kind::RUNTIME, Code::BOUNDARY, other.to_string()),
        }
    }

    /// A source or a program cannot be loaded.
    pub(super) fn load(error: &LoadError, source: &str) -> Problem {
        match error {
            LoadError::Parse(diagnostics) => diagnosed(diagnostics, source),
            LoadError::Compile(error) => Problem::new(Kind::VALIDATION, Code::VALIDATION, error.to_string()),
            LoadError::Heap(over) => {
                let (code, message) = heap_limit(*over);
                Problem::new(Kind::LIMIT, code, message)
            }
            LoadError::Base => {
                let message = "the program was compiled to be loaded after other scripts";
                Problem::new(Kind::SERIALIZATION, Code::BAD_PROGRAM, message)
            }
            LoadError::TooLong => Problem::new(Kind::VALIDATION, Code::VALIDATION, error.to_string()),
            LoadError::Prelude { .. } => Problem::internal(),
        }
    }

    /// Bytes are not a program.
    pub(super) fn program(error: &ProgramError) -> Problem {
        match error {
            ProgramError::Envelope(envelope) => unsealed(envelope, "program", Code::BAD_PROGRAM),
            ProgramError::Invalid(_) | ProgramError::TooLarge => {
                Problem::new(Kind::SERIALIZATION, Code::BAD_PROGRAM, error.to_string())
            }
            ProgramError::Engine(_) => Problem::internal(),
        }
    }

    /// Bytes are not a machine, or not one within the limits.
    pub(super) fn snapshot(error: &SnapshotError) -> Problem {
        match error {
            SnapshotError::Envelope(envelope) => unsealed(envelope, "snapshot", Code::BAD_SNAPSHOT),
            SnapshotError::Invalid(_) => {
                Problem::new(Kind::SERIALIZATION, Code::BAD_SNAPSHOT, error.to_string())
            }
            SnapshotError::HeapLimit => {
                Problem::new(Kind::SERIALIZATION, Code::LIMIT_HEAP, error.to_string())
            }
            SnapshotError::CallDepth => Problem::limit(Limit::CallDepth, Vec::new()),
            SnapshotError::HostCalls => Problem::limit(Limit::HostCalls, Vec::new()),
            SnapshotError::Instructions => Problem::limit(Limit::Instructions, Vec::new()),
            SnapshotError::Engine(_) => Problem::internal(),
        }
    }

    /// A message that is no request, and whom to answer. `Err`: nobody can be answered.
    pub(super) fn request(error: RequestError) -> Result<(u64, Problem), String> {
        let message = error.to_string();
        match error {
            RequestError::Invalid(reason) => Err(reason),
            RequestError::Version { id, .. } => Ok((id, Problem::protocol(Code::VERSION, message))),
            RequestError::Shape { id, .. } => Ok((id, Problem::protocol(Code::SHAPE, message))),
            RequestError::Value { id, place, error } => {
                use crate::protocol::value::ValueError as E;
                let problem = match error {
                    E::TooDeep | E::Hole | E::HalfPair(_) => {
                        Problem::new(Kind::RUNTIME, Code::BOUNDARY, message)
                    }
                    E::Tag | E::Content { .. } => {
                        Problem::protocol(Code::SHAPE, format!("invalid request: `{place}`: {message}"))
                    }
                };
                Ok((id, problem))
            }
        }
    }

    /// Where it happened.
    fn at(mut self, places: Vec<VmPlace>) -> Problem {
        if let Some(first) = places.first() {
            self.span = Some(first.span);
            self.detail.line = Some(first.line.into());
            self.detail.column = Some(first.column.into());
        }
        self.detail.frames = places.iter().map(place).collect();
        self.places = places;
        self
    }

    /// As it goes over the wire.
    pub(super) fn failure(self, features: Features) -> Failure {
        let error = match self.whole {
            Some(whole) => whole,
            None if self.detail.kind == Kind::PROTOCOL => self.detail.message.clone(),
            None => {
                let first = self.first.as_ref().unwrap_or(&self.detail.message);
                let mut text = format!("{}: {first}", self.detail.kind);
                let bytes = |(from, to): (u32, u32)| format!(" [{from}..{to}]");
                text.push_str(&self.span.map(bytes).unwrap_or_default());
                for place in &self.places {
                    text.push_str("\n  at ");
                    text.push_str(shown_name(&place.function));
                    text.push_str(&bytes(place.span));
                }
                text
            }
        };
        Failure { error, detail: features.has(Feature::ErrorDetail).then_some(self.detail) }
    }
}

fn heap_limit(over: OverLimit) -> (Code, &'static str) {
    match over {
        OverLimit::Bytes { .. } => (Code::LIMIT_HEAP, "heap limit exceeded"),
        OverLimit::Records { .. } => (Code::LIMIT_ALLOCATIONS, "allocation budget exhausted"),
    }
}

fn unsealed(error: &EnvelopeError, what: &str, code: Code) -> Problem {
    let (code, message) = match error {
        EnvelopeError::Kind => (code, format!("these bytes are not a serialized {what}")),
        EnvelopeError::Version { expected, found } => {
            (code, format!("serialized {what} version mismatch: expected {expected}, got {found}"))
        }
        EnvelopeError::Engine { .. } => {
            (Code::WRONG_ENGINE, format!("serialized {what} was {error}; make it anew with this engine"))
        }
        EnvelopeError::Damaged => (code, format!("serialized {what} is {error}")),
    };
    Problem::new(Kind::SERIALIZATION, code, message)
}

/// One line a diagnostic; the detail is about the first.
fn diagnosed(diagnostics: &[Diagnostic], source: &str) -> Problem {
    let line = |d: &Diagnostic| match d.kind {
        DiagnosticKind::Parse => format!("Parse: {}", d.message),
        DiagnosticKind::Validation => {
            format!("Validation: {} [{}..{}]", in_dialect(d, source), d.span.start, d.span.end)
        }
    };
    let Some(first) = diagnostics.first() else { return Problem::internal() };
    let (kind, code) = match first.kind {
        DiagnosticKind::Parse => (Kind::PARSE, Code::PARSE),
        DiagnosticKind::Validation => (Kind::VALIDATION, Code::VALIDATION),
    };
    let mut problem = Problem::new(kind, code, in_dialect(first, source));
    problem.detail.line = Some(first.line.into());
    problem.detail.column = Some(first.column.into());
    problem.detail.source_line = source_line(source, first.span.start as usize);
    problem.whole = Some(diagnostics.iter().map(line).collect::<Vec<_>>().join("\n"));
    problem
}

/// What the engine refuses, in the words that hosts of this dialect look for.
fn in_dialect(diagnostic: &Diagnostic, source: &str) -> String {
    let message = &diagnostic.message;
    if let Some(name) = message.strip_suffix(" is not available in this environment") {
        return format!("free reference to forbidden ambient global {name}");
    }
    if message.ends_with("scripts have no modules") {
        let rest = source.get(diagnostic.span.start as usize..).unwrap_or_default();
        let follows = rest.strip_prefix("import").map_or("", str::trim_start);
        let words = match follows.as_bytes().first() {
            Some(b'(') => "dynamic import() is not supported",
            Some(b'.') => "meta properties are not supported",
            _ => "module syntax is not supported",
        };
        return words.to_owned();
    }
    message.clone()
}

/// The beginning of a value as JSON, with `…` for the rest.
fn sketch(value: &Plain) -> String {
    let mut out = Vec::new();
    draw(value, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

fn draw(value: &Plain, out: &mut Vec<u8>) {
    let between = |at: usize, out: &mut Vec<u8>| {
        if at > 0 {
            out.push(b',');
        }
        out.len() < SKETCH
    };
    match value {
        Plain::Undefined => out.extend(b"undefined"),
        Plain::Null | Plain::Hole => out.extend(b"null"),
        Plain::Bool(yes) => out.extend(yes.to_string().bytes()),
        Plain::Number(number) => out.extend(number.to_string().bytes()),
        Plain::String(text) => match text.char_indices().nth(SKETCH / 2) {
            Some((cut, _)) => write_string(&format!("{}…", &text[..cut]), out),
            None => write_string(text, out),
        },
        Plain::Array(elements) => {
            out.push(b'[');
            for (at, element) in elements.iter().enumerate() {
                if !between(at, out) {
                    out.extend("…".bytes());
                    break;
                }
                draw(element, out);
            }
            out.push(b']');
        }
        Plain::Object(members) => {
            out.push(b'{');
            for (at, (name, member)) in members.iter().enumerate() {
                if !between(at, out) {
                    out.extend("…".bytes());
                    break;
                }
                draw(&Plain::String(name.clone()), out);
                out.push(b':');
                draw(member, out);
            }
            out.push(b'}');
        }
    }
}

/// The line around a byte of the source, if it is short enough to be shown.
fn source_line(source: &str, at: usize) -> Option<String> {
    let ends = ['\n', '\r', '\u{2028}', '\u{2029}'];
    let before = source.get(..at)?;
    let from =
        before.rfind(ends).map_or(0, |end| end + before[end..].chars().next().map_or(1, char::len_utf8));
    let line = source.get(from..)?;
    let line = line.split(ends).next()?;
    (line.len() <= LONGEST_LINE).then(|| line.to_owned())
}

/// A place as it goes over the wire.
pub(super) fn place(place: &VmPlace) -> Place {
    Place {
        function: shown_name(&place.function).to_owned(),
        line: place.line.into(),
        column: place.column.into(),
    }
}

fn shown_name(function: &str) -> &str {
    if function.is_empty() { "<script>" } else { function }
}
