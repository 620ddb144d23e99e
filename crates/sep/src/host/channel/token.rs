//! The secret that shows who a connection is: 256 bits, good for one attach, gone from memory afterwards.

use std::fmt;
use std::hint::black_box;

use serde::Serialize;
use subtle::ConstantTimeEq;

use crate::protocol::SessionId;

/// How many hexadecimal digits a token has.
const DIGITS: usize = 64;

/// The secret of one session. It is written to the bootstrap line and nowhere else.
pub(super) struct Token([u8; DIGITS]);

impl Token {
    /// A token of these random bits.
    pub(super) fn new(mut random: [u8; DIGITS / 2]) -> Self {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [0; DIGITS];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(random) {
            pair.copy_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        wipe(&mut random);
        Self(digits)
    }

    /// Compares in a time that does not tell how much of `text` is right.
    pub(super) fn is(&self, text: &str) -> bool {
        self.0.ct_eq(text.as_bytes()).into()
    }

    /// The line that the extension reads from its standard input.
    pub(super) fn bootstrap(&self, endpoint: &str, session: &SessionId) -> Bootstrap {
        #[derive(Serialize)]
        struct Line<'a> {
            sep: u8,
            endpoint: &'a str,
            token: &'a str,
            session: &'a SessionId,
        }
        // Hexadecimal digits are text, and so the default is never taken.
        let token = std::str::from_utf8(&self.0).unwrap_or_default();
        // Room for everything at once, so that no copy of the token stays behind when the text grows. An endpoint is at
        // most six times as long when it is escaped.
        let mut line = Vec::with_capacity(6 * endpoint.len() + DIGITS + 128);
        // Strings serialise and a vector takes every byte, so this cannot fail.
        let _ = serde_json::to_writer(&mut line, &Line { sep: 1, endpoint, token, session });
        line.push(b'\n');
        Bootstrap(line)
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The one line that an extension gets on its standard input. It holds the token: write it and drop it.
pub struct Bootstrap(Vec<u8>);

impl Bootstrap {
    /// The line, with its newline.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Bootstrap {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl fmt::Debug for Bootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bootstrap(…)")
    }
}

/// Overwrites a secret. The compiler must believe that somebody looks at the zeros, so it has to write them.
pub(super) fn wipe(secret: &mut [u8]) {
    secret.fill(0);
    black_box(secret);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_its_own_text_and_no_other() {
        let token = Token::new([0xa5; 32]);
        let text = "a5".repeat(32);
        assert!(token.is(&text));
        for wrong in [text.to_uppercase(), text[..63].to_owned(), format!("{text}a"), "a5".repeat(31) + "a4"]
        {
            assert!(!token.is(&wrong), "{wrong}");
        }
        assert!(!token.is(""));
    }

    #[test]
    fn the_bootstrap_line_says_where_who_and_what() {
        let session = SessionId::new(1, [7; 10]);
        let line = Token::new([1; 32]).bootstrap("unix:/run/\"odd\"/s", &session);
        let text = std::str::from_utf8(line.as_bytes()).expect("JSON is text");
        let expected = format!(
            "{{\"sep\":1,\"endpoint\":\"unix:/run/\\\"odd\\\"/s\",\"token\":\"{}\",\"session\":\"{session}\"}}\n",
            "01".repeat(32)
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn nothing_that_is_printed_holds_the_secret() {
        let token = Token::new([0xbe; 32]);
        let line = token.bootstrap("fd:3", &SessionId::new(1, [7; 10]));
        assert!(!format!("{token:?}{line:?}").contains("bebe"));
    }

    #[test]
    fn a_wiped_secret_is_zeros() {
        let mut secret = *b"secret";
        wipe(&mut secret);
        assert_eq!(secret, [0; 6]);
    }
}
