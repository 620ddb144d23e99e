//! What a terminal sends, as keys. Pure: bytes go in, keys come out.

/// Most text that is taken from one paste.
const MAX_PASTE: usize = 1 << 20;

/// One key, or a paste.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Key {
    Text(char),
    Paste(String),
    Enter,
    /// A new line within the text (Alt-Enter, Ctrl-J).
    NewLine,
    Backspace,
    Delete,
    Left,
    Right,
    Home,
    End,
    Up,
    Down,
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    /// Ctrl-U: everything before the cursor.
    KillLine,
    /// Ctrl-W: the word before the cursor.
    KillWord,
    /// Ctrl-L.
    Redraw,
}

/// Takes the bytes of a terminal apart; a character or a sequence may come in pieces.
#[derive(Default)]
pub(super) struct Decoder {
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
}

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

impl Decoder {
    /// The keys of one read. An escape that ends a read is the key of that name: terminals send a sequence in one piece.
    pub(super) fn keys(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut input = std::mem::take(&mut self.pending);
        input.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut rest = input.as_slice();
        while !rest.is_empty() {
            if self.paste.is_some() {
                rest = self.pasted(rest, &mut keys);
                continue;
            }
            if let Some(after) = rest.strip_prefix(PASTE_BEGINS) {
                self.paste = Some(Vec::new());
                rest = after;
                continue;
            }
            let Some((key, length)) = one(rest) else {
                self.pending = rest.to_vec();
                break;
            };
            keys.extend(key);
            rest = &rest[length..];
        }
        keys
    }

    /// Takes what belongs to a paste; gives what is behind it.
    fn pasted<'a>(&mut self, rest: &'a [u8], keys: &mut Vec<Key>) -> &'a [u8] {
        let Some(paste) = &mut self.paste else { return rest };
        paste.extend_from_slice(rest);
        // The end may have come in two reads, so it is looked for in all that there is.
        let end = paste.windows(PASTE_ENDS.len()).position(|window| window == PASTE_ENDS);
        let Some(end) = end else {
            if paste.len() > MAX_PASTE {
                paste.truncate(MAX_PASTE);
            }
            return &[];
        };
        let behind = paste.len() - end - PASTE_ENDS.len();
        let text = String::from_utf8_lossy(&paste[..end]).replace("\r\n", "\n").replace('\r', "\n");
        self.paste = None;
        keys.push(Key::Paste(text));
        &rest[rest.len() - behind..]
    }
}

/// The first key and its length; no key for what means nothing here; none when there must be more.
fn one(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let key = |key| Some((Some(key), 1));
    match bytes[0] {
        b'\r' => key(Key::Enter),
        b'\n' => key(Key::NewLine),
        0x7f | 0x08 => key(Key::Backspace),
        0x01 => key(Key::Home),
        0x02 => key(Key::Left),
        0x03 => key(Key::Interrupt),
        0x04 => key(Key::EndOfInput),
        0x05 => key(Key::End),
        0x06 => key(Key::Right),
        0x0c => key(Key::Redraw),
        0x0e => key(Key::Down),
        0x10 => key(Key::Up),
        0x15 => key(Key::KillLine),
        0x17 => key(Key::KillWord),
        b'\t' => key(Key::Text(' ')),
        0x1b => Some(escape(bytes)),
        0x00..=0x1f => Some((None, 1)),
        first => {
            let length = match first {
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf7 => 4,
                _ => 1,
            };
            let bytes = bytes.get(..length)?;
            let c = std::str::from_utf8(bytes).ok().and_then(|text| text.chars().next());
            Some((c.map(Key::Text), length))
        }
    }
}

fn escape(bytes: &[u8]) -> (Option<Key>, usize) {
    match bytes.get(1) {
        None => (Some(Key::Escape), 1),
        Some(b'\r' | b'\n') => (Some(Key::NewLine), 2),
        Some(b'[' | b'O') => {
            let end = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte));
            let Some(end) = end else { return (None, bytes.len()) };
            let sequence = &bytes[2..=2 + end];
            let key = match sequence {
                b"A" => Some(Key::Up),
                b"B" => Some(Key::Down),
                b"C" => Some(Key::Right),
                b"D" => Some(Key::Left),
                b"H" | b"1~" | b"7~" => Some(Key::Home),
                b"F" | b"4~" | b"8~" => Some(Key::End),
                b"3~" => Some(Key::Delete),
                _ => None,
            };
            (key, 3 + end)
        }
        Some(0x1b) => (Some(Key::Escape), 1),
        Some(_) => (None, 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expect: &[Key]) {
        assert_eq!(Decoder::default().keys(bytes), expect);
    }

    #[test]
    fn letters_arrows_and_control_keys_are_told_apart() {
        check(b"a\xc3\xa9\r", &[Key::Text('a'), Key::Text('é'), Key::Enter]);
        check(b"\x1b[A\x1b[D\x1bOH\x1b[3~", &[Key::Up, Key::Left, Key::Home, Key::Delete]);
        check(b"\x03\x04\x15\x17", &[Key::Interrupt, Key::EndOfInput, Key::KillLine, Key::KillWord]);
        check(b"\x1b\r", &[Key::NewLine]);
        check(b"\x1b[99;5u", &[]);
    }

    #[test]
    fn an_escape_that_ends_a_read_is_the_key() {
        check(b"\x1b", &[Key::Escape]);
        check(b"\x1b\x1b", &[Key::Escape, Key::Escape]);
    }

    #[test]
    fn a_character_may_come_in_two_reads() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.keys(b"\xe2\x82"), []);
        assert_eq!(decoder.keys(b"\xacx"), [Key::Text('€'), Key::Text('x')]);
    }

    #[test]
    fn a_paste_is_one_key_wherever_it_is_cut() {
        let whole = b"a\x1b[200~two\rlines\x1b[201~b";
        let expect = [Key::Text('a'), Key::Paste("two\nlines".into()), Key::Text('b')];
        // Not within the mark that begins it: a lone escape there is the key.
        for cut in (0..=1).chain(7..=whole.len()) {
            let mut decoder = Decoder::default();
            let mut keys = decoder.keys(&whole[..cut]);
            keys.extend(decoder.keys(&whole[cut..]));
            assert_eq!(keys, expect, "cut at {cut}");
        }
    }
}
