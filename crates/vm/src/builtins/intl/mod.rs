//! `Intl` for American English: the options that `intl.js` has read and checked, as words, become the text room's.
//!
//! Each intrinsic takes words in a fixed order, so that nothing here reads a guest's object.

mod dates;
mod numbers;
mod words;

use super::{Args, Row};
use crate::exec::Window;
use crate::exec::object::array_push;
use crate::exec::state::{Res, State};
use crate::text::intl::Part;
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("FormatNumber", numbers::format),
    ("CurrencyDigits", numbers::currency_digits),
    ("IsKnownUnit", numbers::is_known_unit),
    ("SelectPlural", numbers::select_plural),
    ("FormatDate", dates::format),
    ("FormatRelative", words::format_relative),
    ("FormatList", words::format_list),
    ("CompareText", words::compare),
    ("IsLocale", words::is_locale),
];

/// A word among the arguments; empty for undefined.
fn word(st: &mut State, w: &Window, args: Args, n: u32) -> String {
    args.get(w, n).as_string().map(|s| st.string_text(s)).unwrap_or_default()
}

/// A small number among the arguments.
fn small(w: &Window, args: Args, n: u32) -> Option<u8> {
    args.get(w, n).as_int().and_then(|i| u8::try_from(i).ok())
}

/// Parts as a flat list of types and texts, or all of the text, as the first argument says.
fn answer(st: &mut State, w: &Window, args: Args, parts: &[Part], whole: impl FnOnce() -> String) -> Res {
    if args.get(w, 0) != Value::TRUE {
        let text = whole();
        return Ok(Value::string(st.heap.new_string(&text)?));
    }
    let list = st.heap.new_array(st.realm.array_shape, &[])?;
    for part in parts {
        let kind = Value::string(st.heap.new_string(part.kind)?);
        array_push(st, Value::array(list), kind)?;
        let text = Value::string(st.heap.new_string(&part.text)?);
        array_push(st, Value::array(list), text)?;
    }
    Ok(Value::array(list))
}
