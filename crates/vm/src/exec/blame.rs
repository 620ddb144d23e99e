//! Messages that name what the script says: `x.fo is not a function — did you mean `foo`?`

use super::Window;
use super::state::{Exit, State};
use crate::code::Op;
use crate::heap::{Key, Own};
use crate::value::{Unpacked, Value};
use std::sync::Arc;

/// Callees with a longer text are not quoted.
const QUOTED: usize = 40;
/// How far back the instruction that found a callee is looked for.
const LOOKED_BACK: u32 = 200;
/// Names that are compared with a wrong one.
const COMPARED: usize = 200;
/// What looking for the text costs, and what one comparison costs.
const LOOKING_COST: u64 = 32;
const COMPARING_COST: u64 = 16;

impl State {
    /// `w[a]` was called and is not a function.
    #[cold]
    pub(crate) fn not_callable(&mut self, w: &Window, a: u8) -> Exit {
        self.blame(w, a, "is not a function")
    }

    /// `w[a]` was used with `new` and is not a constructor.
    #[cold]
    pub(crate) fn not_a_constructor(&mut self, w: &Window, a: u8) -> Exit {
        self.blame(w, a, "is not a constructor")
    }

    fn blame(&mut self, w: &Window, a: u8, problem: &str) -> Exit {
        if let Err(exit) = self.burn(LOOKING_COST) {
            return exit;
        }
        let callee = w[a as usize];
        let (text, key) = self.callee_text(a);
        let text = text.unwrap_or_else(|| self.show(callee));
        let hint = match key.filter(|_| callee.is_undefined()) {
            Some(key) => match self.similar(w[a as usize + 1], key) {
                Ok(hint) => hint,
                Err(exit) => return exit,
            },
            None => None,
        };
        let hint = hint.map(|name| format!(" — did you mean `{name}`?")).unwrap_or_default();
        self.type_error(&format!("{text} {problem}{hint}"))
    }

    /// What the script calls here, and the key if it is a member.
    fn callee_text(&self, a: u8) -> (Option<String>, Option<Key>) {
        let code = Arc::clone(&self.code);
        let Some(func) = self.top().map(|f| f.func) else { return (None, None) };
        let f = code.function(func);
        let at = self.pc.wrapping_sub(1);
        let called = match code.op(func, at) {
            Op::Call(_, r, _) | Op::CallSpread(_, r) | Op::New(_, r, _) | Op::NewSpread(_, r) => r == a,
            _ => false,
        };
        if f.hidden || !called {
            return (None, None);
        }
        let start = f.position(at);
        let rest = code.text_from(func, start);
        let is_new = matches!(code.op(func, at), Op::New(..) | Op::NewSpread(..));
        for pc in (at.saturating_sub(LOOKED_BACK)..at).rev() {
            let key = match code.op(func, pc) {
                Op::GetMethod(d, _, s) if d == a && !is_new => self.sites.get(s as usize).map(|s| s.key),
                Op::GetElem(d, _, _) | Op::GetPrivate(d, _, _) if d == a && !is_new => None,
                Op::Call(d, _, _) if d == a => break,
                _ => continue,
            };
            let text = f.position(pc).checked_sub(start).and_then(|end| rest.get(..=end as usize));
            return (text.and_then(quotable), key);
        }
        let rest = if is_new { rest.strip_prefix("new").unwrap_or(rest).trim_start() } else { rest };
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
        let after = rest.get(end..).unwrap_or("");
        let alone = if is_new { !after.starts_with(['.', '[', '`']) } else { after.starts_with(['(', '`']) };
        let callee = rest.get(..end).filter(|_| alone);
        (callee.and_then(quotable), None)
    }

    /// A callable property of the value, or one on its prototypes, whose name is nearly the wrong one.
    fn similar(&mut self, receiver: Value, key: Key) -> Result<Option<String>, Exit> {
        let wrong = self.key_text(key);
        if wrong.chars().count() < 2 || wrong.len() > QUOTED {
            return Ok(None);
        }
        let mut at = match receiver.unpack() {
            Unpacked::Object(obj) => Some(obj),
            Unpacked::String(_) => Some(self.realm.string_prototype),
            Unpacked::Int(_) | Unpacked::Double(_) => Some(self.realm.number_prototype),
            _ => None,
        };
        let mut best: Option<(usize, String)> = None;
        let mut left = COMPARED;
        while let Some(obj) = at {
            let mut keys = Vec::new();
            if !self.heap.own_keys(obj, &mut keys) {
                break;
            }
            self.burn(keys.len() as u64 + 1)?;
            for key in
                keys.into_iter().filter(|k| k.as_symbol().is_none() && k.as_index().is_none()).take(left)
            {
                left -= 1;
                let callable = match self.heap.get_own(obj, key) {
                    Own::Data { value, .. } => self.heap.is_callable(value),
                    Own::Absent | Own::Accessor { .. } | Own::Exotic => false,
                };
                // A guest can make names as long as it likes: they are measured before they are read.
                let length = key.as_atom().map_or(usize::MAX, |s| self.heap.string_length(s) as usize);
                let allowed = 1 + wrong.len() / 4;
                if !callable || length.abs_diff(wrong.len()) > allowed {
                    continue;
                }
                self.burn(COMPARING_COST)?;
                let name = self.key_text(key);
                let distance = distance(&wrong, &name);
                if distance <= allowed && best.as_ref().is_none_or(|(d, _)| distance < *d) {
                    best = Some((distance, name));
                }
            }
            at = self.heap.prototype(obj).filter(|_| left > 0);
        }
        Ok(best.map(|(_, name)| name))
    }
}

fn quotable(text: &str) -> Option<String> {
    (text.len() <= QUOTED && !text.contains('\n') && !text.is_empty()).then(|| text.to_owned())
}

/// How many letters must be inserted, removed, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (above[j] + usize::from(x != y)).min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or(0)
}
