//! Cursor's slash commands: the skills that lie in folders of the projects and of the user.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::provider::SlashCommand;

/// Where skills are, below a project or the home folder.
const PLACES: [&str; 4] = [".agents/skills", ".cursor/skills", ".claude/skills", ".codex/skills"];

/// How deep a skill may be below such a place.
const DEEPEST: usize = 6;

/// How many folders are looked at in all, so that a link to everything does not cost everything.
const MOST_FOLDERS: usize = 4096;

/// How much of a file is read: the front matter is at its start.
const LONGEST_HEAD: u64 = 16 << 10;

/// The skills below these folders. Earlier folders win; sorted by name.
pub(super) fn scan(folders: &[PathBuf]) -> Vec<SlashCommand> {
    let mut found = BTreeMap::new();
    let mut left = MOST_FOLDERS;
    for folder in folders {
        for place in PLACES {
            visit(&folder.join(place), 0, &mut left, &mut found);
        }
    }
    found.into_values().collect()
}

fn visit(folder: &Path, depth: usize, left: &mut usize, found: &mut BTreeMap<String, SlashCommand>) {
    let Some(rest) = left.checked_sub(1) else { return };
    *left = rest;
    if let Some(skill) = read(folder) {
        if let Some(skill) = skill {
            found.entry(skill.name.clone()).or_insert(skill);
        }
        return;
    }
    if depth == DEEPEST {
        return;
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut below: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')))
        .filter(|path| path.is_dir())
        .collect();
    below.sort();
    for path in below {
        visit(&path, depth + 1, left, found);
    }
}

/// The skill of a folder. `None`: it has no `SKILL.md`; `Some(None)`: that one has no usable name.
fn read(folder: &Path) -> Option<Option<SlashCommand>> {
    let file = std::fs::File::open(folder.join("SKILL.md")).ok()?;
    let mut head = Vec::new();
    file.take(LONGEST_HEAD).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let folder_name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = front_matter(&head, "name").unwrap_or(folder_name);
    let description = front_matter(&head, "description").unwrap_or_default();
    Some(is_name(&name).then_some(SlashCommand { name, description, argument_hint: None, source: "skill" }))
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.bytes().next().is_some_and(plain) && name.bytes().all(|byte| plain(byte) || byte == b'-')
}

/// A member of the front matter that is on one line, which is all that skills use.
fn front_matter(text: &str, member: &str) -> Option<String> {
    let mut lines = text.lines();
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    let value = lines
        .take_while(|line| line.trim_end() != "---")
        .find_map(|line| line.strip_prefix(member)?.trim_start().strip_prefix(':'))?
        .trim();
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(path: &Path, text: &str) {
        std::fs::create_dir_all(path).unwrap();
        std::fs::write(path.join("SKILL.md"), text).unwrap();
    }

    #[test]
    fn skills_are_found_below_every_place_and_earlier_folders_win() {
        let folder = tempfile::tempdir().unwrap();
        let (project, home) = (folder.path().join("project"), folder.path().join("home"));
        skill(&project.join(".cursor/skills/deploy"), "---\nname: deploy\ndescription: \"Ours\"\n---\ntext");
        skill(&home.join(".claude/skills/deploy"), "---\ndescription: Theirs\n---\n");
        skill(&home.join(".agents/skills/a/b/review"), "no front matter");
        skill(&home.join(".agents/skills/a/b/review/inner"), "---\nname: inner\n---\n");
        skill(&home.join(".agents/skills/.hidden"), "---\nname: hidden\n---\n");
        skill(&home.join(".agents/skills/Bad"), "---\nname: Not A Name\n---\n");
        let command = |name: &str, description: &str| SlashCommand {
            name: name.to_owned(),
            description: description.to_owned(),
            argument_hint: None,
            source: "skill",
        };
        assert_eq!(scan(&[project, home]), [command("deploy", "Ours"), command("review", "")]);
    }

    #[test]
    fn a_skill_may_be_six_deep_and_not_seven() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(".codex/skills");
        skill(&root.join("1/2/3/4/5/six"), "");
        skill(&root.join("1/2/3/4/5/6/seven"), "");
        let names: Vec<String> =
            scan(&[folder.path().to_owned()]).into_iter().map(|skill| skill.name).collect();
        assert_eq!(names, ["six"]);
    }

    #[test]
    fn a_folder_that_contains_itself_comes_to_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join(".cursor/skills");
        std::fs::create_dir_all(&root).unwrap();
        std::os::unix::fs::symlink(&root, root.join("again")).unwrap();
        std::os::unix::fs::symlink(&root, root.join("and-again")).unwrap();
        skill(&root.join("real"), "");
        assert_eq!(scan(&[folder.path().to_owned()]).len(), 1);
    }
}
