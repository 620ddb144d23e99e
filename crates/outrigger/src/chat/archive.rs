//! The conversations that there are: a file each, looked into without taking it.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, bail};
use outrigger_steerable::protocol::{Session, Trace};
use outrigger_steerable::store::{Filter, Look, TraceTree, fresh_id};
use serde_json::{Value, json};

use crate::run::chats_folder;
use crate::say::{self, Format, short};

/// How many conversations are listed or looked into.
const MOST: usize = 1000;

/// One conversation.
pub(super) struct Conversation {
    /// Its name, which is also that of its session and its transcript.
    pub(super) id: String,
    pub(super) file: PathBuf,
    pub(super) is_new: bool,
}

impl Conversation {
    /// The one that was named, the last one, or a new one.
    pub(super) fn open(named: Option<&str>, last: bool) -> anyhow::Result<Self> {
        let folder = chats_folder()?;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.with_context(|| format!("{} cannot be made", folder.display()))?;
        if let Some(id) = named {
            let file = file_of(&folder, id)?;
            if !file.exists() {
                bail!("there is no conversation `{id}`; outrigger chat --sessions lists them");
            }
            return Ok(Self { id: id.to_owned(), file, is_new: false });
        }
        if last {
            let newest = files(&folder)?.into_iter().next();
            let file = newest.context("there is no conversation yet to go on with")?;
            return Ok(Self { id: name_of(&file), file, is_new: false });
        }
        let id = fresh_id("chat_");
        Ok(Self { file: file_of(&folder, &id)?, id, is_new: true })
    }

    /// Removes the file of a conversation in which nothing was said.
    pub(super) fn forget(&self) {
        for ending in ["db", "db-wal", "db-shm", "db.lock"] {
            // What is not there need not be removed.
            let _ = std::fs::remove_file(self.file.with_extension(ending));
        }
    }
}

/// Lists the conversations, the last one first.
pub(super) fn list(format: Format) -> anyhow::Result<ExitCode> {
    let folder = chats_folder()?;
    let mut listed = 0;
    for file in files(&folder)?.into_iter().take(MOST) {
        let id = name_of(&file);
        let session = match session(&file) {
            Ok(session) => session,
            // One that cannot be read does not hide the others.
            Err(error) => {
                anstream::eprintln!("{id}: {}", crate::say::whole(&error));
                continue;
            }
        };
        listed += 1;
        let title = session.as_ref().and_then(title).unwrap_or_default();
        let at = session.map(|session| session.updated_at.to_string());
        match format {
            Format::Json => {
                say::object(&json!({ "session": id, "title": title, "updated_at": at, "file": file }))
            }
            Format::Text => {
                let at = at.as_deref().and_then(|at| at.get(..16)).unwrap_or_default().replace('T', " ");
                anstream::println!("{id}  {at:<16}  {}", short(&title));
            }
        }
    }
    if listed == 0 && format == Format::Text {
        anstream::eprintln!("there are none yet");
    }
    Ok(ExitCode::SUCCESS)
}

/// The trace of this name, or the one whose name begins like this.
pub(crate) fn find_trace(id: &str, store: Option<&Path>) -> anyhow::Result<TraceTree> {
    let mut found: Vec<TraceTree> = Vec::new();
    for file in places(store)? {
        found.extend(Look::open(&file)?.traces_like(id, 3)?);
    }
    if let Some(at) = found.iter().position(|tree| tree.trace.trace_id == id) {
        return Ok(found.swap_remove(at));
    }
    match found.len() {
        0 => bail!("there is no trace `{id}`; outrigger trace lists the last ones"),
        1 => Ok(found.swap_remove(0)),
        count => bail!("`{id}` is the beginning of {count} traces; say more of it"),
    }
}

/// The last traces of all conversations, the newest first.
pub(crate) fn recent_traces(store: Option<&Path>, limit: usize) -> anyhow::Result<Vec<Trace>> {
    let mut traces = Vec::new();
    // A file changes with every turn, so that the newest traces are in the newest files.
    for file in places(store)?.into_iter().take(limit) {
        traces.extend(Look::open(&file)?.traces(limit)?);
    }
    traces.sort_by(|one, other| other.created_at.cmp(&one.created_at));
    traces.truncate(limit);
    Ok(traces)
}

fn places(store: Option<&Path>) -> anyhow::Result<Vec<PathBuf>> {
    match store {
        Some(path) => Ok(vec![path.to_owned()]),
        None => files(&chats_folder()?),
    }
}

/// The files of the conversations, the last changed first.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", folder.display())),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("{} cannot be read", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "db") {
            files.push((changed(&path), path));
        }
    }
    files.sort();
    Ok(files.into_iter().rev().map(|(_, path)| path).collect())
}

/// When a conversation last changed: what is new may still be in the log beside it.
fn changed(path: &Path) -> Option<SystemTime> {
    let time = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified()).ok();
    time(path).max(time(&path.with_extension("db-wal")))
}

fn file_of(folder: &Path, id: &str) -> anyhow::Result<PathBuf> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if id.is_empty() || id.len() > 100 || !id.chars().all(fine) {
        bail!("`{id}` is not the name of a conversation; outrigger chat --sessions lists them");
    }
    Ok(folder.join(format!("{id}.db")))
}

fn name_of(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn session(file: &Path) -> anyhow::Result<Option<Session>> {
    let found = Look::open(file)?.sessions(&Filter::default())?;
    Ok(found.into_iter().next())
}

fn title(session: &Session) -> Option<String> {
    let data: Value = serde_json::from_str(session.stage_data.as_ref()?.get()).ok()?;
    data["title"].as_str().map(str::to_owned)
}
