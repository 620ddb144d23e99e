//! The ready marker, looked for in what a sidecar writes to standard error.

use std::mem;

use outrigger_supervise::spec::{Spoken, Stream};
use outrigger_supervise::state::Incarnation;
use tokio::sync::{mpsc, watch};

use crate::protocol::{Health, READY_MARKER as MARKER};

/// The longest marker; a health has a few hundred bytes.
const LONGEST: usize = 64 * 1024;

/// What was found: a health, or what follows the marker instead.
pub(super) type Found = Result<Health, String>;

/// Looks for the marker of every process of a child, and goes on taking what it hears, so that nobody waits for us.
pub(super) async fn look(
    mut heard: mpsc::Receiver<Spoken>,
    found: watch::Sender<Option<(Incarnation, Found)>>,
) {
    let mut current = (Incarnation(0), Finder::new());
    while let Some(Spoken { incarnation, stream, bytes }) = heard.recv().await {
        if stream != Stream::Stderr {
            continue;
        }
        if current.0 != incarnation {
            current = (incarnation, Finder::new());
        }
        if let Some(health) = current.1.push(&bytes) {
            found.send_replace(Some((incarnation, health)));
        }
    }
}

/// Finds the first line that begins with the marker. Pure; it holds the beginning of one line and nothing else.
#[derive(Debug)]
struct Finder {
    state: State,
}

#[derive(Debug)]
enum State {
    /// In a line that can still be the one.
    Line(Vec<u8>),
    /// In a line that is not.
    Other,
    Found,
}

impl Finder {
    fn new() -> Self {
        Self { state: State::Line(Vec::new()) }
    }

    fn push(&mut self, bytes: &[u8]) -> Option<Found> {
        let mut rest = bytes;
        while let State::Line(_) | State::Other = self.state {
            let end = memchr::memchr(b'\n', rest);
            let (part, more) = match end {
                Some(at) => (&rest[..at], Some(&rest[at + 1..])),
                None => (rest, None),
            };
            if let State::Line(line) = &mut self.state {
                let room = (LONGEST + 1).saturating_sub(line.len());
                line.extend_from_slice(&part[..part.len().min(room)]);
                if !could_be(line) {
                    self.state = State::Other;
                }
            }
            let more = more?;
            if let State::Line(line) = &mut self.state
                && let Some(found) = judge(&mem::take(line))
            {
                self.state = State::Found;
                return Some(found);
            }
            self.state = State::Line(Vec::new());
            rest = more;
        }
        None
    }
}

fn could_be(line: &[u8]) -> bool {
    let marker = MARKER.as_bytes();
    if line.len() < marker.len() { marker.starts_with(line) } else { line.starts_with(marker) }
}

/// A whole line; `None` if it does not begin with the marker.
fn judge(line: &[u8]) -> Option<Found> {
    let json = line.strip_prefix(MARKER.as_bytes())?;
    if json.len() + MARKER.len() > LONGEST {
        return Some(Err(format!("more than {LONGEST} bytes")));
    }
    let shown = || outrigger_wire::line::Head::of(json).to_string();
    Some(serde_json::from_slice(json).map_err(|error| format!("{} ({error})", shown())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEALTH: &str = r#"{"status":"ok","version":"0.1.0","protocolVersion":"0.1.0","uptimeMs":1,"pid":7,"pythonVersion":"3.11.7","platform":"linux-x86_64","loadedTools":0,"activeTraces":0}"#;

    fn all_splits(text: &str) -> Vec<Option<Found>> {
        let bytes = text.as_bytes();
        (0..=bytes.len())
            .map(|at| {
                let mut finder = Finder::new();
                finder.push(&bytes[..at]).or_else(|| finder.push(&bytes[at..]))
            })
            .collect()
    }

    #[test]
    fn the_marker_is_found_between_other_lines_wherever_the_bytes_are_cut() {
        let text = format!("booting\n__SIDECAR_READ\n\n{MARKER}{HEALTH}\r\nmore\n");
        for found in all_splits(&text) {
            let health = found.unwrap().unwrap();
            assert_eq!((health.pid, health.python_version.as_deref()), (7, Some("3.11.7")));
        }
    }

    #[test]
    fn a_marker_that_does_not_begin_its_line_is_none_and_one_without_its_newline_not_yet() {
        for text in
            [format!(" {MARKER}{HEALTH}\n"), format!("x{MARKER}{HEALTH}\n"), format!("{MARKER}{HEALTH}")]
        {
            assert!(all_splits(&text).iter().all(Option::is_none), "{text}");
        }
    }

    #[test]
    fn a_marker_without_a_health_is_shown() {
        for found in all_splits(&format!("{MARKER}soon\n")) {
            assert!(found.unwrap().unwrap_err().contains("soon"));
        }
    }

    #[test]
    fn a_marker_may_be_long_but_not_endless() {
        let room = LONGEST - MARKER.len() - HEALTH.len();
        let padded = |blanks: usize| format!("{MARKER}{}{HEALTH}\n", " ".repeat(blanks));
        let mut finder = Finder::new();
        assert!(finder.push(padded(room).as_bytes()).unwrap().is_ok());
        let mut finder = Finder::new();
        for byte in padded(room + 1).as_bytes() {
            if let Some(found) = finder.push(std::slice::from_ref(byte)) {
                assert_eq!(found, Err(format!("more than {LONGEST} bytes")));
                return;
            }
        }
        panic!("nothing was found");
    }
}
