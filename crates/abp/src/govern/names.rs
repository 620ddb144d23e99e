//! What names mean: which tools read and which write, which members of their input are paths and which are addresses.
//!
//! Backends do not say what a call touches; they name a tool and give it an input. These tables are all that is guessed
//! from names, and whoever wonders why something was judged finds it here. Names are taken apart into words
//! (`filePath`, `file_path` and `mcp__fs__read` have two, two and three), so that `thread` does not read.

/// What a tool does to the files it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only the denials of reading count.
    Read,
    /// Only the denials of writing count.
    Write,
    /// Both count: it does both, or nobody knows.
    Both,
}

/// What a member of an input names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A file or folder.
    Path,
    /// Something on the network.
    Address,
    /// Neither.
    Other,
}

/// The words of a tool's name that say that it reads.
const READS: &[&str] = &[
    "cat", "fetch", "find", "get", "glob", "grep", "head", "list", "load", "ls", "open", "read", "rg",
    "search", "show", "stat", "tail", "tree", "view",
];

/// The words of a tool's name that say that it writes.
const WRITES: &[&str] = &[
    "append",
    "create",
    "delete",
    "edit",
    "insert",
    "mkdir",
    "move",
    "multiedit",
    "mv",
    "notebook",
    "patch",
    "put",
    "remove",
    "rename",
    "rm",
    "save",
    "touch",
    "update",
    "write",
];

/// The words of a tool's name that say that it does both. An editor also shows.
const BOTH: &[&str] = &["copy", "cp", "editor", "replace", "sync"];

/// The words of a tool's name that say that it runs commands.
const SHELLS: &[&str] =
    &["bash", "cmd", "command", "exec", "execute", "powershell", "sh", "shell", "terminal", "zsh"];

/// Beside every word with `path` or `file` in it, these name files and folders.
const FOLDERS: &[&str] = &["cwd", "dir", "directory", "dirs", "directories", "folder", "folders", "workdir"];

/// They have `path` or `file` in them and are something else.
const NOT_PATHS: &[&str] = &["jsonpath", "profile", "profiles", "xpath"];

/// After one of these as the last word, the member is something *about* a file: `file_text`, `file_type`.
const ABOUT: &[&str] = &[
    "bytes",
    "content",
    "contents",
    "count",
    "data",
    "description",
    "encoding",
    "format",
    "hash",
    "id",
    "ids",
    "kind",
    "limit",
    "mime",
    "mode",
    "regex",
    "size",
    "summary",
    "text",
    "type",
    "types",
];

/// They name something on the network.
const ADDRESSES: &[&str] =
    &["endpoint", "endpoints", "host", "hostname", "hosts", "uri", "uris", "url", "urls"];

/// What the tool `name` does to the files it names.
#[must_use]
pub fn access(name: &str) -> Access {
    let words = words(name);
    let any = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    match (any(READS), any(WRITES), any(BOTH)) {
        (true, false, false) => Access::Read,
        (false, true, false) => Access::Write,
        (_, _, true) | (true, true, false) | (false, false, false) => Access::Both,
    }
}

/// Whether the tool `name` runs commands.
#[must_use]
pub fn is_shell(name: &str) -> bool {
    words(name).iter().any(|word| SHELLS.contains(&word.as_str()))
}

/// What the member `name` of an input names.
#[must_use]
pub fn meaning(name: &str) -> Meaning {
    let words = words(name);
    let address = |word: &String| ADDRESSES.contains(&word.as_str()) || word.ends_with("url");
    if words.iter().any(address) {
        return Meaning::Address;
    }
    let path = |word: &String| {
        let word = word.as_str();
        FOLDERS.contains(&word)
            || ((word.contains("path") || word.contains("file")) && !NOT_PATHS.contains(&word))
    };
    let about = words.last().is_some_and(|last| ABOUT.contains(&last.as_str()));
    if !about && words.iter().any(path) { Meaning::Path } else { Meaning::Other }
}

/// The words of a name, in lower case: apart at whatever is no letter or digit, and before a capital after a small letter.
/// Only the beginning of a very long name is looked at.
fn words(name: &str) -> Vec<String> {
    const LOOKED_AT: usize = 256;
    let mut words = Vec::new();
    let mut word = String::new();
    let mut small = false;
    for c in name.chars().take(LOOKED_AT) {
        let apart = !c.is_alphanumeric() || (c.is_uppercase() && small);
        if apart && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        small = c.is_lowercase() || c.is_numeric();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_read_write_or_both_by_the_words_of_their_names() {
        let table = [
            ("Read", Access::Read),
            ("read_file", Access::Read),
            ("mcp__fs__read", Access::Read),
            ("Grep", Access::Read),
            ("Glob", Access::Read),
            ("LS", Access::Read),
            ("WebSearch", Access::Read),
            ("Write", Access::Write),
            ("TodoWrite", Access::Write),
            ("Edit", Access::Write),
            ("MultiEdit", Access::Write),
            ("apply_patch", Access::Write),
            ("NotebookEdit", Access::Write),
            ("delete-file", Access::Write),
            ("NotebookRead", Access::Both),
            ("str_replace_based_edit_tool", Access::Both),
            ("str_replace_editor", Access::Both),
            ("copy_file", Access::Both),
            ("Bash", Access::Both),
            ("thread", Access::Both),
            ("tools", Access::Both),
            ("", Access::Both),
            ("工具", Access::Both),
        ];
        for (name, expected) in table {
            assert_eq!(access(name), expected, "{name}");
        }
    }

    #[test]
    fn shells_are_known_by_their_words() {
        for name in ["Bash", "shell", "local_shell", "exec_command", "run_terminal_cmd", "mcp__box__execute"]
        {
            assert!(is_shell(name), "{name}");
        }
        for name in ["Read", "seashells", "KillBashed", "commander"] {
            assert!(!is_shell(name), "{name}");
        }
    }

    #[test]
    fn members_are_paths_addresses_or_neither() {
        let table = [
            ("path", Meaning::Path),
            ("file_path", Meaning::Path),
            ("filePath", Meaning::Path),
            ("filepath", Meaning::Path),
            ("FILES", Meaning::Path),
            ("filename", Meaning::Path),
            ("notebook_path", Meaning::Path),
            ("oldFileName", Meaning::Path),
            ("cwd", Meaning::Path),
            ("directory", Meaning::Path),
            ("path_pattern", Meaning::Path),
            ("file_text", Meaning::Other),
            ("fileContents", Meaning::Other),
            ("file_type", Meaning::Other),
            ("profile", Meaning::Other),
            ("xpath", Meaning::Other),
            ("text", Meaning::Other),
            ("", Meaning::Other),
            ("url", Meaning::Address),
            ("baseURL", Meaning::Address),
            ("image_url", Meaning::Address),
            ("imageurl", Meaning::Address),
            ("file_url", Meaning::Address),
            ("uri", Meaning::Address),
            ("endpoint", Meaning::Address),
            ("host", Meaning::Address),
            ("security", Meaning::Other),
            ("ghost", Meaning::Other),
            ("blocked_domains", Meaning::Other),
        ];
        for (name, expected) in table {
            assert_eq!(meaning(name), expected, "{name}");
        }
    }
}
