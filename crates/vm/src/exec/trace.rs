//! Tracebacks: which functions are active, and where.

use super::state::State;
use crate::value::Value;

/// Frames that a traceback shows at most.
const SHOWN: usize = 10;

impl State {
    /// `Name: message` and a line per frame, innermost first. Prelude functions are left out.
    pub(crate) fn traceback(&mut self, error: Value) -> String {
        let mut out = self.describe(error);
        let code = std::sync::Arc::clone(&self.code);
        let top = self.frames.len().wrapping_sub(1);
        let frames: Vec<(u32, u32)> = self
            .frames
            .iter()
            .enumerate()
            .rev()
            .map(|(i, f)| (f.func, if i == top { self.pc } else { f.pc }))
            .filter(|&(func, _)| !code.function(func).hidden)
            .take(SHOWN)
            .collect();
        for (func, pc) in frames {
            let f = code.function(func);
            let name = match f.name {
                Some(k) => self.constant_text(k),
                None => String::new(),
            };
            let name = if name.is_empty() { "<anonymous>".to_owned() } else { name };
            let (line, column) = code.line_column(func, f.position(pc.saturating_sub(1)));
            out.push_str(&format!("\n    at {name} ({line}:{column})"));
        }
        out
    }
}
