//! After a daemon that was killed: the receipt that was made of what an attempt recorded says how the attempt had ended.

use std::path::Path;

use outrigger_abp::protocol::RunId;
use outrigger_abp::receipt::{Ending, Folder, HashState, verify};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::attend::GOING_DOWN;
use super::ending::{self, Retry};
use crate::runs::state::Receipt;
use crate::runs::{LeftBehind, LeftEnd, Phase};

/// What the receipt of an attempt says that was sealed after its host was killed.
const KILLED: &str = "the host was killed during the run";

/// The longest receipt whose events are put into the log.
const MAX_RECEIPT: u64 = 64 << 20;

/// What an attempt left in the folder that nobody has written the end of: its receipt, and how it had ended if it had. An
/// attempt that was cut by the end of its daemon, be it killed or told to leave, had not.
pub(crate) fn left_behind(folder: &Folder, id: &str) -> Option<LeftBehind> {
    let path = folder.receipt(&RunId::new(id));
    let check = verify(&path).ok()?;
    let HashState::Ok { sha256 } = check.hash else { return None };
    let receipt = Receipt { file: path.file_name()?.to_string_lossy().into_owned(), sha256 };
    let head = check.receipt?;
    let note = &head.usage_raw.to_value()["outrigger"];
    let ending = Ending::from(note["ending"].as_str().unwrap_or_default());
    let error = note["error"].as_str().map(str::to_owned);
    let events = trace(&path);
    if cut(&ending, error.as_deref()) {
        return Some(LeftBehind { receipt, ended: None, events });
    }
    let (phase, _) = ending::verdict(&ending, &head.outcome, Retry::Useless);
    let error = match phase {
        Phase::Completed => None,
        _ => error.or_else(|| Some(format!("the backend says that the work is {}", head.outcome))),
    };
    let patch = head.artifacts.iter().find(|artifact| artifact.kind == "patch");
    let patch = patch.map(|artifact| artifact.path.clone());
    Some(LeftBehind {
        receipt,
        ended: Some(LeftEnd { phase, error, ending: ending.as_str().to_owned(), patch }),
        events,
    })
}

/// The events of a receipt, or why they are not read.
fn trace(path: &Path) -> Result<Vec<Box<RawValue>>, String> {
    #[derive(Deserialize)]
    struct Traced {
        #[serde(default)]
        trace: Vec<Box<RawValue>>,
    }
    let length = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > MAX_RECEIPT {
        return Err(format!("the receipt has {length} bytes, and no more than {MAX_RECEIPT} are read back"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let Traced { trace } = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    Ok(trace)
}

/// Whether it was the end of the daemon that ended the attempt.
fn cut(ending: &Ending, error: Option<&str>) -> bool {
    let says = |text: &str| error.is_some_and(|error| error.contains(text));
    match ending {
        Ending::Exited => says(KILLED),
        Ending::Cancelled => says(GOING_DOWN),
        _ => false,
    }
}
