//! Where a run works: the root itself or a staged copy, and what changed there, as a patch.
//!
//! # Theory of operation
//!
//! **Staged** is the safe way: [`prepare`] copies the root into a private folder, the run works in the copy, [`finish`]
//! says what changed, and only [`apply`] touches the source, all of it or nothing. Five ideas carry that:
//!
//! * *Nobody follows a symlink.* Folders are opened one component at a time. A tree that is changed while it is read or
//!   written cannot lead us out of it.
//! * *Git sees a repository of ours.* It does what it is best at (ignore rules, differences, patches), with a repository
//!   folder outside the tree, so that no configuration, hook, filter or attribute of a tree has a say, nor its `.git`.
//! * *We decide what is recorded.* We walk, and tell git the files one by one. What a nested repository, a new ignore rule
//!   or an attribute would hide from `git add` is recorded all the same. New files that the rules *of the baseline* name
//!   are counted and not recorded.
//! * *Bytes are bytes*: no line endings, encodings or filters, names of any bytes, executable bits, symlinks.
//! * *A change is applied to what it was made for.* Every file of the source that would be touched must be as it was
//!   copied; if one is not, nothing is done and all of them are named.
//!
//! **In place** is the fast way: the run works in the root. There is no patch, only the texts for the receipt, and only if
//! the root is in a repository; they are made in the same careful way.
//!
//! What is not copied: `.git` at every depth, what the rules ignore (unless it is tracked), what the selection leaves out,
//! symlinks that lead out, sockets, pipes and devices. The last three are listed. What git does not know is not in a patch:
//! empty folders, times, and modes beyond the executable bit.
//!
//! [`finish`]: Prepared::finish
//! [`apply`]: Changes::apply

mod apply;
mod baseline;
mod beneath;
mod changes;
mod copy;
mod found;
mod git;
mod ignore;
mod in_place;
mod path;
mod prepare;
mod result;
mod scan;
mod stage;

pub use apply::{Applied, ApplyError, Conflict, Difference};
pub use changes::{ChangeKind, Changes, CutText, FileChange, LeftOut, Lines, Patch, Why};
pub use copy::CopyError;
pub use git::GitError;
pub use path::TreePath;
pub use prepare::{AgentRepository, Limits, Mode, PrepareError, Prepared, Request, Terms, prepare};
pub use result::FinishError;
pub use scan::{ScanError, SelectionError};
pub use stage::{
    Found, NotAStageName, Removal, StageError, StageFacts, StageName, StageState, Stages, Sweep, Swept,
};
