//! Symbols: making them and looking at them.

use super::{Args, Row};
use crate::exec::Window;
use crate::exec::state::{Exit, Res, State};
use crate::heap::{SymId, SymbolKind};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("NewSymbol", new_symbol),
    ("SymbolFor", symbol_for),
    ("SymbolKey", symbol_key),
    ("SymbolDescription", description),
];

/// `%NewSymbol(text?)`.
fn new_symbol(st: &mut State, w: &mut Window, args: Args) -> Res {
    let description = args.get(w, 0).as_string();
    Ok(Value::symbol(st.heap.new_symbol(SymbolKind::Unique, description)?))
}

/// `%SymbolFor(text)`: the registry's symbol.
fn symbol_for(st: &mut State, w: &mut Window, args: Args) -> Res {
    match args.get(w, 0).as_string() {
        Some(key) => Ok(Value::symbol(st.heap.symbol_for(key)?)),
        None => Err(st.type_error("the registry's keys are strings")),
    }
}

fn symbol(st: &mut State, w: &Window, args: Args) -> Result<SymId, Exit> {
    args.get(w, 0).as_symbol().ok_or_else(|| st.type_error("not a symbol"))
}

/// `%SymbolKey(s)`: the registry's key, or undefined.
fn symbol_key(st: &mut State, w: &mut Window, args: Args) -> Res {
    let id = symbol(st, w, args)?;
    if st.heap.symbol_kind(id) != SymbolKind::Registered {
        return Ok(Value::UNDEFINED);
    }
    Ok(st.heap.symbol_description(id).map_or(Value::UNDEFINED, Value::string))
}

/// `%SymbolDescription(s)`: a string, or undefined.
fn description(st: &mut State, w: &mut Window, args: Args) -> Res {
    let id = symbol(st, w, args)?;
    Ok(st.heap.symbol_description(id).map_or(Value::UNDEFINED, Value::string))
}
