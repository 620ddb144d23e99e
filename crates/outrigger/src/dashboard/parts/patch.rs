//! A patch, taken apart: files, hunks, lines with their numbers. Pure, and written for patches that mean no good.

use super::say::beginning;

/// The most files that are taken apart; the others are counted.
pub(in super::super) const MAX_FILES: usize = 200;
/// The most lines of all files together.
pub(in super::super) const MAX_LINES: usize = 5000;
/// The most bytes of one line.
const MAX_LINE: usize = 2000;

/// A patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Patch {
    pub(in super::super) files: Vec<FilePatch>,
    /// Files that are not among them.
    pub(in super::super) more_files: usize,
    /// Lines that are in no file above.
    pub(in super::super) more_lines: usize,
}

/// What happened to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct FilePatch {
    pub(in super::super) path: String,
    pub(in super::super) was: Option<String>,
    pub(in super::super) change: Change,
    pub(in super::super) hunks: Vec<Hunk>,
    pub(in super::super) added: usize,
    pub(in super::super) removed: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum Change {
    #[default]
    Changed,
    Added,
    Removed,
    Renamed,
    Binary,
}

/// Lines that stand together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Hunk {
    /// What stands after the second `@@`.
    pub(in super::super) heading: String,
    pub(in super::super) lines: Vec<PatchLine>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct PatchLine {
    pub(in super::super) sign: Sign,
    pub(in super::super) old: Option<u32>,
    pub(in super::super) new: Option<u32>,
    pub(in super::super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Sign {
    Same,
    Added,
    Removed,
    /// Not a line of the file: "No newline at end of file".
    Remark,
}

impl Change {
    pub(in super::super) fn word(self) -> &'static str {
        match self {
            Change::Changed => "changed",
            Change::Added => "added",
            Change::Removed => "removed",
            Change::Renamed => "renamed",
            Change::Binary => "binary",
        }
    }
}

impl Patch {
    pub(in super::super) fn added(&self) -> usize {
        self.files.iter().map(|file| file.added).sum()
    }

    pub(in super::super) fn removed(&self) -> usize {
        self.files.iter().map(|file| file.removed).sum()
    }
}

/// Takes a patch apart. Never fails: what is not understood is left out and counted.
pub(in super::super) fn parse(patch: &[u8]) -> Patch {
    let text = String::from_utf8_lossy(patch);
    let mut reader = Reader::default();
    for line in text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)) {
        reader.line(line);
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    patch: Patch,
    file: Option<FilePatch>,
    /// Where the open hunk is, and how much of it is to come. A line that begins with `---` inside it is a removed line.
    open: Option<Open>,
    kept: usize,
}

