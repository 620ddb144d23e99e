//! What a turn is begun with: who is talked to, what they may reach, what is said.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Duration;

use outrigger_abp::protocol::{WorkOrder, WorkspaceMode};
use serde_json::{Map, Value, json};

use super::{Talk, thread};
use crate::backends::order::job::{self, Window};
use crate::runs::{NewRun, RunId};

/// The longest that the runtime waits for a person; it takes no more than a year.
const A_YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// What a turn is begun with.
pub(super) struct Plan {
    pub(super) order: WorkOrder,
    pub(super) transcript: String,
    pub(super) cwd: PathBuf,
    pub(super) flags: Vec<OsString>,
    pub(super) members: Map<String, Value>,
    /// Who is talked to, for people.
    pub(super) model: String,
    pub(super) window: Window,
    /// What should be known before it begins.
    pub(super) notes: Vec<String>,
}

impl Plan {
    pub(super) fn of(talk: &Talk, run: &RunId, request: &NewRun) -> Result<Self, String> {
        let mut order = request.work_order(run.as_str()).map_err(|error| error.message)?;
        if request.policy.is_none() {
            order.policy = talk.policy.clone();
        }
        let model = talk.model()?;
        let name = model.name(order.config.model.as_deref())?.to_owned();
        let mut members = model.members(&name);
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&talk.folder);
        made.map_err(|error| format!("the folder {} cannot be made: {error}", talk.folder.display()))?;
        let transcript = thread::transcript(request.thread.as_deref(), run);
        let mut flags =
            vec!["--storage-path".into(), thread::file(&talk.folder, &transcript).into_os_string()];
        let mut notes = Vec::new();
        let cwd = match &request.workspace {
            None => talk.folder.clone(),
            Some(_) => {
                let root = job::folder(&order).map_err(|error| error.message)?;
                let flag = match order.workspace.mode {
                    WorkspaceMode::PassThrough => "--write-root",
                    WorkspaceMode::Staged | WorkspaceMode::Other(_) => {
                        notes.push(
                            "the folder can be read only: with `pass_through` as its mode it can be written"
                                .to_owned(),
                        );
                        "--read-root"
                    }
                };
                flags.extend([flag.into(), root.clone().into_os_string()]);
                root
            }
        };
        for host in &order.policy.allow_network {
            flags.extend(["--allow-host".into(), host.into()]);
        }
        flags.extend(["--commands".into(), "deny".into()]);
        let window = Window::of(request.approvals.as_ref())?;
        let patience = u64::try_from(window.patience().min(A_YEAR).as_millis()).unwrap_or(u64::MAX);
        let more = [
            ("useCoreLoop", json!(true)),
            ("resume", json!(true)),
            ("askUser", json!(true)),
            ("approval", json!({ "mode": "host", "timeoutMs": patience })),
            ("recordId", json!(transcript)),
            ("chatId", json!(transcript)),
            ("messages", json!([{ "role": "user", "content": order.task }])),
        ];
        members.extend(more.map(|(name, value)| (name.to_owned(), value)));
        if let Some(turns) = order.config.max_turns {
            members.insert("maxRounds".to_owned(), turns.into());
        }
        if let Some(system) = order.config.vendor("chat", "system") {
            members.insert("systemPrompt".to_owned(), system.to_value());
        }
        Ok(Self { order, transcript, cwd, flags, members, model: name, window, notes })
    }
}
