//! The tools for files. All of them open below a granted root and nowhere else.

mod beneath;
mod edit;
mod list;
mod nearest;
mod read;
mod search;
mod walk;
mod write;

pub(super) use beneath::{Need, locate, real_path};
pub(super) use edit::EditFile;
pub(super) use list::ListFiles;
pub(super) use read::ReadFile;
pub(super) use search::SearchFiles;
pub(super) use write::WriteFile;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::outcome::denied;
use super::tool::Mode;
use crate::chat::ToolResult;

/// Why something was not done with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It is beyond the grants.
    Denied(String),
    /// It did not work, and the model may know better now.
    Failed(String),
}

impl Trouble {
    pub(super) fn into_result(self, tool: &str, mode: Mode) -> ToolResult {
        match self {
            Self::Denied(reason) => denied(tool, mode, reason),
            Self::Failed(error) => ToolResult::failure(error),
        }
    }
}

/// Whether work on another thread is still wanted.
#[derive(Clone, Debug)]
struct Wanted(Arc<AtomicBool>);

impl Wanted {
    fn is_over(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

/// Says that the work is not wanted any more when the call is dropped.
struct Wish(Wanted);

impl Drop for Wish {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

/// Does file work on a thread that may wait for a disk. Dropping the future tells the work to end at its next step.
async fn off_thread(
    work: impl FnOnce(&Wanted) -> Result<ToolResult, Trouble> + Send + 'static,
) -> Result<ToolResult, Trouble> {
    let wanted = Wanted(Arc::new(AtomicBool::new(true)));
    let wish = Wish(wanted.clone());
    let done = tokio::task::spawn_blocking(move || work(&wanted)).await;
    drop(wish);
    done.unwrap_or_else(|error| Err(Trouble::Failed(format!("the tool broke down: {error}"))))
}
