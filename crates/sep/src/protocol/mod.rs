//! The words of the contract: names that both ends use, and nothing that decides anything.

mod calls;
mod fault;
mod id;
mod limits;
mod method;
mod panel;
mod requests;
mod version;
mod word;
pub(crate) mod words;

pub use calls::{
    ActionCall, ActionOutcome, ActionResult, ActionToast, DeniedTopic, Dropped, EventCall, HealthAnswer,
    HealthCall, HealthStatus, Initialize, InitializeEvents, InitializeExtension, InitializePlatform,
    Initialized, LimitsJson, PlatformState, Program, SelfDescription, ShutdownCall,
};
pub use fault::{
    BadParam, Component, Fault, MAX_BAD_PARAMS, Outcome, ParseFault, Quota, RequestFault, Thing,
};
pub use id::{BadId, ExtensionId, SessionId};
pub use limits::Limits;
pub use method::{CANCEL, Entry, ExtensionMethod, Form, HostMethod, METHODS};
pub use panel::{
    Action, ActionStyle, ICONS, Input, InputKind, Node, PanelDraft, PanelPatch, Row, ToastFate, ToastLevel,
    Tone, UpdatePanel,
};
pub use requests::{
    Attach, AttachResult, AttachmentJson, Capabilities, CapabilitiesExtension, CapabilitiesPlatform,
    ContactJson, ContactPage, DeniedPermission, EventList, ListContacts, ListMessages, LogLevel, LogLine,
    MessageJson, MessagePage, PanelRegistered, PermissionList, SandboxJson, Sdk, SendMessage, SendResult,
    Toast, ToastResult, Topics, TopicsResult, UnregisterPanel,
};
pub use version::{BadVersion, V1_0, V1_1, Version};
pub use word::{
    DisabledReason, ExitKind, FailedReason, LaunchReason, Permission, Profile, ShutdownReason, Slot, State,
    TrustLevel,
};
pub use words::UnknownWord;
