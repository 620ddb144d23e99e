//! What a run may do and spend: every reported action is judged, every budget counted, approvals asked for.
//!
//! # Theory of operation
//!
//! A [`Governor`] is fed with every event of a run and with every question that the child asks before it acts. It says
//! what is to be done: nothing, warn, ask a person, answer, or end the run.
//!
//! * A **call** is judged by its tool and by what its input reaches for: members that name files ([`names`] has the
//!   tables, [`reach`] reads the input), followed through links to where they lead ([`place`]), and members that name
//!   addresses ([`address`]). The most severe answer counts. Commands of shells are not taken apart: the tool decides.
//! * A `command_executed` that no reported call of a shell announced is judged as a call of `Bash`.
//! * What a child *asks* for and may not do is answered with no, and the run goes on. What a child only *reports* and may
//!   not do ends the run, because it may have happened. A child that promises to ask and reports a denied call is ended when
//!   the call's result shows that it was made.
//! * Where the policy wants a person, an [`ApprovalRequest`] is raised, once a call. It is written to a [`Ledger`], which
//!   other processes may answer, and has a deadline and a default.
//! * A [`tally`] counts what is spent and never goes down. The first limit that is crossed ends the run.
//! * The [`Account`] says all of it for the receipt, and what a denial was worth: `enforced` or only `observed`.
//!   [`boxing`] plans a box that enforces as much as the kernel can.

pub mod account;
pub mod address;
pub mod approvals;
pub mod boxing;
mod calls;
mod complaint;
pub mod desk;
pub mod governor;
pub mod judge;
pub mod names;
pub mod place;
pub mod reach;
pub mod tally;
pub mod verdict;

pub use account::{Account, Boxed, Enforcement, Worth};
pub use approvals::{AnswerError, Answered, ApprovalId, ApprovalRequest, Choice, Ledger, LedgerError};
pub use boxing::{BoxPlan, Extras, default_profile};
pub use governor::{GovernError, Governor};
pub use tally::{Crossed, Limits};
pub use verdict::{Approver, Clock, Denial, EndReason, Moment, OnDenied, Rules, RunClock, Verdict};
