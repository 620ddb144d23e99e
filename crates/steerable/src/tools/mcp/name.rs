//! What the tools of servers are called: `mcp__SERVER__TOOL`, in the letters and the length that every provider takes.

use std::collections::BTreeSet;

/// The longest name of a tool.
const MAX_NAME: usize = 64;

/// Names for the tools of one turn, no two the same.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// The name of a server's tool.
    pub(super) fn give(&mut self, server: &str, tool: &str) -> String {
        let wanted = format!("mcp__{}__{}", legal(server), legal(tool));
        let mut name = fitted(&wanted, "");
        let mut number = 2;
        while self.0.contains(&name) {
            name = fitted(&wanted, &format!("_{number}"));
            number += 1;
        }
        self.0.insert(name.clone());
        name
    }
}

fn legal(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

/// The name with its ending. One that is too long is cut, and says by a number which one it was.
fn fitted(name: &str, ending: &str) -> String {
    if name.len() + ending.len() <= MAX_NAME {
        return format!("{name}{ending}");
    }
    let mark = format!("_{:08x}{ending}", hash(name));
    // Everything in it is ASCII, so that any place is good for a cut.
    format!("{}{mark}", &name[..MAX_NAME - mark.len()])
}

/// FNV-1a: the same name gets the same mark in every run, so that transcripts stay readable.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_short_and_different() {
        let mut names = Names::default();
        assert_eq!(names.give("files", "read-file"), "mcp__files__read-file");
        assert_eq!(names.give("my server", "a.b/c"), "mcp__my_server__a_b_c");
        assert_eq!(names.give("my_server", "a b c"), "mcp__my_server__a_b_c_2");
        let long = "x".repeat(100);
        let (first, second) = (names.give("s", &long), names.give("s", &format!("{long}y")));
        assert_eq!((first.len(), second.len()), (MAX_NAME, MAX_NAME));
        assert_ne!(first, second);
        let again = names.give("s", &long);
        assert!(again.ends_with("_2") && again.len() == MAX_NAME, "{again}");
        let at_limit = "t".repeat(MAX_NAME - "mcp__s__".len());
        assert_eq!(names.give("s", &at_limit), format!("mcp__s__{at_limit}"));
    }
}
