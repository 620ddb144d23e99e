//! What a platform tells its host, and a platform that only exists as a script.

use crate::protocol::words::words;

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
