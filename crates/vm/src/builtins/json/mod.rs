//! `JSON`: reading and writing plain data in one go. What may run guest code (a reviver, a replacer, `toJSON`, getters,
//! proxies) is left to `json.js`.

mod parse;
mod stringify;

use super::{Args, Row, slow};
use crate::exec::Window;
use crate::exec::state::{Res, State};
use crate::heap::Str;
use crate::text::Text;
use crate::text::json::{quote, quote_cost};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("JSON.parse", |st, w, a| {
        let text = a.get(w, 0);
        if text.is_object() || st.heap.is_callable(a.get(w, 1)) {
            return slow();
        }
        let text = st.primitive_to_string(text)?;
        parse::parse(st, text)
    }),
    ("JSON.stringify", |st, w, a| {
        let (value, replacer, space) = (a.get(w, 0), a.get(w, 1), a.get(w, 2));
        if replacer.is_object() || space.is_object() {
            return slow();
        }
        let gap = gap(st, space)?;
        stringify::stringify(st, value, &gap)
    }),
    ("JSONParse", |st, w, a| match a.get(w, 0).as_string() {
        Some(text) => parse::parse(st, text),
        None => slow(),
    }),
    ("JSONQuote", json_quote),
    ("JSONGap", |st, w, a| {
        let gap = gap(st, a.get(w, 0))?;
        Ok(Value::string(st.heap.new_str(gap.as_str())?))
    }),
];

/// `%JSONQuote(text)`.
fn json_quote(st: &mut State, w: &mut Window, a: Args) -> Res {
    let Some(text) = a.get(w, 0).as_string() else { return slow() };
    st.burn(quote_cost(st.heap.string_length(text) as usize) / 16)?;
    let text = st.heap.text(text)?;
    let mut out = Text::with_capacity(text.len() + 2);
    quote(text, &mut out);
    Ok(Value::string(st.heap.new_str(out.as_str())?))
}

/// What each level is indented by, from a `space` that is a primitive: at most ten spaces or units.
fn gap(st: &mut State, space: Value) -> Result<Text, crate::exec::state::Exit> {
    const MOST: usize = 10;
    let mut gap = Text::with_capacity(MOST);
    if let Some(n) = space.as_number() {
        // A NaN becomes zero.
        let n = n.min(MOST as f64) as usize;
        gap.push_str(&" ".repeat(n));
    } else if let Some(text) = space.as_string() {
        let text: Str<'_> = st.heap.text(text)?;
        gap.push_text(text.slice(0, MOST));
    }
    Ok(gap)
}
