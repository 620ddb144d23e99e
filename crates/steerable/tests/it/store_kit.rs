//! What every test of the store needs: both kinds of store, messages, and processes that are killed.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_steerable::chat::{Message, Role, ToolCall};
use outrigger_steerable::store::{MemoryLimits, RecordId, Store, Stored};
use serde_json::value::RawValue;
use tempfile::TempDir;

/// Far longer than anything here takes; only a test that fails ever waits for it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A trial that runs an async test on a runtime of its own.
pub(crate) fn trial<F: Future<Output = ()>>(name: &str, test: impl FnOnce() -> F + Send + 'static) -> Trial {
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async { tokio::time::timeout(PATIENCE, test()).await })?;
        Ok(())
    })
}

/// A store of each kind, with the folder of the one that has a file.
pub(crate) fn both() -> (TempDir, [Store; 2]) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = Store::open(&folder.path().join("store.db")).expect("a store");
    (folder, [Store::memory(MemoryLimits::STANDARD), file])
}

pub(crate) fn record(name: &str) -> RecordId {
    RecordId::new(name)
}

pub(crate) fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

pub(crate) fn said(text: &str) -> Message {
    Message::text(Role::Assistant, text)
}

/// An assistant's message that calls tools of these ids.
pub(crate) fn calling(ids: &[&str]) -> Message {
    let call = |id: &&str| ToolCall {
        id: (*id).to_owned(),
        name: "read_file".to_owned(),
        arguments: RawValue::from_string("{}".to_owned()).expect("an object"),
    };
    Message { tool_calls: ids.iter().map(call).collect(), ..said("") }
}

pub(crate) fn answer(id: &str) -> Message {
    Message { tool_call_id: Some(id.to_owned()), ..Message::text(Role::Tool, "done") }
}

/// A transcript in short: place, role, and text or the call that is answered.
pub(crate) fn told(messages: &[Stored]) -> Vec<String> {
    let one = |stored: &Stored| {
        let message = &stored.message;
        let text = message.plain_text();
        let text = match &message.tool_call_id {
            Some(id) if text.contains("interrupted") => format!("{id} interrupted"),
            Some(id) => id.clone(),
            None => text,
        };
        format!("{} {} {text}", stored.seq, message.role.word()).trim_end().to_owned()
    };
    messages.iter().map(one).collect()
}

/// Does something to the file behind the store's back.
pub(crate) fn sql(path: &Path, statements: &str) {
    rusqlite::Connection::open(path).expect("a database").execute_batch(statements).expect("a statement");
}

/// This binary in another role, with its output piped.
#[expect(clippy::disallowed_methods, reason = "the tests start processes that are then killed")]
pub(crate) fn process(role: &str, path: &Path) -> Child {
    let own = std::env::current_exe().expect("own path");
    let mut command = std::process::Command::new(own);
    command.arg("__store").arg(role).arg(path);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a process")
}
