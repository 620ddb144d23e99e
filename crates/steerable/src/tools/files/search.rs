//! `search_files`: the lines that contain a text. The text is literal, so that no pattern can be slow.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use memchr::memmem::Finder;
use rustix::fs::FileType;
use serde_json::json;
use serde_json::value::RawValue;

use super::beneath::{Need, locate, open_entry};
use super::list::compile;
use super::walk::{Ended, MAX_ENTRIES, Reach, Step, walk};
use super::{Trouble, Wanted, off_thread};
use crate::chat::{BoxFuture, ToolResult, ToolSpec};
use crate::tools::Grants;
use crate::tools::arguments::Arguments;
use crate::tools::outcome::text;
use crate::tools::tool::{Mode, Place, Tool, Turns};
use crate::tools::toolbox::spec;

/// Lines of one answer.
const MAX_MATCHES: usize = 500;

/// Lines of one file.
const MAX_IN_FILE: usize = 100;

/// Characters that are shown of a line.
const SHOWN: usize = 300;

/// A larger file is not searched.
const MAX_FILE: u64 = 8 << 20;

/// Bytes that one call looks through.
const MAX_TOTAL: u64 = 2 << 30;

/// Bytes at the beginning that tell a text from something else.
const TELLING: usize = 8 << 10;

/// The tool.
pub(in crate::tools) struct SearchFiles {
    spec: ToolSpec,
}

impl SearchFiles {
    pub(in crate::tools) fn new() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "The text to find: literal, within one line."},
                "path": {"type": "string", "minLength": 1, "description": "A folder or a file: absolute, or from the first root. Default: the first root."},
                "glob": {"type": "string", "minLength": 1, "maxLength": 1024, "description": "Only files that fit: `*.rs`, `src/**`."},
                "ignoreCase": {"type": "boolean", "description": "Whether a-z and A-Z are the same. Default: false."},
            },
            "required": ["pattern"],
            "additionalProperties": false,
        });
        let description = "Finds lines that contain a text, and shows them as path:line: text. The pattern is literal, not a regular \
                           expression. Does not look into .git, node_modules, caches, binaries and files over 8 MiB.";
        Self { spec: spec("search_files", description, &parameters) }
    }
}

impl Tool for SearchFiles {
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
            let done = off_thread(move |wanted| search(&grants, &arguments, wanted));
            done.await.unwrap_or_else(|trouble| trouble.into_result(&self.spec.name, Mode::Read))
        })
    }
}

fn search(grants: &Grants, arguments: &Arguments, wanted: &Wanted) -> Result<ToolResult, Trouble> {
    let pattern = arguments.string("pattern");
    if pattern.contains('\n') {
        return Err(Trouble::Failed("the pattern has a line break; a match is within one line".to_owned()));
    }
    let case = if arguments.flag("ignoreCase") { Case::Ignored } else { Case::Kept };
    let glob = arguments.optional_string("glob").map(compile).transpose()?;
    let path = arguments.optional_string("path").unwrap_or(".");
    let spot = locate(grants, Need::Read, path)?;
    let opened = spot.open()?;
    let stat = rustix::fs::fstat(&opened).map_err(|error| spot.explain(error))?;
    let mut search = Search { needle: Needle::new(pattern, case), found: Vec::new(), skipped: 0, read: 0 };
    let ended = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {
            let prefix = match path {
                "." | "./" => String::new(),
                path => format!("{}/", path.trim_end_matches('/')),
            };
            let folder = spot.open_folder()?;
            walk(folder, Reach::Tree, wanted, &mut |entry| {
                let fits = entry.kind == FileType::RegularFile
                    && glob.as_ref().is_none_or(|glob| glob.matches(entry.way));
                if fits && let Ok(file) = open_entry(entry.folder, entry.name, entry.kind) {
                    return search.file(file, &format!("{prefix}{}", entry.way));
                }
                Step::On
            })
        }
        _ => {
            spot.ordinary(&stat)?;
            match search.file(opened, path) {
                Step::On => Ended::Complete,
                Step::Enough => Ended::Enough,
            }
        }
    };
    let count = search.found.len();
    let mut result = text(search.found.join("\n")).with("count", count);
    let mut notices = Vec::new();
    match ended {
        Ended::Complete if count == 0 => notices.push("no line has it".to_owned()),
        Ended::Complete => {}
        Ended::Enough => notices.push("there is more; a narrower path, glob or pattern shows it".to_owned()),
        Ended::Limit => {
            notices.push(format!("not everything was searched: the limit is {MAX_ENTRIES} entries"))
        }
        Ended::Cancelled => return Err(Trouble::Failed("it was cancelled".to_owned())),
    }
    if search.skipped > 0 {
        notices.push(format!("{} files were not searched: too large, or with several names", search.skipped));
    }
    result.message = (!notices.is_empty()).then(|| notices.join("; "));
    Ok(result)
}

