//! May X do Y? Capabilities, grants, budgets and an audit trail; every answer carries its reason.
//!
//! # Theory of operation
//!
//! Everything here is a value. There is no clock, no file, no thread: whoever asks brings the time and the bytes,
//! and gets an answer that depends on nothing else. So each rule is tested by a table, and the same question always
//! has the same answer.
//!
//! * A **[`Decision`]** is allow, ask or deny with a stable [`Reason`], the rule that decided, who asked and for
//!   what. The reason determines the verdict. When several rules speak, deny beats ask and ask beats allow.
//! * **[`Grants`]** are an intersection: declared ∩ operator ∩ ceiling ∩ profile, less what was revoked. What is
//!   absent or cannot be read grants nothing.
//! * A **[`Policy`]** is the profile that travels with a work order, compiled: tools, files and hosts, by globs that
//!   no pattern can make slow, on paths and hosts that have one spelling.
//! * **[`Budgets`]** refuse before the spend; a [`Bucket`] limits a rate.
//! * The **[`audit`]** trail is canonical JSON, each line naming the hash of the one before it.
//!
//! ```
//! use outrigger_policy::{Capability, Grants, Layer, LayerLists, Subject, Verdict, Voice};
//!
//! let read = Capability::new("messages.read")?;
//! let send = Capability::new("messages.send")?;
//! let operator = LayerLists { allow: vec!["messages.*".into()], ..LayerLists::default() };
//!
//! let mut grants = Grants::new(
//!     Subject::new("org.example.notes"),
//!     vec![Layer::only(Voice::Declared, [&read]), Layer::new(Voice::Operator, &operator)?],
//! );
//! assert_eq!(grants.decide(&read).verdict, Verdict::Allow);
//! assert_eq!(
//!     grants.decide(&send).explain(),
//!     "org.example.notes may not use `messages.send`: it was never declared (declared)"
//! );
//!
//! grants.revoke(read.clone());
//! assert_eq!(grants.decide(&read).reason.code(), "revoked");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod audit;
pub mod budget;
pub mod canonical;
pub mod decision;
mod digest;
pub mod glob;
pub mod grant;
pub mod host;
pub mod money;
pub mod name;
pub mod path;
pub mod profile;
pub mod rate;

pub use budget::{Balance, Budgets, Exhausted, Reservation, Resource, Settled};
pub use decision::{Action, Decision, Reason, Rule, Verdict};
pub use digest::{Digest, DigestError};
pub use glob::{Glob, GlobError, Reading};
pub use grant::{Grants, Layer, LayerError, LayerLists, Voice};
pub use host::{Host, HostError, HostPattern, UnknownPort};
pub use money::{Micros, MoneyError, Round};
pub use name::{Capability, CapabilityError, Subject};
pub use path::{InsidePath, PathError};
pub use profile::{Policy, PolicyProfile, ProfileError};
pub use rate::{Bucket, Limited, Millis, Rate};
