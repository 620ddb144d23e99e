//! The console and other capabilities of the host: how a granted name becomes something that guests can call.
//!
//! `console` always exists. Its methods are there only when the host grants `console.log`, `console.warn` or
//! `console.error`; calling one is an ordinary host call of that name whose answer nobody sees.

use crate::exec::HostCall;
use crate::exec::state::{Exit, State};
use crate::heap::{Found, Key};

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

    /// Whether the guest sees nothing of the host's answer.
    pub(crate) fn answers_nothing(&mut self, call: &HostCall) -> bool {
        let name = call.name.as_string().map(|s| self.string_text(s)).unwrap_or_default();
        CONSOLE.iter().any(|(granted, _)| *granted == name)
    }
}