#[derive(Clone, Copy)]
struct Open {
    old: u32,
    new: u32,
    old_left: u32,
    new_left: u32,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if let Some(open) = self.open
            && (open.old_left > 0 || open.new_left > 0)
            && self.hunk_line(line, open)
        {
            return;
        }
        if let Some(remark) = line.strip_prefix('\\') {
            return self.keep(Sign::Remark, None, None, remark.trim());
        }
        self.open = None;
        if let Some(names) = line.strip_prefix("diff --git ") {
            self.close();
            let path = names.rsplit_once(" b/").map_or(names, |(_, path)| path);
            self.file = Some(FilePatch { path: name(path), ..FilePatch::default() });
        } else if let Some(old) = line.strip_prefix("--- ") {
            if self.file.as_ref().is_none_or(|file| !file.hunks.is_empty()) {
                self.close();
                self.file = Some(FilePatch::default());
            }
            let Some(file) = &mut self.file else { return };
            match name(old).as_str() {
                "/dev/null" => file.change = Change::Added,
                old if file.path.is_empty() => file.path = old.strip_prefix("a/").unwrap_or(old).to_owned(),
                _ => {}
            }
        } else if let Some(new) = line.strip_prefix("+++ ") {
            let Some(file) = &mut self.file else { return };
            match name(new).as_str() {
                "/dev/null" => file.change = Change::Removed,
                new => file.path = new.strip_prefix("b/").unwrap_or(new).to_owned(),
            }
        } else if let Some(header) = line.strip_prefix("@@ ") {
            self.hunk(header);
        } else if let Some(file) = &mut self.file {
            if line.starts_with("new file") {
                file.change = Change::Added;
            } else if line.starts_with("deleted file") {
                file.change = Change::Removed;
            } else if let Some(from) = line.strip_prefix("rename from ") {
                file.was = Some(name(from));
                file.change = Change::Renamed;
            } else if line.starts_with("Binary files ") || line.starts_with("GIT binary patch") {
                file.change = Change::Binary;
            }
        }
    }

    fn hunk(&mut self, header: &str) {
        let Some(file) = &mut self.file else { return };
        let Some((ranges, heading)) = header.split_once(" @@") else { return };
        let Some((old, new)) = ranges.split_once(' ') else { return };
        let (Some(old), Some(new)) = (range(old, '-'), range(new, '+')) else { return };
        let heading = beginning(heading.trim(), MAX_LINE).0.to_owned();
        file.hunks.push(Hunk { heading, lines: Vec::new() });
        self.open = Some(Open { old: old.0, new: new.0, old_left: old.1, new_left: new.1 });
    }

    /// Whether it was a line of the open hunk.
    fn hunk_line(&mut self, line: &str, mut open: Open) -> bool {
        let (sign, text) = match line.split_at_checked(1) {
            Some((" ", text)) => (Sign::Same, text),
            Some(("+", text)) => (Sign::Added, text),
            Some(("-", text)) => (Sign::Removed, text),
            // Some programs write an empty line for an empty line.
            None => (Sign::Same, ""),
            Some(("\\", _)) => return false,
            Some(_) => return false,
        };
        let (old, new) = (sign != Sign::Added, sign != Sign::Removed);
        if (old && open.old_left == 0) || (new && open.new_left == 0) {
            return false;
        }
        let file = self.file.get_or_insert_default();
        match sign {
            Sign::Added => file.added += 1,
            Sign::Removed => file.removed += 1,
            Sign::Same | Sign::Remark => {}
        }
        self.keep(sign, old.then_some(open.old), new.then_some(open.new), text);
        if old {
            (open.old, open.old_left) = (open.old.saturating_add(1), open.old_left - 1);
        }
        if new {
            (open.new, open.new_left) = (open.new.saturating_add(1), open.new_left - 1);
        }
        self.open = Some(open);
        true
    }

    fn keep(&mut self, sign: Sign, old: Option<u32>, new: Option<u32>, text: &str) {
        let hunk = self.file.as_mut().and_then(|file| file.hunks.last_mut());
        match hunk {
            Some(hunk) if self.kept < MAX_LINES => {
                self.kept += 1;
                let (shown, cut) = beginning(text, MAX_LINE);
                let text = if cut { format!("{shown}…") } else { shown.to_owned() };
                hunk.lines.push(PatchLine { sign, old, new, text });
            }
            Some(_) => self.patch.more_lines += 1,
            None => {}
        }
    }

    fn close(&mut self) {
        self.open = None;
        let Some(file) = self.file.take() else { return };
        if self.patch.files.len() < MAX_FILES {
            self.patch.files.push(file);
        } else {
            self.patch.more_files += 1;
        }
    }

    fn finish(mut self) -> Patch {
        self.close();
        self.patch
    }
}

/// `-12,3` as where it begins and how long it is.
fn range(text: &str, sign: char) -> Option<(u32, u32)> {
    let text = text.strip_prefix(sign)?;
    let (start, length) = text.split_once(',').unwrap_or((text, "1"));
    Some((start.parse().ok()?, length.parse().ok()?))
}

