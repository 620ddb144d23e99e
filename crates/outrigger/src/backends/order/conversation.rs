//! Conversations with coding agents: what an agent calls its session is written down, so that a later run of the same thread goes on
//! where this one ended.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use outrigger_abp::protocol::{Raw, WorkOrder};
use outrigger_policy::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of what is written.
const VERSION: u32 = 1;

/// The longest file that is read.
const MAX_BYTES: u64 = 64 * 1024;

/// One thread with one agent: another agent knows nothing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conversation {
    folder: PathBuf,
}

/// What is kept of it.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    version: u32,
    thread: String,
    session: String,
}

impl Conversation {
    /// The conversation of a thread with a backend, in a folder that its name alone decides.
    pub(super) fn open(scratch: &Path, backend: &str, thread: &str) -> Result<Self, String> {
        let name = Digest::of(format!("{backend}\0{thread}").as_bytes()).to_string();
        let folder = scratch.join("threads").join(name);
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder.join("work"));
        made.map_err(|error| format!("the folder {} cannot be made: {error}", folder.display()))?;
        Ok(Self { folder })
    }

    /// Where its runs work that name no folder: agents know their sessions by where they were.
    pub(super) fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    fn file(&self) -> PathBuf {
        self.folder.join("session.json")
    }

    /// What the agent called it the last time; none if it begins, or if what was written cannot be read.
    pub(super) fn session(&self) -> Option<String> {
        let file = self.file();
        let small = std::fs::metadata(&file).is_ok_and(|data| data.len() <= MAX_BYTES);
        let text = small.then(|| std::fs::read(&file).ok()).flatten()?;
        let kept: Kept = serde_json::from_slice(&text).ok()?;
        (kept.version == VERSION && !kept.session.is_empty()).then_some(kept.session)
    }

    /// Writes down what the agent calls it now.
    pub(super) fn keep(&self, thread: &str, session: &str) -> io::Result<()> {
        let kept = Kept { version: VERSION, thread: thread.to_owned(), session: session.to_owned() };
        let draft = self.folder.join("session.draft");
        std::fs::write(&draft, serde_json::to_vec(&kept)?)?;
        std::fs::rename(draft, self.file())
    }
}

/// Has the agent go on with a session, unless the order says with which one itself.
pub(super) fn resume(order: &mut WorkOrder, session: String) -> Result<(), String> {
    if order.config.vendor("agent", "resume").is_some() {
        return Ok(());
    }
    let Value::Object(mut vendor) = order.config.vendor.to_value() else {
        return Err("`config.vendor` is not an object".to_owned());
    };
    match vendor.entry("agent").or_insert_with(|| Value::Object(Map::new())) {
        Value::Object(agent) => agent.insert("resume".to_owned(), session.into()),
        _ => return Err("`config.vendor.agent` is not an object".to_owned()),
    };
    order.config.vendor = Raw::of(&vendor).map_err(|error| error.to_string())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_thread_goes_on_with_the_agent_that_it_began_with() {
        let folder = tempfile::tempdir().unwrap();
        let open = |backend, thread| Conversation::open(folder.path(), backend, thread).unwrap();
        let first = open("claude", "../odd thread");
        assert!(first.work().is_dir() && first.work().starts_with(folder.path().join("threads")));
        assert_eq!(first.session(), None);
        first.keep("../odd thread", "s-1").unwrap();
        first.keep("../odd thread", "s-2").unwrap();
        assert_eq!(open("claude", "../odd thread").session().as_deref(), Some("s-2"));
        assert_eq!(open("codex", "../odd thread").session(), None);
        assert_eq!(open("claude", "other").session(), None);
    }

    #[test]
    fn what_cannot_be_read_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let one = Conversation::open(folder.path(), "claude", "t").unwrap();
        let later = json!({ "version": 2, "thread": "t", "session": "s" }).to_string();
        let empty = json!({ "version": 1, "thread": "t", "session": "" }).to_string();
        for text in ["", "{", &later, &empty] {
            std::fs::write(one.file(), text).unwrap();
            assert_eq!(one.session(), None, "{text:?}");
        }
    }

    #[test]
    fn an_order_that_names_its_session_keeps_it() {
        let resumed = |vendor: Value| {
            let text = json!({ "id": "o", "task": "x", "config": { "vendor": vendor } }).to_string();
            let mut order = WorkOrder::read(&text).unwrap();
            resume(&mut order, "s-1".to_owned()).map(|()| order.config.vendor.to_value())
        };
        assert_eq!(resumed(json!({})), Ok(json!({ "agent": { "resume": "s-1" } })));
        let effort = json!({ "agent": { "effort": "high" }, "n": 1.0 });
        let expected = json!({ "agent": { "effort": "high", "resume": "s-1" }, "n": 1.0 });
        assert_eq!(resumed(effort), Ok(expected));
        let own = json!({ "agent": { "resume": "mine" } });
        assert_eq!(resumed(own.clone()), Ok(own));
        assert_eq!(resumed(json!({ "agent": 1 })), Err("`config.vendor.agent` is not an object".to_owned()));
    }
}
