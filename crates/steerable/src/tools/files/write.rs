//! `write_file`: a whole file at once. Whoever reads meanwhile sees the old one or the new one, never half of it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode as FileMode, OFlags, Stat};
use serde_json::json;
use serde_json::value::RawValue;

use super::beneath::{Need, Spot, locate, stat_entry};
use super::{Trouble, off_thread};
use crate::chat::{BoxFuture, ToolResult, ToolSpec};
use crate::tools::arguments::Arguments;
use crate::tools::outcome::text;
use crate::tools::tool::{Mode, Place, Tool, Turns};
use crate::tools::toolbox::spec;

/// Bytes of a file that is written.
pub(super) const MAX_BYTES: usize = 8 << 20;

/// The tool.
pub(in crate::tools) struct WriteFile {
    spec: ToolSpec,
}

impl WriteFile {
    pub(in crate::tools) fn new() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1, "description": "The file: absolute, or from the first root. Folders on the way are made."},
                "content": {"type": "string", "description": "The whole content."},
            },
            "required": ["path", "content"],
            "additionalProperties": false,
        });
        let description =
            "Writes a file: makes it, or replaces all of it. To change a part of a file use edit_file.";
        Self { spec: spec("write_file", description, &parameters) }
    }
}

impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn mode(&self) -> Mode {
        Mode::SafeWrite
    }

    fn turns(&self) -> Turns {
        Turns::Alone
    }

    fn invoke<'a>(&'a self, arguments: &'a RawValue, at: &'a Place) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let arguments = match Arguments::read(&self.spec, arguments) {
                Ok(arguments) => arguments,
                Err(refused) => return refused,
            };
            let grants = at.grants.clone();
            let done = off_thread(move |_| {
                let spot = locate(&grants, Need::Write, arguments.string("path"))?;
                write(&spot, arguments.string("content"))
            });
            done.await.unwrap_or_else(|trouble| trouble.into_result(&self.spec.name, Mode::SafeWrite))
        })
    }
}

fn write(spot: &Spot, content: &str) -> Result<ToolResult, Trouble> {
    let (folder, name) = spot.open_parent()?;
    let old = stat_entry(&folder, name).map_err(|error| spot.explain(error))?;
    replace(spot, &folder, name, old.as_ref(), content.as_bytes())?;
    let verb = if old.is_some() { "replaced" } else { "made" };
    let told = format!("{verb} `{}`, {} bytes", spot.shown, content.len());
    Ok(text(told).with("bytes", content.len()).with("created", old.is_none()))
}

/// Puts a new file in the place of `old`, or of nothing, with the permissions of the old one. If it is not the old one any
/// more that is there, nothing happens.
pub(super) fn replace(
    spot: &Spot,
    folder: &OwnedFd,
    name: &OsStr,
    old: Option<&Stat>,
    content: &[u8],
) -> Result<(), Trouble> {
    if content.len() > MAX_BYTES {
        return Err(Trouble::Failed(format!("the content has more than {MAX_BYTES} bytes")));
    }
    if let Some(old) = old {
        spot.ordinary(old)?;
    }
    let failed =
        |error: std::io::Error| Trouble::Failed(format!("`{}` cannot be written: {error}", spot.shown));
    let temporary = temporary_name()?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::openat(folder, &temporary, flags, FileMode::from_raw_mode(0o666));
    let guard = Temporary { folder, name: &temporary };
    let mut file = File::from(made.map_err(|error| failed(error.into()))?);
    if let Some(old) = old {
        let mode = FileMode::from_raw_mode(old.st_mode & 0o777);
        rustix::fs::fchmod(&file, mode).map_err(|error| failed(error.into()))?;
    }
    file.write_all(content).and_then(|()| file.sync_all()).map_err(failed)?;
    let now = stat_entry(folder, name).map_err(|error| spot.explain(error))?;
    if now.as_ref().map(print) != old.map(print) {
        return Err(Trouble::Failed(format!(
            "`{}` was changed by somebody else at the same time; read it again",
            spot.shown
        )));
    }
    rustix::fs::renameat(folder, &temporary, folder, name).map_err(|error| failed(error.into()))?;
    std::mem::forget(guard);
    Ok(())
}

/// What changes when a file does.
fn print(stat: &Stat) -> (u64, u64, i64, i64, i64) {
    (stat.st_dev as _, stat.st_ino as _, stat.st_size as _, stat.st_mtime as _, stat.st_mtime_nsec as _)
}

/// Removes the temporary file unless it got its name.
struct Temporary<'a> {
    folder: &'a OwnedFd,
    name: &'a OsStr,
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // If it cannot be removed there is nobody to tell; it is named so that a person sees what it is.
        let _ = rustix::fs::unlinkat(self.folder, self.name, AtFlags::empty());
    }
}

fn temporary_name() -> Result<OsString, Trouble> {
    let number = getrandom::u64().map_err(|error| Trouble::Failed(format!("no randomness: {error}")))?;
    Ok(format!(".steerable-{number:016x}.tmp").into())
}
