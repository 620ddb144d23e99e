//! The end that drives: lifecycle, channel, gate, events, panels, records.

mod boxing;
pub mod channel;
pub mod control;
mod dossier;
pub mod events;
mod fleet;
mod folders;
pub mod gate;
mod happening;
mod invoke;
pub mod life;
mod listening;
mod memory;
mod pace;
mod platform;
mod process;
pub mod record;
mod refusal;
mod shared;
mod steward;
pub mod ui;
mod view;

pub use fleet::{Begin, Fleet, FleetOptions};
pub use happening::{Happening, Scan};
pub use invoke::{CallError, Invoked};
pub use refusal::{AskError, FleetError};
pub use view::{Detail, Exit, HeardEvents, SessionView, Summary};
