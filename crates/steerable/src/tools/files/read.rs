//! `read_file`: some lines of a text.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use serde_json::json;
use serde_json::value::RawValue;

use super::beneath::{Need, locate};
use super::{Trouble, Wanted, off_thread};
use crate::chat::{BoxFuture, ToolResult, ToolSpec};
use crate::tools::arguments::Arguments;
use crate::tools::outcome::text;
use crate::tools::tool::{Mode, Place, Tool, Turns};
use crate::tools::toolbox::spec;

/// Lines of one answer, unless the call says otherwise.
const USUAL_LINES: u64 = 2000;

/// Bytes of one answer; a call that wants more lines than fit is told where to go on.
const MAX_BYTES: usize = 256 << 10;

/// Bytes of one line; a longer one is cut.
const MAX_LINE_BYTES: usize = 16 << 10;

/// Bytes that are looked through for the first line.
const MAX_SCAN: u64 = 1 << 30;

/// Bytes at the beginning that tell a text from something else.
const TELLING: usize = 8 << 10;

/// The tool.
pub(in crate::tools) struct ReadFile {
    spec: ToolSpec,
}

impl ReadFile {
    pub(in crate::tools) fn new() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1, "description": "The file: absolute, or from the first root."},
                "offset": {"type": "integer", "minimum": 1, "description": "The first line, from 1. Default: 1."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100_000, "description": "How many lines. Default: 2000."},
            },
            "required": ["path"],
            "additionalProperties": false,
        });
        let description =
            "Reads a text file, or some lines of it. A long answer is cut; it says at which line to go on.";
        Self { spec: spec("read_file", description, &parameters) }
    }
}

impl Tool for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn mode(&self) -> Mode {
        Mode::Read
    }

    fn turns(&self) -> Turns {
        Turns::Together
    }

    fn invoke<'a>(&'a self, arguments: &'a RawValue, at: &'a Place) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let arguments = match Arguments::read(&self.spec, arguments) {
                Ok(arguments) => arguments,
                Err(refused) => return refused,
            };
            let grants = at.grants.clone();
            let done = off_thread(move |wanted| {
                let spot = locate(&grants, Need::Read, arguments.string("path"))?;
                let opened = spot.open()?;
                let stat = rustix::fs::fstat(&opened).map_err(|error| spot.explain(error))?;
                spot.ordinary(&stat)?;
                let window = Window {
                    first: arguments.number("offset", 1).max(1),
                    lines: arguments.number("limit", USUAL_LINES),
                };
                read(File::from(opened), &spot.shown, window, wanted)
            });
            done.await.unwrap_or_else(|trouble| trouble.into_result(&self.spec.name, Mode::Read))
        })
    }
}

/// Which lines.
#[derive(Clone, Copy, Debug)]
struct Window {
    first: u64,
    lines: u64,
}

fn read(file: File, shown: &str, window: Window, wanted: &Wanted) -> Result<ToolResult, Trouble> {
    let failed = |error: std::io::Error| Trouble::Failed(format!("`{shown}`: {error}"));
    let mut file = BufReader::with_capacity(64 << 10, file.take(MAX_SCAN));
    let start = file.fill_buf().map_err(failed)?;
    if start[..start.len().min(TELLING)].contains(&0) {
        return Err(Trouble::Failed(format!("`{shown}` is not a text: it has NUL bytes in it")));
    }
    let mut number = 0u64;
    let mut taken = 0u64;
    let mut bytes: Vec<u8> = Vec::new();
    let mut line: Vec<u8> = Vec::new();
    let mut cut_lines = 0u64;
    let mut more = false;
    loop {
        if wanted.is_over() {
            return Err(Trouble::Failed("it was cancelled".to_owned()));
        }
        let dropped = match next_line(&mut file, &mut line).map_err(failed)? {
            None => break,
            Some(dropped) => dropped,
        };
        number += 1;
        if number < window.first {
            continue;
        }
        if taken == window.lines || bytes.len() + line.len() > MAX_BYTES {
            more = true;
            break;
        }
        bytes.append(&mut line);
        if dropped > 0 {
            cut_lines += 1;
            bytes.extend_from_slice(format!(" … ({dropped} more bytes in this line)\n").as_bytes());
        }
        taken += 1;
    }
    if taken == 0 && window.first > 1 {
        return Err(Trouble::Failed(format!(
            "`{shown}` has {number} lines; there is no line {}",
            window.first
        )));
    }
    let (content, notice) = match String::from_utf8(bytes) {
        Ok(content) => (content, None),
        Err(error) => (
            String::from_utf8_lossy(error.as_bytes()).into_owned(),
            Some("not all of it is UTF-8; \u{FFFD} stands for the rest"),
        ),
    };
    let last = window.first + taken.saturating_sub(1);
    let mut result = text(content).with("firstLine", window.first).with("lines", taken);
    let mut notices: Vec<String> = notice.map(str::to_owned).into_iter().collect();
    if more {
        result = result.with("nextOffset", last + 1);
        notices.push(format!("lines {} to {last}; go on with offset {}", window.first, last + 1));
    }
    if cut_lines > 0 {
        notices.push(format!("{cut_lines} lines are cut"));
    }
    result.message = (!notices.is_empty()).then(|| notices.join("; "));
    Ok(result)
}

/// Reads a line with its newline into `line`, as much as may be kept, and says how many bytes were not. `None` at the end.
fn next_line(file: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<Option<usize>> {
    line.clear();
    let mut dropped = 0;
    let mut any = false;
    loop {
        let buffer = file.fill_buf()?;
        if buffer.is_empty() {
            return Ok(any.then_some(dropped));
        }
        any = true;
        let (piece, ends) = match memchr::memchr(b'\n', buffer) {
            Some(at) => (&buffer[..=at], true),
            None => (buffer, false),
        };
        let kept = piece.len().min(MAX_LINE_BYTES.saturating_sub(line.len()));
        line.extend_from_slice(&piece[..kept]);
        dropped += piece.len() - kept;
        let used = piece.len();
        file.consume(used);
        if ends {
            return Ok(Some(dropped));
        }
    }
}
