//! A model that calls a tool which is not there is told which ones it may have meant.

/// The most names that are suggested.
const MOST: usize = 3;
/// A name longer than this is nobody's slip of the pen, and would make the comparison dear.
const LONGEST: usize = 128;

/// The names that are nearest to a wrong one, the nearest first.
pub(super) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wrong = plain(wrong);
    if wrong.is_empty() || wrong.len() > LONGEST {
        return Vec::new();
    }
    let mut near: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let candidate = plain(name);
            if candidate.is_empty() || candidate.len() > LONGEST {
                return None;
            }
            let shorter = candidate.len().min(wrong.len());
            let within = shorter >= 3 && (candidate.contains(&wrong) || wrong.contains(&candidate));
            let distance = if within { 1 } else { distance(wrong.as_bytes(), candidate.as_bytes()) };
            (distance <= candidate.len().max(wrong.len()) / 3 + usize::from(within))
                .then_some((distance, name))
        })
        .collect();
    near.sort();
    near.into_iter().map(|(_, name)| name).take(MOST).collect()
}

/// A name without what models get wrong first: case, hyphens, dots, the prefix of a namespace.
fn plain(name: &str) -> String {
    let name = name.rsplit(['.', '/', ':']).next().unwrap_or(name);
    name.chars().filter(|c| c.is_ascii_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
}

/// How many letters have to be put in, taken out or changed.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_lead_to_the_tool_that_was_meant() {
        let names = ["read_file", "write_file", "edit_file", "run_command", "mcp__git__log"];
        let table: [(&str, &[&str]); 8] = [
            ("readFile", &["read_file"]),
            ("functions.read_file", &["read_file"]),
            ("read_fil", &["read_file"]),
            ("run-command", &["run_command"]),
            ("command", &["run_command"]),
            ("git__log", &["mcp__git__log"]),
            ("teleport", &[]),
            ("", &[]),
        ];
        for (wrong, expected) in table {
            assert_eq!(nearest(wrong, names.into_iter()), expected, "{wrong}");
        }
    }

    #[test]
    fn a_name_of_a_megabyte_is_not_compared() {
        let wrong = "read_file".repeat(100_000);
        assert_eq!(nearest(&wrong, ["read_file"].into_iter()), Vec::<&str>::new());
    }

    #[test]
    fn distances_are_those_of_the_book() {
        assert_eq!(distance(b"kitten", b"sitting"), 3);
        assert_eq!(distance(b"", b"abc"), 3);
        assert_eq!(distance(b"abc", b"abc"), 0);
    }
}
