//! `edit_file`: one text for another. The old text must be there exactly once, or the call says `all`.

use std::fs::File;
use std::io::Read;

use memchr::memmem;
use serde_json::json;
use serde_json::value::RawValue;

use super::beneath::{Need, Spot, locate, stat_entry};
use super::nearest::nearest;
use super::write::{MAX_BYTES, replace};
use super::{Trouble, off_thread};
use crate::chat::{BoxFuture, ToolResult, ToolSpec};
use crate::tools::arguments::Arguments;
use crate::tools::outcome::text;
use crate::tools::tool::{Mode, Place, Tool, Turns};
use crate::tools::toolbox::spec;

/// Lines that are named when a text is there several times.
const LINES_NAMED: usize = 10;

/// The tool.
pub(in crate::tools) struct EditFile {
    spec: ToolSpec,
}

impl EditFile {
    pub(in crate::tools) fn new() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1, "description": "The file: absolute, or from the first root."},
                "old": {"type": "string", "minLength": 1, "description": "The text to replace, exactly as it is in the file, with enough around it to be there once."},
                "new": {"type": "string", "description": "What comes in its place."},
                "all": {"type": "boolean", "description": "Whether to replace it wherever it is. Default: false."},
            },
            "required": ["path", "old", "new"],
            "additionalProperties": false,
        });
        let description = "Replaces a text in a file by another. Read the file first: the old text must match exactly, white space \
                           included, and be there once unless `all` is true.";
        Self { spec: spec("edit_file", description, &parameters) }
    }
}

impl Tool for EditFile {
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
                let which = if arguments.flag("all") { Which::All } else { Which::TheOnly };
                edit(&spot, arguments.string("old"), arguments.string("new"), which)
            });
            done.await.unwrap_or_else(|trouble| trouble.into_result(&self.spec.name, Mode::SafeWrite))
        })
    }
}

/// Which occurrences are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    TheOnly,
    All,
}

fn edit(spot: &Spot, old: &str, new: &str, which: Which) -> Result<ToolResult, Trouble> {
    let shown = &spot.shown;
    let opened = spot.open()?;
    let stat = rustix::fs::fstat(&opened).map_err(|error| spot.explain(error))?;
    spot.ordinary(&stat)?;
    if u64::try_from(stat.st_size).unwrap_or(0) > MAX_BYTES as u64 {
        return Err(Trouble::Failed(format!("`{shown}` has more than {MAX_BYTES} bytes")));
    }
    let mut content = Vec::new();
    File::from(opened)
        .take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut content)
        .map_err(|error| Trouble::Failed(format!("`{shown}`: {error}")))?;
    let content = String::from_utf8(content)
        .map_err(|_| Trouble::Failed(format!("`{shown}` is not a text in UTF-8")))?;
    let Edited { content, replaced, line } = replaced(&content, old, new, which)
        .map_err(|problem| Trouble::Failed(format!("`{shown}`: {problem}")))?;
    let (folder, name) = spot.open_parent()?;
    let now = stat_entry(&folder, name).map_err(|error| spot.explain(error))?;
    // A link leads to the file that was read, and is no place to put another one.
    match now.filter(|now| (now.st_dev, now.st_ino) != (stat.st_dev, stat.st_ino)) {
        Some(other) => spot.ordinary(&other)?,
        None => replace(spot, &folder, name, Some(&stat), content.as_bytes())?,
    }
    let places = if replaced == 1 { "1 place".to_owned() } else { format!("{replaced} places") };
    Ok(text(format!("changed `{shown}` in {places}, first in line {line}"))
        .with("replaced", replaced)
        .with("firstLine", line))
}

/// What an edit comes to.
#[derive(Debug, PartialEq, Eq)]
struct Edited {
    content: String,
    replaced: usize,
    /// The line of the first place.
    line: usize,
}

fn replaced(content: &str, old: &str, new: &str, which: Which) -> Result<Edited, String> {
    let (old, new) = in_the_files_line_endings(content, old, new);
    if old == new {
        return Err("the new text is the old one".to_owned());
    }
    let found: Vec<usize> = memmem::find_iter(content.as_bytes(), &old).collect();
    let line_of = |at: usize| content[..at].matches('\n').count() + 1;
    match (found.as_slice(), which) {
        ([], _) => Err(match nearest(content, &old) {
            Some(near) => format!("the old text is not there. The closest is {near}"),
            None => "the old text is not there, nor anything like it".to_owned(),
        }),
        ([_, _, ..], Which::TheOnly) => {
            let lines: Vec<String> =
                found.iter().take(LINES_NAMED).map(|at| line_of(*at).to_string()).collect();
            let more = if found.len() > LINES_NAMED { ", …" } else { "" };
            Err(format!(
                "the old text is there {} times (lines {}{more}); give more of what is around it, or set `all`",
                found.len(),
                lines.join(", ")
            ))
        }
        ([first, ..], Which::TheOnly | Which::All) => {
            let length = content.len() + found.len() * new.len().saturating_sub(old.len());
            if length > MAX_BYTES {
                return Err(format!("it would have more than {MAX_BYTES} bytes"));
            }
            Ok(Edited { content: content.replace(&old, &new), replaced: found.len(), line: line_of(*first) })
        }
    }
}

/// Models write line feeds; a file with carriage returns keeps them.
fn in_the_files_line_endings(content: &str, old: &str, new: &str) -> (String, String) {
    let windows = content.contains("\r\n") && !old.contains('\r') && !new.contains('\r');
    if windows && (old.contains('\n') || new.contains('\n')) {
        return (old.replace('\n', "\r\n"), new.replace('\n', "\r\n"));
    }
    (old.to_owned(), new.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(content: &str, old: &str, new: &str, which: Which) -> Result<(String, usize, usize), String> {
        replaced(content, old, new, which).map(|edited| (edited.content, edited.replaced, edited.line))
    }

    #[test]
    fn a_text_is_replaced_if_it_is_there_once() {
        assert_eq!(change("a\nb\nc", "b", "x\ny", Which::TheOnly), Ok(("a\nx\ny\nc".into(), 1, 2)));
        assert_eq!(change("a\nb", "\nb", "", Which::TheOnly), Ok(("a".into(), 1, 1)));
        assert_eq!(change("aaa", "a", "b", Which::All), Ok(("bbb".into(), 3, 1)));
    }

    #[test]
    fn what_is_not_clear_is_not_done() {
        assert_eq!(
            change("a\nb\na", "a", "b", Which::TheOnly).unwrap_err(),
            "the old text is there 2 times (lines 1, 3); give more of what is around it, or set `all`"
        );
        assert_eq!(change("a", "a", "a", Which::All).unwrap_err(), "the new text is the old one");
        assert_eq!(
            change("    let x = 1;\n", "\tlet x = 1;\n", "", Which::TheOnly).unwrap_err(),
            "the old text is not there. The closest is line 1, which differs in white space only: \"    let x = 1;\""
        );
        assert_eq!(
            change("", "abc", "", Which::TheOnly).unwrap_err(),
            "the old text is not there, nor anything like it"
        );
    }

    #[test]
    fn a_file_keeps_its_line_endings() {
        assert_eq!(change("a\r\nb\r\n", "a\nb", "x\ny", Which::TheOnly), Ok(("x\r\ny\r\n".into(), 1, 1)));
    }

    #[test]
    fn a_text_cannot_be_made_too_large() {
        let content = "a".repeat(1 << 20);
        let error = change(&content, "a", &"b".repeat(9), Which::All).unwrap_err();
        assert_eq!(error, format!("it would have more than {MAX_BYTES} bytes"));
    }
}