/// Whether letters of different case differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Kept,
    Ignored,
}

struct Needle {
    case: Case,
    finder: Finder<'static>,
}

impl Needle {
    fn new(pattern: &str, case: Case) -> Self {
        let wanted = match case {
            Case::Kept => pattern.to_owned(),
            Case::Ignored => pattern.to_ascii_lowercase(),
        };
        Self { case, finder: Finder::new(wanted.as_bytes()).into_owned() }
    }

    /// Where the matches begin, each line once.
    fn lines<'a>(&self, content: &'a [u8]) -> Vec<(usize, &'a [u8])> {
        let lowered;
        let haystack = match self.case {
            Case::Kept => content,
            Case::Ignored => {
                lowered = content.to_ascii_lowercase();
                &lowered
            }
        };
        let mut lines = Vec::new();
        let (mut from, mut number, mut counted) = (0, 1, 0);
        while let Some(at) = self.finder.find(&haystack[from..]) {
            let at = from + at;
            number += memchr::memchr_iter(b'\n', &content[counted..at]).count();
            counted = at;
            let begin = memchr::memrchr(b'\n', &content[..at]).map_or(0, |at| at + 1);
            let end = memchr::memchr(b'\n', &content[at..]).map_or(content.len(), |length| at + length);
            lines.push((number, &content[begin..end]));
            if lines.len() == MAX_IN_FILE || end >= content.len() {
                break;
            }
            from = end;
        }
        lines
    }
}

struct Search {
    needle: Needle,
    found: Vec<String>,
    skipped: usize,
    read: u64,
}

impl Search {
    fn file(&mut self, file: OwnedFd, shown: &str) -> Step {
        let Ok(stat) = rustix::fs::fstat(&file) else { return Step::On };
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Step::On;
        }
        if stat.st_nlink > 1 || size > MAX_FILE {
            self.skipped += 1;
            return Step::On;
        }
        self.read += size;
        if self.read > MAX_TOTAL {
            return Step::Enough;
        }
        let mut content = Vec::new();
        if File::from(file).take(MAX_FILE).read_to_end(&mut content).is_err() {
            return Step::On;
        }
        if content[..content.len().min(TELLING)].contains(&0) {
            return Step::On;
        }
        for (number, line) in self.needle.lines(&content) {
            if self.found.len() == MAX_MATCHES {
                return Step::Enough;
            }
            let line = String::from_utf8_lossy(line.trim_ascii_end());
            let line = match line.char_indices().nth(SHOWN) {
                Some((cut, _)) => format!("{}…", &line[..cut]),
                None => line.into_owned(),
            };
            self.found.push(format!("{shown}:{number}: {line}"));
        }
        Step::On
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_found_once_with_its_number() {
        let content = b"one two two\nthree\nTWO\n\xffx two";
        let numbers = |case| -> Vec<usize> {
            Needle::new("two", case).lines(content).into_iter().map(|(number, _)| number).collect()
        };
        assert_eq!(numbers(Case::Kept), [1, 4]);
        assert_eq!(numbers(Case::Ignored), [1, 3, 4]);
        assert_eq!(Needle::new("two", Case::Kept).lines(b""), []);
        assert_eq!(Needle::new("a", Case::Kept).lines(b"a"), [(1, &b"a"[..])]);
    }

    #[test]
    fn a_file_of_matches_gives_no_more_than_its_share() {
        let content = b"x\n".repeat(1000);
        assert_eq!(Needle::new("x", Case::Kept).lines(&content).len(), MAX_IN_FILE);
    }
}
