//! What a browser sends when a form is submitted: names and values, percent-encoded.

/// The most fields that a form may have.
const MAX_FIELDS: usize = 512;

/// The fields of a form, in the order in which they were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(Vec<(String, String)>);

/// Why a body is not a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FormError {
    #[error("the form is not percent-encoded text")]
    NotText,
    #[error("the form has more than {MAX_FIELDS} fields")]
    TooMany,
}

impl Fields {
    /// Reads the body of a form. Line ends become `\n`, because browsers send `\r\n` whatever was typed.
    pub(super) fn read(body: &[u8]) -> Result<Self, FormError> {
        let mut fields = Vec::new();
        for pair in body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
            if fields.len() == MAX_FIELDS {
                return Err(FormError::TooMany);
            }
            let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
            let value = pair.get(at + 1..).unwrap_or_default();
            fields.push((decode(&pair[..at])?, decode(value)?.replace("\r\n", "\n")));
        }
        Ok(Self(fields))
    }

    /// A field as it was sent; empty if it was not.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// A field that says something.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        let text = self.text(name).trim();
        (!text.is_empty()).then_some(text)
    }

    /// The fields whose names begin so, without that beginning.
    pub(super) fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?, value.as_str())))
    }

    /// Where the browser wants to be afterwards: a path of ours, never another site.
    pub(super) fn back(&self, otherwise: &str) -> String {
        let back = self.text("back");
        if is_path(back) { back.to_owned() } else { otherwise.to_owned() }
    }
}

/// Whether a text leads to a page of ours. `//host` and `/\host` lead elsewhere.
fn is_path(text: &str) -> bool {
    let mut bytes = text.bytes();
    let begins = bytes.next() == Some(b'/') && !matches!(bytes.next(), Some(b'/' | b'\\'));
    begins && text.len() < 1024 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A text as a part of an address.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn decode(text: &[u8]) -> Result<String, FormError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digit = |at: usize| {
                    let digit = char::from(*after.get(at)?).to_digit(16)?;
                    u8::try_from(digit).ok()
                };
                let (high, low) = digit(0).zip(digit(1)).ok_or(FormError::NotText)?;
                bytes.push(high * 16 + low);
                rest = &after[2..];
            }
            plain => bytes.push(*plain),
        }
    }
    String::from_utf8(bytes).map_err(|_| FormError::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_and_line_ends_are_ours() {
        let fields = Fields::read(b"a=1+2&b=%C3%BC%0D%0Ax&tool%3Aread=on&c&&d==").unwrap();
        assert_eq!(fields.text("a"), "1 2");
        assert_eq!(fields.text("b"), "ü\nx");
        assert_eq!(fields.text("d"), "=");
        assert_eq!((fields.given("c"), fields.given("nothing")), (None, None));
        assert_eq!(fields.under("tool:").collect::<Vec<_>>(), [("read", "on")]);
    }

    #[test]
    fn what_is_not_text_is_refused_and_so_is_one_field_too_many() {
        for wrong in [&b"a=%"[..], b"a=%4", b"a=%zz", b"a=%ff", b"%ff=a"] {
            assert_eq!(Fields::read(wrong), Err(FormError::NotText), "{wrong:?}");
        }
        let form = |count: usize| vec!["a=b"; count].join("&");
        assert!(Fields::read(form(MAX_FIELDS).as_bytes()).is_ok());
        assert_eq!(Fields::read(form(MAX_FIELDS + 1).as_bytes()), Err(FormError::TooMany));
    }

    #[test]
    fn a_form_leads_back_to_a_page_of_ours_only() {
        let back = |to: &str| Fields::read(format!("back={}", encode(to)).as_bytes()).unwrap().back("/x");
        assert_eq!(back("/runs/a?b=c#d"), "/runs/a?b=c#d");
        for elsewhere in [
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "",
            "runs",
            "/a\r\nSet-Cookie: x",
            "javascript:x",
        ] {
            assert_eq!(back(elsewhere), "/x", "{elsewhere}");
        }
    }
}
