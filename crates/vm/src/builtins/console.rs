//! The console and other capabilities of the host: how a granted name becomes something that guests can call.
//!
//! `console` always exists. Its methods are there only when the host grants `console.log`, `console.warn` or
//! `console.error`; calling one is an ordinary host call of that name whose answer nobody sees.

use crate::exec::HostCall;
use crate::exec::state::{Exit, State};
use crate::heap::{Found, Key};
use crate::value::Value;

/// The capabilities that are methods of `console`.
const CONSOLE: &[(&str, &str)] =
    &[("console.log", "log"), ("console.warn", "warn"), ("console.error", "error")];

impl State {
    /// Makes a capability of the host callable for the guest.
    pub(crate) fn grant(&mut self, name: &str) -> Result<(), Exit> {
        let function = self.new_capability(name)?;
        let global = self.realm.global;
        let Some((_, method)) = CONSOLE.iter().find(|(granted, _)| *granted == name) else {
            return self.set_hidden(global, name, function);
        };
        let console = self.heap.intern_str("console")?;
        let console = match self.heap.get(global, Key::atom(console)) {
            Found::Data(console) => console.as_object(),
            _ => None,
        };
        self.set_hidden(console.unwrap_or(global), method, function)
    }

    /// What the guest sees of the host's answer.
    pub(crate) fn seen_answer(&self, call: &HostCall, answer: Value) -> Value {
        let name = call.name.as_string().filter(|&s| self.heap.is_flat(s)).map(|s| self.heap.str(s));
        let silent = CONSOLE.iter().any(|(granted, _)| name.is_some_and(|name| name.is_ascii(granted)));
        if silent { Value::UNDEFINED } else { answer }
    }
}
