//! What a platform tells its host, and a platform that only exists as a script. What can be run on it is for the policy to say.

mod script;
mod sim;

pub use script::{MAX_SCRIPT_ENTRIES, Script, ScriptError, ScriptTrouble};
pub use sim::SimPlatform;

use std::pin::Pin;

use crate::protocol::words::words;

/// The platform under a host, as far as extensions feel it.
pub trait Platform: Send {
    /// The next signal; `None` when there will be no more. Dropping the future loses no signal.
    fn next(&mut self) -> NextSignal<'_>;
}

/// A signal to come.
pub type NextSignal<'a> = Pin<Box<dyn Future<Output = Option<PlatformSignal>> + Send + 'a>>;

/// Something that the platform did, or is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlatformSignal {
    /// The user looks at the host.
    Foreground,
    /// The user does something else.
    Background,
    /// Memory is short.
    TrimMemory(TrimLevel),
    /// Nothing of the host runs until it is thawed.
    Freeze,
    /// Everything runs again.
    Thaw,
    /// The process of this extension was taken.
    Reclaimed,
}

words! {
    /// How short memory is.
    TrimLevel ("trim level") {
        /// Some would help.
        Moderate = "moderate",
        /// More would help.
        Low = "low",
        /// Whoever is not seen should go.
        Critical = "critical",
    }
}
