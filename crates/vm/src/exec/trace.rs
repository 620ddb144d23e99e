//! Tracebacks: which functions are active, and where.

use super::state::State;
use crate::heap::{Key, Own, StrId, atoms};
use crate::value::Value;

/// Frames that a traceback shows at most.
const SHOWN: usize = 10;

/// Names longer than this are left out.
const LONGEST_NAME: u32 = 200;

impl State {
    /// `Name: message` and a line per frame, innermost first. Prelude functions are left out.
    pub(crate) fn traceback(&mut self, error: Value) -> String {
        let mut out = self.describe(error);
        let code = std::sync::Arc::clone(&self.code);
        let top = self.frames.len().wrapping_sub(1);
        let frames: Vec<(u32, u32, Value)> = self
            .frames
            .iter()
            .enumerate()
            .rev()
            .map(|(i, f)| (f.func, if i == top { self.pc } else { f.pc }, f.callee))
            .filter(|&(func, ..)| !code.function(func).hidden)
            .take(SHOWN)
            .collect();
        for (func, pc, callee) in frames {
            let f = code.function(func);
            let name = match f.name {
                Some(k) => self.constant_text(k),
                None => self.own_name(callee),
            };
            let name = if name.is_empty() { "<anonymous>".to_owned() } else { name };
            let (line, column) = code.line_column(func, f.position(pc.saturating_sub(1)));
            out.push_str(&format!("\n    at {name} ({line}:{column})"));
        }
        out
    }

    /// The name that a method or a function expression was given by its place, if nobody has replaced it.
    fn own_name(&mut self, callee: Value) -> String {
        match callee.as_object().map(|f| self.heap.get_own(f, Key::atom(atoms::NAME))) {
            Some(Own::Data { value, .. }) => value.as_string().map(|s| self.short_text(s)).unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// The beginning of a name: a guest can make it as long as it likes.
    fn short_text(&mut self, s: StrId) -> String {
        if self.heap.string_length(s) > LONGEST_NAME { String::new() } else { self.string_text(s) }
    }
}
