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
//!
//! What is judged is what a child *says*. A child that neither asks nor tells the truth is held by its box alone.
//!
//! ```
//! use std::time::Duration;
//!
//! use outrigger_abp::govern::{Approver, Governor, Limits, Moment, OnDenied, Rules, Verdict};
//! use outrigger_abp::protocol::{AgentEvent, OrderId, RunId, Timestamp, WorkOrder};
//!
//! let mut order = WorkOrder::new(OrderId::random()?, "tidy up");
//! order.policy.deny_read.push("**/.env".to_owned());
//! let rules = Rules {
//!     run_id: RunId::random()?,
//!     subject: "agent".to_owned(),
//!     asks: Vec::new(),
//!     limits: Limits { turns: Some(20), ..Limits::none() },
//!     on_denied: OnDenied::End,
//!     approver: Approver::Nobody,
//! };
//! let mut governor = Governor::new(&order, &std::env::temp_dir(), rules, None)?;
//!
//! let now = Moment { since_start: Duration::ZERO, at: Timestamp::now() };
//! let event = AgentEvent::read(
//!     r#"{"ts":"2026-01-31T12:00:00Z","type":"tool_call","tool_name":"Read","input":{"file_path":"app/.env"}}"#,
//! )?;
//! let Verdict::End(reason) = governor.event(&now, &event) else { panic!("secrets are read") };
//! assert_eq!(
//!     reason.to_string(),
//!     "agent may not read `app/.env`: it is on the list of what is denied (deny_read has `**/.env`)"
//! );
//! assert_eq!(governor.account(None).decisions.denied, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
pub use governor::{COMMAND_TOOL, GovernError, Governor};
pub use tally::{Crossed, Limits};
pub use verdict::{Approver, Clock, Denial, EndReason, Moment, OnDenied, Rules, RunClock, Verdict};
