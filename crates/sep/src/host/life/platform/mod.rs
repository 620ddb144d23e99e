//! What a platform tells its host, who runs extensions on it, and a platform that only exists as a script.

mod script;
mod sim;

pub use script::{MAX_SCRIPT_ENTRIES, Script, ScriptError, ScriptTrouble};
pub use sim::SimPlatform;

use std::path::PathBuf;
use std::pin::Pin;

use crate::manifest::Manifest;
use crate::protocol::words::words;

/// The platform under a host, as far as extensions feel it.
pub trait Platform: Send {
    /// The next signal; `None` when there will be no more. Dropping the future loses no signal.
    fn next(&mut self) -> NextSignal<'_>;

    /// Who would run this extension here.
    fn runtime(&self, manifest: &Manifest) -> RuntimePlan;
}

/// A signal to come.
pub type NextSignal<'a> = Pin<Box<dyn Future<Output = Option<PlatformSignal>> + Send + 'a>>;

/// Who would run an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuntimePlan {
    /// Its own program, as its manifest says.
    OwnProgram,
    /// The runtime that is packaged with the host.
    Packaged {
        /// Where that is.
        program: PathBuf,
    },
    /// Nobody, and why; it is not tried again.
    Unavailable(String),
}

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