/// The name of a file, without the time that some programs write after it, and without quotes.
fn name(text: &str) -> String {
    let text = text.split('\t').next().unwrap_or_default();
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    beginning(text, 1000).0.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(sign: Sign, old: Option<u32>, new: Option<u32>, text: &str) -> PatchLine {
        PatchLine { sign, old, new, text: text.to_owned() }
    }

    #[test]
    fn a_patch_of_git_has_files_hunks_and_numbered_lines() {
        let patch = parse(
            b"diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -3,3 +3,4 @@ fn main() {\n one\n-two\n+2\n+2b\n three\n\\ No newline at end of file\ndiff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+hi\n",
        );
        let first = FilePatch {
            path: "src/a.rs".to_owned(),
            hunks: vec![Hunk {
                heading: "fn main() {".to_owned(),
                lines: vec![
                    line(Sign::Same, Some(3), Some(3), "one"),
                    line(Sign::Removed, Some(4), None, "two"),
                    line(Sign::Added, None, Some(4), "2"),
                    line(Sign::Added, None, Some(5), "2b"),
                    line(Sign::Same, Some(5), Some(6), "three"),
                    line(Sign::Remark, None, None, "No newline at end of file"),
                ],
            }],
            added: 2,
            removed: 1,
            ..FilePatch::default()
        };
        let second = FilePatch {
            path: "new".to_owned(),
            change: Change::Added,
            hunks: vec![Hunk { heading: String::new(), lines: vec![line(Sign::Added, None, Some(1), "hi")] }],
            added: 1,
            ..FilePatch::default()
        };
        assert_eq!(patch, Patch { files: vec![first, second], more_files: 0, more_lines: 0 });
    }

    #[test]
    fn a_removed_line_that_looks_like_a_header_is_a_removed_line() {
        let patch =
            parse(b"--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@\n--- a/etc/passwd\n-diff --git a/y b/y\n+++ b/y\n");
        assert_eq!(patch.files.len(), 1);
        let texts: Vec<&str> = patch.files[0].hunks[0].lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["-- a/etc/passwd", "diff --git a/y b/y", "++ b/y"]);
        assert_eq!((patch.added(), patch.removed()), (1, 2));
    }

    #[test]
    fn hostile_patches_are_taken_apart_as_far_as_they_go() {
        for hostile in [
            &b""[..],
            b"\n\n\n",
            b"@@ -1 +1 @@\n-a\n+b",
            b"--- a\n@@ -4294967295,4294967295 +1,1 @@\n-a\n-b\n-c",
            b"--- a\n@@ -99999999999999999999 +1 @@\n-a",
            b"--- a\n@@ - + @@\n-a",
            b"+++ b/x\n@@@@\n",
            b"\xff\xfe\0diff --git \xff\n--- \xff\n+++ \xff\n@@ -1 +1 @@\n-\xff\n+\0",
            b"rename from a\nBinary files x and y differ\nGIT binary patch",
        ] {
            let patch = parse(hostile);
            assert!(patch.files.len() <= 1, "{patch:?}");
        }
        let names = parse(b"diff --git a/<img src=x> b/<img src=x>\nrename from <b>\n");
        assert_eq!(names.files[0].path, "<img src=x>");
        assert_eq!((names.files[0].change, names.files[0].was.as_deref()), (Change::Renamed, Some("<b>")));
    }

    #[test]
    fn files_and_lines_are_bounded_and_what_is_left_out_is_counted() {
        let file = |number: usize| format!("diff --git a/f{number} b/f{number}\n");
        let of = |count: usize| parse((0..count).map(file).collect::<String>().as_bytes());
        assert_eq!((of(MAX_FILES).files.len(), of(MAX_FILES).more_files), (MAX_FILES, 0));
        assert_eq!((of(MAX_FILES + 1).files.len(), of(MAX_FILES + 1).more_files), (MAX_FILES, 1));
        let lines = |count: usize| {
            parse(format!("--- a/x\n+++ b/x\n@@ -0,0 +1,{count} @@\n{}", "+y\n".repeat(count)).as_bytes())
        };
        assert_eq!((lines(MAX_LINES).more_lines, lines(MAX_LINES + 1).more_lines), (0, 1));
        assert_eq!(lines(MAX_LINES + 1).added(), MAX_LINES + 1);
        let long =
            parse(format!("--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+{}\n", "y".repeat(MAX_LINE + 1)).as_bytes());
        assert_eq!(long.files[0].hunks[0].lines[0].text.len(), MAX_LINE + "…".len());
    }
}
