//! The last frames of a conversation, for whoever has to find out why two programs misunderstand each other. Off until somebody
//! asks; what people wrote and the token are left out unless they ask for that too.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outrigger_policy::Millis;
use serde::Serialize;

use crate::protocol::words::words;

/// How many frames are kept.
pub const MAX_FRAMES: usize = 1000;
/// How much of one frame is kept, in bytes.
pub const MAX_FRAME_BYTES: usize = 4096;

/// The members whose values are left out, at any depth.
const SECRET: [&str; 3] = ["content", "title", "token"];
/// What stands in their place.
const REDACTED: &str = "\"[redacted]\"";

words! {
    /// Whether frames are kept.
    TraceMode ("trace mode") {
        /// None are.
        Off = "off",
        /// They are, without what people wrote and without the token.
        Redacted = "redacted",
        /// They are, as they are. Whoever sets this writes it into the audit trail.
        Unredacted = "unredacted",
    }
}

words! {
    /// Which way a frame went.
    Way ("direction") {
        /// From the extension.
        FromExtension = "from_extension",
        /// To the extension.
        ToExtension = "to_extension",
    }
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TracedFrame {
    /// Its number, of both ways together.
    pub seq: u64,
    /// When, in milliseconds since the epoch.
    #[serde(rename = "timeMs")]
    pub time_ms: u64,
    /// Which way it went.
    pub way: Way,
    /// How many bytes it had.
    pub bytes: usize,
    /// Its text, without its newline.
    pub text: String,
    /// Whether the text was longer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// The last frames of one extension, both ways.
#[derive(Debug)]
pub struct Trace {
    mode: AtomicU8,
    ring: Mutex<Ring>,
}

#[derive(Debug)]
struct Ring {
    frames: VecDeque<TracedFrame>,
    seq: u64,
}

impl Trace {
    /// No frames yet.
    #[must_use]
    pub fn new(mode: TraceMode) -> Self {
        let ring = Ring { frames: VecDeque::new(), seq: 0 };
        Self { mode: AtomicU8::new(mode as u8), ring: Mutex::new(ring) }
    }

    /// Changes the mode. What is kept is forgotten: frames of one mode are not shown as those of another.
    pub fn set_mode(&self, mode: TraceMode) {
        let mut ring = self.lock();
        ring.frames = VecDeque::new();
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    /// The mode.
    #[must_use]
    pub fn mode(&self) -> TraceMode {
        let mode = self.mode.load(Ordering::Relaxed);
        TraceMode::ALL.get(usize::from(mode)).copied().unwrap_or(TraceMode::Off)
    }

    /// Keeps a frame. Costs one load while the trace is off.
    pub fn frame(&self, now: Millis, way: Way, frame: &[u8]) {
        let mode = self.mode();
        if mode == TraceMode::Off {
            return;
        }
        let frame = frame.strip_suffix(b"\n").unwrap_or(frame);
        let (text, cut) = match mode {
            TraceMode::Off => return,
            TraceMode::Redacted => redact(frame),
            TraceMode::Unredacted => {
                shorten(&String::from_utf8_lossy(&frame[..frame.len().min(4 * MAX_FRAME_BYTES)]))
            }
        };
        let cut = cut || (mode == TraceMode::Unredacted && frame.len() > 4 * MAX_FRAME_BYTES);
        let mut ring = self.lock();
        ring.seq += 1;
        if ring.frames.len() == MAX_FRAMES {
            ring.frames.pop_front();
        }
        let seq = ring.seq;
        ring.frames.push_back(TracedFrame { seq, time_ms: now.0, way, bytes: frame.len(), text, cut });
    }

    /// The frames after `seq`, oldest first; 0 gives all that are kept.
    #[must_use]
    pub fn after(&self, seq: u64) -> Vec<TracedFrame> {
        self.lock().frames.iter().filter(|frame| frame.seq > seq).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shorten(text: &str) -> (String, bool) {
    let end = text.floor_char_boundary(MAX_FRAME_BYTES);
    (text[..end].to_owned(), end < text.len())
}

/// A frame without its secrets, and whether it was cut. One that is no JSON is only measured: a token may stand anywhere in it.
fn redact(frame: &[u8]) -> (String, bool) {
    let unreadable = || (format!("[{} bytes that are not a JSON text]", frame.len()), false);
    let Ok(text) = str::from_utf8(frame) else { return unreadable() };
    let mut scan = Scan { text, at: 0, out: String::new(), depth: 0 };
    match scan.value() {
        Some(()) if scan.rest().trim_ascii_start().is_empty() => shorten(&scan.out),
        // The text goes on where enough of it is kept, and nobody looks whether it is JSON to its end.
        None if scan.out.len() > MAX_FRAME_BYTES => (shorten(&scan.out).0, true),
        Some(()) | None => unreadable(),
    }
}

/// Copies a JSON text up to the size that is kept, leaving out the values of secret members. It needs no more than to find where
/// strings and values end.
struct Scan<'a> {
    text: &'a str,
    at: usize,
    out: String,
    depth: usize,
}

/// Frames that are nested deeper are refused before they get anywhere.
const MAX_DEPTH: usize = 64;

impl<'a> Scan<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&mut self) -> Option<u8> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_ascii_start().len();
        self.rest().bytes().next()
    }

    /// Copies one value. `None` means that it is no JSON, or that enough is kept.
    fn value(&mut self) -> Option<()> {
        match self.peek()? {
            b'{' => self.members(),
            b'[' => self.items(),
            _ => {
                let scalar = self.scalar()?;
                self.put(scalar)
            }
        }
    }

    fn members(&mut self) -> Option<()> {
        self.open("{")?;
        if self.peek()? == b'}' {
            return self.close("}");
        }
        loop {
            if self.peek()? != b'"' {
                return None;
            }
            let name = self.scalar()?;
            self.put(name)?;
            self.token(b':')?;
            self.put(":")?;
            if is_secret(name) {
                let skipped = self.skip()?;
                // Whether there is anything says nothing about what it is.
                self.put(if skipped == "null" { "null" } else { REDACTED })?;
            } else {
                self.value()?;
            }
            match self.peek()? {
                b',' => {
                    self.token(b',')?;
                    self.put(",")?;
                }
                b'}' => return self.close("}"),
                _ => return None,
            }
        }
    }

    fn items(&mut self) -> Option<()> {
        self.open("[")?;
        if self.peek()? == b']' {
            return self.close("]");
        }
        loop {
            self.value()?;
            match self.peek()? {
                b',' => {
                    self.token(b',')?;
                    self.put(",")?;
                }
                b']' => return self.close("]"),
                _ => return None,
            }
        }
    }

    /// Steps over one value without copying it: brackets are counted, strings are stepped over.
    fn skip(&mut self) -> Option<&'a str> {
        self.peek()?;
        let begin = self.at;
        let mut open = 0usize;
        loop {
            match self.peek()? {
                b'{' | b'[' => {
                    open += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    open = open.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' if open > 0 => self.at += 1,
                _ => {
                    self.scalar()?;
                }
            }
            if open == 0 {
                return Some(&self.text[begin..self.at]);
            }
        }
    }

    /// A string, a number, `true`, `false` or `null`.
    fn scalar(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let length = match rest.as_bytes().first()? {
            b'"' => {
                let mut escaped = false;
                let end = rest.bytes().skip(1).position(|byte| match byte {
                    _ if escaped => {
                        escaped = false;
                        false
                    }
                    b'\\' => {
                        escaped = true;
                        false
                    }
                    other => other == b'"',
                })?;
                end + 2
            }
            _ => {
                let part_of_it =
                    |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
                let length = rest.bytes().position(|byte| !part_of_it(byte)).unwrap_or(rest.len());
                // A token without quotes is such a run, too.
                serde_json::from_str::<serde_json::Value>(&rest[..length]).ok()?;
                length
            }
        };
        if length == 0 {
            return None;
        }
        self.at += length;
        Some(&rest[..length])
    }

    fn token(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn open(&mut self, bracket: &str) -> Option<()> {
        self.depth += 1;
        self.at += 1;
        if self.depth > MAX_DEPTH { None } else { self.put(bracket) }
    }

    fn close(&mut self, bracket: &str) -> Option<()> {
        self.depth -= 1;
        self.at += 1;
        self.put(bracket)
    }

    /// Copies, and stops once there is more than is kept.
    fn put(&mut self, text: &str) -> Option<()> {
        let room = (MAX_FRAME_BYTES + 4).saturating_sub(self.out.len());
        self.out.push_str(&text[..text.floor_char_boundary(room)]);
        (self.out.len() <= MAX_FRAME_BYTES).then_some(())
    }
}

/// Whether a member, spelled with its quotes, is a secret one, however it is escaped.
fn is_secret(name: &str) -> bool {
    let plain = name.trim_matches('"');
    let read: Cow<'_, str> = match plain.contains('\\') {
        false => Cow::Borrowed(plain),
        true => Cow::Owned(serde_json::from_str(name).unwrap_or_default()),
    };
    SECRET.contains(&&*read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traced(mode: TraceMode, frame: &[u8]) -> (String, bool) {
        let trace = Trace::new(mode);
        trace.frame(Millis(5), Way::FromExtension, frame);
        let frame = trace.after(0).remove(0);
        (frame.text, frame.cut)
    }

    fn redacted(frame: &str) -> String {
        traced(TraceMode::Redacted, frame.as_bytes()).0
    }

    #[test]
    fn nothing_is_kept_while_it_is_off() {
        let trace = Trace::new(TraceMode::Off);
        trace.frame(Millis(1), Way::ToExtension, b"{}");
        assert_eq!(trace.after(0), []);
    }

    #[test]
    fn what_people_wrote_and_the_token_are_left_out_at_any_depth() {
        let frame = r#"{"id":1,"params":{"content":"a \" b","message":{"title":"t","content":[1,{"x":"}"}],"hash":"h"},"token":"9c"},"z":[{"content":null}]}"#;
        assert_eq!(
            redacted(frame),
            r#"{"id":1,"params":{"content":"[redacted]","message":{"title":"[redacted]","content":"[redacted]","hash":"h"},"token":"[redacted]"},"z":[{"content":null}]}"#
        );
        assert_eq!(redacted("{ \"tok\\u0065n\" : \"9c\" }\n"), r#"{"tok\u0065n":"[redacted]"}"#);
        assert_eq!(
            traced(TraceMode::Unredacted, b"{\"token\":\"9c\"}\n"),
            ("{\"token\":\"9c\"}".into(), false)
        );
    }

    #[test]
    fn what_is_not_json_is_only_measured() {
        for frame in [
            "{\"token\":\"9c\"",
            "9c 9c",
            "{\"a\":}",
            "\"",
            "{\"token\":[}",
            "{\"a\":1}x",
            "[1,",
            "",
            "9c9c",
            "{\"a\":9c9c}",
        ] {
            assert_eq!(
                redacted(frame),
                format!("[{} bytes that are not a JSON text]", frame.len()),
                "{frame}"
            );
        }
        assert_eq!(traced(TraceMode::Redacted, b"\xff").0, "[1 bytes that are not a JSON text]");
    }

    #[test]
    fn a_frame_is_kept_whole_at_the_limit_and_cut_one_past_it() {
        for mode in [TraceMode::Redacted, TraceMode::Unredacted] {
            let frame = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
            let (text, cut) = traced(mode, frame(MAX_FRAME_BYTES).as_bytes());
            assert_eq!((text.len(), cut), (MAX_FRAME_BYTES, false));
            let (text, cut) = traced(mode, frame(MAX_FRAME_BYTES + 1).as_bytes());
            assert_eq!((text.len(), cut), (MAX_FRAME_BYTES, true));
            let (text, cut) = traced(mode, format!("[{}\"é\"]", "\"é\",".repeat(500_000)).as_bytes());
            assert!(text.len() <= MAX_FRAME_BYTES && cut);
        }
        let deep = "[".repeat(1_000_000);
        assert_eq!(redacted(&deep), "[1000000 bytes that are not a JSON text]");
    }

    #[test]
    fn a_thousand_frames_are_kept_and_the_oldest_goes_first() {
        let trace = Trace::new(TraceMode::Redacted);
        for _ in 0..=MAX_FRAMES {
            trace.frame(Millis(1), Way::ToExtension, b"1");
        }
        let seqs: Vec<u64> = trace.after(0).iter().map(|frame| frame.seq).collect();
        assert_eq!((seqs.len(), seqs[0], seqs[999]), (1000, 2, 1001));
        assert_eq!(trace.after(1000).len(), 1);
        trace.set_mode(TraceMode::Unredacted);
        assert_eq!(trace.after(0), []);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_can_be_traced(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let (text, _) = traced(TraceMode::Redacted, &bytes);
            proptest::prop_assert!(text.len() <= MAX_FRAME_BYTES);
        }

        #[test]
        fn no_arrangement_of_json_lets_the_token_through(text in "[\\[\\]{}:,\" a\\\\]{0,20}", more in "[\\[\\]{}:,\" a\\\\]{0,20}") {
            for frame in [format!("{text}{{\"token\":\"SECRET\"}}{more}"), format!("{{\"token\":{text}\"SECRET\"{more}}}")] {
                if serde_json::from_str::<serde_json::Value>(&frame).is_ok() {
                    proptest::prop_assert!(!redacted(&frame).contains("SECRET"), "{}", frame);
                }
            }
        }
    }
}
