//! "Did you mean": the known word that is closest to one that nobody knows.

/// The word of `known` that `word` most likely was meant to be; none if all are too far away.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|candidate| (distance(word, candidate), candidate));
    let (distance, candidate) = scored.min_by_key(|(distance, _)| *distance)?;
    // A third of the word may be wrong; beyond that a guess is noise.
    (distance <= word.chars().count().max(3) / 3).then_some(candidate)
}

/// How many characters have to be changed, added, left out or swapped with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before_last = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=one.len() {
        let mut row = vec![i; other.len() + 1];
        for j in 1..=other.len() {
            let same = one[i - 1] == other[j - 1];
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
        let known = ["default_backend", "receipts_dir", "backends", "args"];
        assert_eq!(nearest("default_backed", known), Some("default_backend"));
        assert_eq!(nearest("reciepts_dir", known), Some("receipts_dir"));
        assert_eq!(nearest("agrs", known), Some("args"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("x", []), None);
    }
}
