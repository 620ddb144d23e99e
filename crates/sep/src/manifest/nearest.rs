//! "Did you mean": the known word that is closest to one that nobody knows.

/// Longer words are not slips, and comparing them would cost too much.
const MAX_CHARS: usize = 64;

/// The word of `known` that `word` most likely was meant to be; none if all are too far away.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(MAX_CHARS + 1).collect();
    if word.len() > MAX_CHARS {
        return None;
    }
    let scored = known.into_iter().map(|candidate| (distance(&word, candidate), candidate));
    let (distance, candidate) = scored.min_by_key(|(distance, _)| *distance)?;
    // A third of the word may be wrong; beyond that a guess is noise.
    (distance <= word.len().max(3) / 3).then_some(candidate)
}

/// How many characters have to be changed, added, left out or swapped with their neighbour; a change of case is none.
fn distance(one: &[char], other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut before_last = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=one.len() {
        let mut row = vec![i; other.len() + 1];
        for j in 1..=other.len() {
            let same = one[i - 1].eq_ignore_ascii_case(&other[j - 1]);
            row[j] = (last[j - 1] + usize::from(!same)).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let known = ["permissions", "apiVersion", "name"];
        assert_eq!(nearest("permisions", known), Some("permissions"));
        assert_eq!(nearest("apiversion", known), Some("apiVersion"));
        assert_eq!(nearest("nmae", known), Some("name"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"n".repeat(65), known), None);
        assert_eq!(nearest("x", []), None);
    }
}
