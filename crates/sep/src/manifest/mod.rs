//! What is on disk, and what of it is believed: strict reading, the schema, the semantic rules, trust, signatures.

mod model;

pub use model::{
    Android, Compatibility, Entrypoint, Health, Manifest, PanelClaim, RequestLimits, RuntimeMode, Signing,
};
