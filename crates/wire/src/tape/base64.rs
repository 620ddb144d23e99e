//! Standard base64 with padding, so that a tape can hold any bytes. Tapes are for tests; speed does not matter here.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for sextet in 0..4 {
            if sextet <= chunk.len() {
                let index = group >> (18 - 6 * sextet) & 63;
                text.push(char::from(ALPHABET[index as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

/// `None` when the text is not canonical, padded base64.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let groups = text.len() / 4;
    for (at, group) in text.chunks(4).enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 || (padding > 0 && at + 1 != groups) {
            return None;
        }
        let mut value = 0u32;
        for byte in &group[..4 - padding] {
            let index = ALPHABET.iter().position(|known| known == byte)?;
            value = value << 6 | u32::try_from(index).ok()?;
        }
        value <<= 6 * padding;
        let decoded = value.to_be_bytes();
        let (kept, spare) = decoded[1..].split_at(3 - padding);
        if spare.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vectors_hold_in_both_directions() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), coded);
            assert_eq!(decode(coded).as_deref(), Some(plain.as_bytes()));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
    }

    #[test]
    fn what_is_not_canonical_is_refused() {
        for bad in ["Z", "Zg", "Zg=", "Z===", "====", "Zg==Zg==", "Zm9*", "Zh==", "Zm9="] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
