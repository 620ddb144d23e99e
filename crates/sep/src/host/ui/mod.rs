//! What extensions put in front of people: panels in fixed slots and short notices. An extension gives metadata, the host
//! draws. Nothing here runs code of an extension, and no text of one can hide, reorder or forge anything.
//!
//! The life of a panel follows the life of its extension:
//!
//! ```text
//! admit     the panels of the manifest are dormant
//! start     a session begins, which may register more
//! activate  they can be used
//! fail      all stay, unavailable, with a reason
//! sleep     those of the manifest are dormant again, the others go
//! withdraw  all go (disabled, removed, permission taken back)
//! ```

mod books;
mod invoke;
#[cfg(test)]
mod laws;
mod node;
mod notice;
mod panel;
mod registry;
mod render;
mod snapshot;
#[cfg(test)]
mod tests;
mod text;

pub use invoke::{ActionReport, BadReport, Busy, InvokeError, MAX_RESULT_BYTES, Outcome};
pub use node::{MAX_NODE_DEPTH, MAX_NODE_TEXT, MAX_NODES, Node, Row, Tone, check_nodes};
pub use notice::{
    Disturbance, MAX_NOTICES, Notice, Notices, Shown, ToastDraft, ToastFate, ToastLevel, USUAL_DURATION,
};
pub use panel::{
    Action, ActionStyle, ICONS, Input, InputKind, MAX_ACTIONS, MAX_INPUT_TEXT, MAX_ORDER, PanelDraft,
    PanelPatch, USUAL_ORDER, is_panel_id,
};
pub use registry::{Owner, Panels, RegisterError, UpdateError, Waking};
pub use render::render_text;
pub use snapshot::{BadPanelKey, PanelKey, PanelState, PanelView, Slots, UiSnapshot};
pub use text::{Flaw, MAX_FLAWS, clean, is_hidden};
