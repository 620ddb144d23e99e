//! What a command said: the beginning and the end, and how much is missing between them.

use std::collections::VecDeque;

/// Bytes of the beginning that are kept.
const HEAD: usize = 24 << 10;

/// Bytes of the end that are kept.
const TAIL: usize = 40 << 10;

#[derive(Debug)]
pub(super) struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    cut: u64,
}

impl Output {
    pub(super) fn new() -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), cut: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(first);
        // Of what does not fit at all only the end can stay.
        let (skipped, rest) = rest.split_at(rest.len().saturating_sub(TAIL));
        let pushed_out = (self.tail.len() + rest.len()).saturating_sub(TAIL);
        self.tail.drain(..pushed_out);
        self.tail.extend(rest);
        self.cut += (skipped.len() + pushed_out) as u64;
    }

    /// The text, and how many bytes are missing in it.
    pub(super) fn finish(self) -> (String, u64) {
        let Self { head, tail, cut } = self;
        let tail: Vec<u8> = tail.into();
        if cut == 0 {
            return (String::from_utf8_lossy(&[head, tail].concat()).into_owned(), 0);
        }
        let (head, tail) = (String::from_utf8_lossy(&head), String::from_utf8_lossy(&tail));
        (format!("{head}\n… ({cut} bytes are left out) …\n{tail}"), cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_is_kept_up_to_the_limit_and_the_middle_is_missing_beyond_it() {
        let all: Vec<u8> = (0..=u8::MAX).map(|n| b'a' + n % 26).cycle().take(HEAD + TAIL).collect();
        for piece in [1, 7, 4096, usize::MAX] {
            let mut output = Output::new();
            all.chunks(piece.min(all.len())).for_each(|chunk| output.push(chunk));
            assert_eq!(output.finish(), (String::from_utf8(all.clone()).unwrap(), 0));

            let mut output = Output::new();
            all.chunks(piece.min(all.len())).for_each(|chunk| output.push(chunk));
            output.push(b"!");
            let (text, cut) = output.finish();
            assert_eq!(cut, 1);
            assert!(text.ends_with('!'));
            assert!(text.contains("… (1 bytes are left out) …"));
        }
    }

    #[test]
    fn a_flood_in_one_piece_leaves_its_end() {
        let mut output = Output::new();
        output.push(&vec![b'x'; 10 << 20]);
        output.push(b"end");
        assert_eq!(output.tail.len(), TAIL);
        let (text, cut) = output.finish();
        assert_eq!(cut, (10 << 20) + 3 - (HEAD + TAIL) as u64);
        assert!(text.ends_with("xend"));
    }
}
