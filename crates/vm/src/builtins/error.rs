//! Errors: the object with its traceback, and values as messages show them.

use super::{Args, Row};
use crate::exec::Window;
use crate::exec::state::{Res, State};
use crate::heap::Class;
use crate::value::{Unpacked, Value};

/// Bits of a BigInt that messages spell.
const LONG_BIGINT: u64 = 256;

pub(super) const ROWS: &[Row] =
    &[("MakeError", make_error), ("Traceback", traceback), ("Show", show), ("BuiltinTag", builtin_tag)];

/// `%MakeError(prototype, message?)`.
fn make_error(st: &mut State, w: &mut Window, args: Args) -> Res {
    let prototype = args.get(w, 0).as_object().unwrap_or(st.realm.error_prototypes[0]);
    let message = args.get(w, 1);
    st.make_error(prototype, message.is_string().then_some(message))
}

/// `%Traceback(error)`: what `stack` would be here.
fn traceback(st: &mut State, w: &mut Window, args: Args) -> Res {
    let text = st.traceback(args.get(w, 0));
    Ok(Value::string(st.heap.new_string(&text)?))
}

/// `%Show(v)`: the value as a message shows it. Runs no guest code.
fn show(st: &mut State, w: &mut Window, args: Args) -> Res {
    let v = args.get(w, 0);
    let text = st.show(v);
    Ok(Value::string(st.heap.new_string(&text)?))
}

/// `%BuiltinTag(o)`: what `Object.prototype.toString` says without a tag. An array is asked for before.
fn builtin_tag(st: &mut State, w: &mut Window, args: Args) -> Res {
    let v = args.get(w, 0);
    Ok(Value::string(st.heap.intern_str(st.builtin_tag(v))?))
}

impl State {
    /// The class of an object as `Object.prototype.toString` names it.
    pub(super) fn builtin_tag(&self, v: Value) -> &'static str {
        let Some(obj) = v.as_object() else { return "Object" };
        match self.heap.class(obj) {
            Class::Array => "Array",
            Class::Arguments => "Arguments",
            Class::Error => "Error",
            Class::Boolean => "Boolean",
            Class::Number => "Number",
            Class::String => "String",
            Class::Date => "Date",
            Class::RegExp => "RegExp",
            _ if self.heap.is_callable(v) => "Function",
            _ => "Object",
        }
    }

    /// A value as a message shows it.
    pub(crate) fn show(&mut self, v: Value) -> String {
        match v.unpack() {
            Unpacked::String(s) => self.short_text(s),
            Unpacked::Symbol(id) => {
                let text = self.heap.symbol_description(id).map(|s| self.short_text(s));
                format!("Symbol({})", text.unwrap_or_default())
            }
            Unpacked::Object(_) => match self.builtin_tag(v) {
                "Function" => "function".to_owned(),
                "Array" => "[object Array]".to_owned(),
                tag => format!("#<{tag}>"),
            },
            // Spelling a long one costs more than a message is worth.
            Unpacked::BigInt(id) if self.heap.bigint(id).bits() > LONG_BIGINT => "a BigInt".to_owned(),
            _ => self.describe(v),
        }
    }
}
