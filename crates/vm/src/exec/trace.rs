//! Tracebacks: which functions are active, and where; and what an uncaught exception looks like to a person.

use super::code_table::Code;
use super::state::State;
use crate::boundary::Plain;
use crate::heap::{Class, Found, Key, ObjId, Own, atoms};
use crate::value::Value;
use std::fmt;
use std::sync::Arc;

/// Frames that a traceback shows at most.
const SHOWN: usize = 10;

/// Names longer than this are left out.
const LONGEST_NAME: u32 = 200;

/// Elements of an array among the details of an error that are shown.
const SHOWN_ELEMENTS: usize = 100;

/// Lines longer than this are cut around the place that matters.
const SHOWN_COLUMNS: usize = 100;

/// A place in a script where a function was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The function's name; empty for one without, and for the script itself.
    pub function: String,
    /// The byte range of the function in the source.
    pub span: (u32, u32),
    /// The byte offset in the source.
    pub offset: u32,
    /// The line, from 1.
    pub line: u32,
    /// The column in UTF-16 units, from 1.
    pub column: u32,
}

/// An exception that nobody caught, for people: its text, where it comes from, and the line there.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// `Name: message`, or the text of whatever was thrown.
    pub message: String,
    /// What was thrown, if it is no error but a plain object or an array.
    pub thrown: Option<Plain>,
    /// The error's `name`, if it is an error.
    pub name: Option<String>,
    /// Its own `code`, if that is text.
    pub code: Option<String>,
    /// Its own `details` as text.
    pub details: Option<String>,
    /// Its own `details` as they are, if they are plain data.
    pub plain_details: Option<Plain>,
    /// Innermost first. Of a value that is no error only the place where it was thrown is known.
    pub places: Vec<Place>,
    /// The source line of the first place, cut if it is long, and how many characters are before the place.
    pub line: Option<(String, usize)>,
}

impl Report {
    /// The message with the code and the details of an error that came from the host.
    pub fn headline(&self) -> String {
        let mut line = self.message.clone();
        for (what, text) in [("code", &self.code), ("details", &self.details)] {
            if let Some(text) = text {
                line.push_str(&format!(" [{what}={text}]"));
            }
        }
        line
    }

    /// The bytes of the innermost function, in the source.
    pub fn span(&self) -> Option<(u32, u32)> {
        self.places.first().map(|place| place.span)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        if let (Some((text, before)), Some(place)) = (&self.line, self.places.first()) {
            let number = place.line.to_string();
            write!(f, "\n{number} | {text}\n{:pad$} | {:before$}^", "", "", pad = number.len())?;
        }
        for place in &self.places {
            let name = if place.function.is_empty() { "<anonymous>" } else { &place.function };
            write!(f, "\n    at {name} ({}:{})", place.line, place.column)?;
        }
        Ok(())
    }
}

/// An active frame.
#[derive(Clone, Copy)]
struct Active {
    func: u32,
    offset: u32,
    callee: Value,
}

impl State {
    /// `Name: message` and a line per frame, innermost first. Prelude functions are left out.
    pub(crate) fn traceback(&mut self, error: Value) -> String {
        let message = self.describe(error);
        let code = Arc::clone(&self.code);
        let places = self.active(&code).map(|at| self.place(&code, at)).collect();
        Particulars::NONE.report(message, None, places, None).to_string()
    }

    /// Function and source offset of the active frames, as the fields of an error object.
    pub(crate) fn active_places(&self) -> Vec<Value> {
        let code = Arc::clone(&self.code);
        let pair = |at: Active| [at.func, at.offset].map(|n| Value::int(n as i32));
        self.active(&code).flat_map(pair).collect()
    }

    /// Where the active functions stand, innermost first.
    pub(crate) fn places(&self) -> Vec<Place> {
        let code = Arc::clone(&self.code);
        self.active(&code).map(|at| self.place(&code, at)).collect()
    }

    fn active<'a>(&'a self, code: &'a Code) -> impl Iterator<Item = Active> + 'a {
        let top = self.frames.len().wrapping_sub(1);
        let frames = self.frames.iter().enumerate().rev();
        frames.filter(|(_, f)| !code.function(f.func).hidden).take(SHOWN).map(move |(i, f)| {
            let pc = if i == top { self.pc } else { f.pc };
            let offset = code.function(f.func).position(pc.saturating_sub(1));
            Active { func: f.func, offset, callee: f.callee }
        })
    }

