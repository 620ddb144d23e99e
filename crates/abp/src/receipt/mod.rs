//! What a run leaves behind: written as it happens, hashed, chained, signed, and checked by anybody.
//!
//! # Theory of operation
//!
//! A [`Recorder`] spools each event to a file as it comes. When the run has ended it is sealed: what was observed, what the
//! child claims and what the control plane did become one receipt, whose hash covers all of it, whose `previous` names the
//! receipt before it in its [`Folder`], and which a [`SigningKey`] may sign. [`verify`] needs nothing but the file,
//! [`verify_chain`] nothing but the folder. Memory depends on the largest event, not on their number.

mod canonical;
mod chain;
mod claims;
mod diff;
mod folder;
mod head;
mod key;
mod record;
mod scan;
mod seal;
mod verify;

pub use canonical::{CanonicalError, MAX_MEMBERS, canonical};
pub use chain::{Break, Chain, MAX_RECEIPTS, verify_chain};
pub use claims::{CLOCK_TOLERANCE, Claim, MAX_CLAIMS, TraceClaim};
pub use diff::{Diff, DiffLimit, Difference, SHOWN, diff};
pub use folder::{Folder, SpoolLimit};
pub use head::{Meta, ReceiptHead, Signature, canonical_sha256};
pub use key::{KeyError, SigningKey};
pub use record::{RecordError, Recorder};
pub use scan::{MAX_PIECE, ScanError};
pub use seal::{Closing, Ending, Sealed};
pub use verify::{Check, HashState, MAX_PROBLEMS, Problem, SignatureState, VerifyError, verify};
