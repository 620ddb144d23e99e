//! `encodeURI` and its siblings.

use super::string::{flat, primitives};
use super::{Args, Row};
use crate::exec::state::{Exit, Res, State};
use crate::exec::{Proto, Window};
use crate::heap::Str;
use crate::text::Text;
use crate::text::uri::{self, Scope, UriError};
use crate::value::Value;

macro_rules! rows {
    ($($qualified:literal $intrinsic:literal $f:expr,)*) => { &[$(($qualified, $f), ($intrinsic, $f)),*] };
}

/// Each function twice: for primitives, and for `uri.js` to call with a string.
pub(super) const ROWS: &[Row] = rows! {
    "global.encodeURI" "EncodeURI" |st, w, a| convert(st, w, a, |text| uri::encode(text, Scope::Uri)),
    "global.encodeURIComponent" "EncodeURIComponent" |st, w, a| {
        convert(st, w, a, |text| uri::encode(text, Scope::Component))
    },
    "global.decodeURI" "DecodeURI" |st, w, a| convert(st, w, a, |text| uri::decode(text, Scope::Uri)),
    "global.decodeURIComponent" "DecodeURIComponent" |st, w, a| {
        convert(st, w, a, |text| uri::decode(text, Scope::Component))
    },
    "global.escape" "Escape" |st, w, a| convert(st, w, a, |text| Ok(uri::escape(text))),
    "global.unescape" "Unescape" |st, w, a| convert(st, w, a, |text| Ok(uri::unescape(text))),
};

fn convert(st: &mut State, w: &Window, a: Args, f: fn(Str<'_>) -> Result<Text, UriError>) -> Res {
    primitives(w, a, 1)?;
    let text = flat(st, a.get(w, 0))?;
    let len = st.heap.string_length(text) as usize;
    st.burn(uri::cost(len))?;
    let most = longest(st.heap.str(text));
    super::string::room(st, most)?;
    match f(st.heap.str(text)) {
        Ok(text) => Ok(Value::string(st.heap.new_str(text.as_str())?)),
        Err(error) => {
            let message = st.heap.new_string(&error.to_string())?;
            let prototype = st.realm.proto(Proto::URIError);
            Err(Exit::Throw(st.make_error(prototype, Some(Value::string(message)))?))
        }
    }
}

/// How many units the result has at most.
fn longest(text: Str<'_>) -> usize {
    let each = |unit: u16| match unit {
        _ if u8::try_from(unit).is_ok_and(|b| b.is_ascii_alphanumeric()) => 1,
        0..0x80 => 3,
        0x80..0x800 | 0xD800..0xE000 => 6,
        _ => 9,
    };
    text.units().map(each).sum()
}