    fn place(&self, code: &Code, Active { func, offset, callee }: Active) -> Place {
        let f = code.function(func);
        let function = match f.name {
            Some(k) => self.constant_text_of(k),
            None => self.own_name(callee),
        };
        let (line, column) = code.line_column(func, offset);
        Place { function, span: f.span, offset, line, column }
    }

    /// The name that a method or a function expression was given by its place, if nobody has replaced it.
    fn own_name(&self, callee: Value) -> String {
        let own = callee.as_object().map(|f| self.heap.get_own(f, Key::atom(atoms::NAME)));
        let Some(Own::Data { value, .. }) = own else { return String::new() };
        // A guest can make a name as long as it likes.
        let Some(s) = value.as_string().filter(|&s| self.heap.string_length(s) <= LONGEST_NAME) else {
            return String::new();
        };
        let mut out = String::new();
        self.heap.each_part(s, |part| out.push_str(&part.to_string_lossy()));
        out
    }

    /// What a person should see of an exception.
    pub(crate) fn report(&mut self, thrown: Value) -> Report {
        let code = Arc::clone(&self.code);
        let message = self.describe(thrown);
        let record = thrown.as_object().filter(|&o| self.heap.class(o) == Class::Error);
        let fields =
            record.and_then(|o| self.heap.slots_of(o)).map(|s| self.heap.slots(s)).unwrap_or_default();
        let mut known: Vec<(u32, u32)> = fields
            .chunks_exact(2)
            .filter_map(|pair| Some((pair[0].as_int()? as u32, pair[1].as_int()? as u32)))
            .collect();
        if known.is_empty() {
            known.extend(self.thrown);
        }
        known.retain(|&(func, _)| func < code.len());
        let line = known.first().and_then(|&(func, offset)| code.line_at(func, offset)).map(shorten);
        let active = |(func, offset)| Active { func, offset, callee: Value::UNDEFINED };
        let places = known.into_iter().map(|at| self.place(&code, active(at))).collect();
        let particulars = record.map_or(Particulars::NONE, |error| self.particulars(error));
        let data = thrown.is_object() && record.is_none();
        let thrown = if data { self.plain_data(thrown) } else { None };
        particulars.report(message, thrown, places, line)
    }
}

/// What an error has of its own.
struct Particulars {
    name: Option<String>,
    code: Option<String>,
    details: Option<String>,
    plain_details: Option<Plain>,
}

impl Particulars {
    const NONE: Self = Self { name: None, code: None, details: None, plain_details: None };

    fn report(
        self,
        message: String,
        thrown: Option<Plain>,
        places: Vec<Place>,
        line: Option<(String, usize)>,
    ) -> Report {
        let Self { name, code, details, plain_details } = self;
        Report { message, thrown, name, code, details, plain_details, places, line }
    }
}

impl State {
    /// Name, code and details of an error, as far as they can be had without running guest code.
    fn particulars(&mut self, error: ObjId) -> Particulars {
        let name = match self.heap.get(error, Key::atom(atoms::NAME)) {
            Found::Data(name) if name.is_string() => Some(self.primitive_text(name)),
            _ => None,
        };
        let code = self.own_data(error, "code").filter(|v| v.is_string()).map(|v| self.coerced(v));
        let details = self.own_data(error, "details").filter(|v| !v.is_undefined());
        let plain_details = details.and_then(|v| self.plain_data(v));
        Particulars { name, code, details: details.map(|v| self.coerced(v)), plain_details }
    }

    /// The value of an own property that has one.
    fn own_data(&self, object: ObjId, name: &str) -> Option<Value> {
        match self.heap.get_own(object, self.heap.known_key(name)?) {
            Own::Data { value, .. } => Some(value),
            _ => None,
        }
    }

    /// What `String(value)` says of plain data, without running guest code.
    fn coerced(&mut self, value: Value) -> String {
        let Some(object) = value.as_object() else { return self.primitive_text(value) };
        let Some(elements) = self.heap.packed(object) else { return "[object Object]".to_owned() };
        let elements: Vec<Value> = elements.iter().take(SHOWN_ELEMENTS).copied().collect();
        // Elements are shown short: they may all be the same long text.
        elements.iter().map(|&v| self.show(v)).collect::<Vec<_>>().join(",")
    }
}

/// Cuts a long line around the place that matters.
fn shorten((line, before): (&str, usize)) -> (String, usize) {
    // Tabs would put the mark in the wrong column.
    let units: Vec<char> = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let from = if units.len() <= SHOWN_COLUMNS { 0 } else { before.saturating_sub(SHOWN_COLUMNS / 2) };
    let to = units.len().min(from + SHOWN_COLUMNS);
    (units.get(from..to).unwrap_or_default().iter().collect(), before - from)
}
