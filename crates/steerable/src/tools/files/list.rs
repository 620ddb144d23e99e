//! `list_files`: what is in a folder, or below it.

use outrigger_policy::{Glob, Reading};
use rustix::fs::FileType;
use serde_json::json;
use serde_json::value::RawValue;

use super::beneath::{Need, locate};
use super::walk::{Ended, MAX_ENTRIES, Reach, Step, walk};
use super::{Trouble, Wanted, off_thread};
use crate::chat::{BoxFuture, ToolResult, ToolSpec};
use crate::tools::Grants;
use crate::tools::arguments::Arguments;
use crate::tools::outcome::text;
use crate::tools::tool::{Mode, Place, Tool, Turns};
use crate::tools::toolbox::spec;

/// Names of one answer.
const MAX_NAMES: usize = 2000;

/// The tool.
pub(in crate::tools) struct ListFiles {
    spec: ToolSpec,
}

impl ListFiles {
    pub(in crate::tools) fn new() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1, "description": "The folder: absolute, or from the first root. Default: the first root."},
                "glob": {"type": "string", "minLength": 1, "maxLength": 1024, "description": "Files below the folder that fit, at any depth: `*.rs`, `src/**/test_*`, `**`."},
            },
            "additionalProperties": false,
        });
        let description = "Lists a folder; with a glob, the files below it that fit. Folders end with `/`, links with `@`. Does not \
                           look into .git, node_modules and caches unless the path is one.";
        Self { spec: spec("list_files", description, &parameters) }
    }
}

impl Tool for ListFiles {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn mode(&self) -> Mode {
        Mode::Read
    }

    fn turns(&self) -> Turns {
        Turns::Together
    }

    fn invoke<'a>(&'a self, arguments: &'a RawValue, at: &'a Place) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let arguments = match Arguments::read(&self.spec, arguments) {
                Ok(arguments) => arguments,
                Err(refused) => return refused,
            };
            let grants = at.grants.clone();
            let done = off_thread(move |wanted| {
                let path = arguments.optional_string("path").unwrap_or(".");
                list(&grants, path, arguments.optional_string("glob"), wanted)
            });
            done.await.unwrap_or_else(|trouble| trouble.into_result(&self.spec.name, Mode::Read))
        })
    }
}

fn list(grants: &Grants, path: &str, glob: Option<&str>, wanted: &Wanted) -> Result<ToolResult, Trouble> {
    let spot = locate(grants, Need::Read, path)?;
    let glob = glob.map(compile).transpose()?;
    let folder = spot.open_folder()?;
    let reach = if glob.is_some() { Reach::Tree } else { Reach::Folder };
    let prefix = match path {
        "." | "./" => String::new(),
        path => format!("{}/", path.trim_end_matches('/')),
    };
    let mut names: Vec<String> = Vec::new();
    let ended = walk(folder, reach, wanted, &mut |entry| {
        let fits = match &glob {
            Some(glob) => entry.kind != FileType::Directory && glob.matches(entry.way),
            None => true,
        };
        if !fits {
            return Step::On;
        }
        if names.len() == MAX_NAMES {
            return Step::Enough;
        }
        let mark = match entry.kind {
            FileType::Directory => "/",
            FileType::Symlink => "@",
            FileType::RegularFile => "",
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => " (not a file)",
        };
        names.push(format!("{prefix}{}{mark}", entry.way));
        Step::On
    });
    let count = names.len();
    let mut result = text(names.join("\n")).with("count", count);
    result.message = match ended {
        Ended::Complete if count == 0 => Some("nothing is there that fits".to_owned()),
        Ended::Complete => None,
        Ended::Enough => {
            Some(format!("these are the first {MAX_NAMES}; a narrower path or glob shows the rest"))
        }
        Ended::Limit => Some(format!(
            "not everything was looked at: the limit is {MAX_ENTRIES} entries; name a smaller folder"
        )),
        Ended::Cancelled => return Err(Trouble::Failed("it was cancelled".to_owned())),
    };
    Ok(result)
}

/// A glob for ways from a folder. One without `/` is for names at any depth.
pub(super) fn compile(pattern: &str) -> Result<Glob, Trouble> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let anywhere = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
    Glob::new(&anywhere, Reading::Path)
        .map_err(|error| Trouble::Failed(format!("the glob `{pattern}` cannot be read: {error}")))
}
