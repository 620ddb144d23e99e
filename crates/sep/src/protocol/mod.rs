//! The words of the contract: names that both ends use, and nothing that decides anything.

mod id;
mod limits;
mod version;
mod word;
pub(crate) mod words;

pub use id::{BadId, ExtensionId, SessionId};
pub use limits::Limits;
pub use version::{BadVersion, V1_0, V1_1, Version};
pub use word::{
    DisabledReason, ExitKind, FailedReason, LaunchReason, Permission, Profile, ShutdownReason, Slot, State,
    TrustLevel,
};
pub use words::UnknownWord;
