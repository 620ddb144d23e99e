//! The line of a file that somebody probably meant: half of what goes wrong with edits is white space.

/// Lines that are compared; a file of more is compared no further.
const MAX_LINES: usize = 50_000;

/// Characters of a line that are compared.
const MAX_CHARS: usize = 200;

/// Characters that are shown of a line.
const SHOWN: usize = 160;

/// Where `content` is most like `wanted`, as a noun phrase. `None` if nothing is like it.
pub(super) fn nearest(content: &str, wanted: &str) -> Option<String> {
    let lines = || content.lines().take(MAX_LINES).enumerate();
    // The first line that says something is the one to look for.
    let first = wanted.lines().map(str::trim).find(|line| !line.is_empty())?;
    let evened = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let goal = evened(first);
    if let Some((index, line)) = lines().find(|(_, line)| evened(line) == goal) {
        let rest = wanted.trim().lines().count() > 1;
        let differs = if rest { "begins like it" } else { "differs in white space only" };
        return Some(format!("line {}, which {differs}: {}", index + 1, shown(line)));
    }
    let pairs = pairs(&goal);
    let best = lines().map(|(index, line)| (likeness(&pairs, &self::pairs(&evened(line))), index, line));
    let (score, index, line) = best.max_by_key(|(score, index, _)| (*score, std::cmp::Reverse(*index)))?;
    (score >= 50).then(|| format!("line {}: {}", index + 1, shown(line)))
}

fn shown(line: &str) -> String {
    let cut: String = line.chars().take(SHOWN).collect();
    let more = if cut.len() < line.len() { "…" } else { "" };
    format!("{cut:?}{more}")
}

/// The pairs of neighbouring characters, sorted.
fn pairs(line: &str) -> Vec<(char, char)> {
    let chars: Vec<char> = line.chars().take(MAX_CHARS).collect();
    let mut pairs: Vec<(char, char)> = chars.windows(2).map(|pair| (pair[0], pair[1])).collect();
    pairs.sort_unstable();
    pairs
}

/// How many of 100 pairs two lines share (Dice's coefficient).
fn likeness(left: &[(char, char)], right: &[(char, char)]) -> usize {
    let (mut shared, mut i, mut j) = (0, 0, 0);
    while let (Some(a), Some(b)) = (left.get(i), right.get(j)) {
        match a.cmp(b) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (shared, i, j) = (shared + 1, i + 1, j + 1),
        }
    }
    200 * shared / (left.len() + right.len()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_line_is_found_and_a_different_one_is_not() {
        let content = "fn main() {\n    println!(\"hello\");\n}\n";
        assert_eq!(
            nearest(content, "println!(\"hallo\");").as_deref(),
            Some("line 2: \"    println!(\\\"hello\\\");\"")
        );
        assert_eq!(
            nearest(content, "fn  main() {\n  println").as_deref(),
            Some("line 1, which begins like it: \"fn main() {\"")
        );
        assert_eq!(nearest(content, "SELECT * FROM users"), None);
        assert_eq!(nearest(content, " \n "), None);
    }
}
