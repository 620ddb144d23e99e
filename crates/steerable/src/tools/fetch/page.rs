//! From the bytes of a page to text.

use super::html;

/// Characters of text that are answered.
const MAX_CHARS: usize = 200_000;

/// A page as text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) text: String,
    pub(super) title: Option<String>,
    /// Whether there was more.
    pub(super) cut: bool,
}

/// The text of a body, by its kind. The problem is a fragment that fits after its address.
pub(super) fn reduce(body: &[u8], kind: &str) -> Result<Page, String> {
    let (essence, parameters) = kind.split_once(';').unwrap_or((kind, ""));
    let essence = essence.trim().to_ascii_lowercase();
    if !is_text(&essence, body) {
        let what = if essence.is_empty() { "something without a type".to_owned() } else { essence };
        return Err(format!("is {what}, which is no text"));
    }
    let text = decode(body, parameters);
    let (text, title) = match essence.as_str() {
        "text/html" | "application/xhtml+xml" => html::text(&text),
        _ => (text, None),
    };
    Ok(match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => Page { text: text[..at].to_owned(), title, cut: true },
        None => Page { text, title, cut: false },
    })
}

fn is_text(essence: &str, body: &[u8]) -> bool {
    let named = essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || matches!(
            essence,
            "application/json"
                | "application/xml"
                | "application/javascript"
                | "application/x-ndjson"
                | "application/yaml"
                | "application/toml"
                | "application/x-sh"
                | "application/sql"
        );
    let telling = &body[..body.len().min(1024)];
    let unnamed = matches!(essence, "" | "application/octet-stream") && std::str::from_utf8(telling).is_ok();
    (named || unnamed) && !telling.contains(&0)
}

fn decode(body: &[u8], parameters: &str) -> String {
    let charset = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| value.trim().trim_matches('"').to_ascii_lowercase())
    });
    match charset.as_deref() {
        // Each byte is a character of that number.
        Some("iso-8859-1" | "latin1" | "us-ascii") => body.iter().map(|byte| char::from(*byte)).collect(),
        Some(_) | None => {
            let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
            String::from_utf8_lossy(body).into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_reduced_to_text_or_refused() {
        let text = |body: &[u8], kind: &str| reduce(body, kind).map(|page| page.text);
        assert_eq!(text(b"{\"a\":1}", "application/json"), Ok("{\"a\":1}".into()));
        assert_eq!(text(b"\xe4", "text/plain; charset=ISO-8859-1"), Ok("ä".into()));
        assert_eq!(text(b"\xef\xbb\xbfa\xff", "text/plain"), Ok("a\u{fffd}".into()));
        assert_eq!(text(b"plain", ""), Ok("plain".into()));
        assert_eq!(text(b"\x89PNG", "image/png"), Err("is image/png, which is no text".into()));
        assert_eq!(text(b"a\0b", "text/plain"), Err("is text/plain, which is no text".into()));
        assert_eq!(text(b"<p>a", "Text/HTML; charset=utf-8"), Ok("a".into()));
    }

    #[test]
    fn a_long_text_is_cut_at_the_limit() {
        let at = reduce("ä".repeat(MAX_CHARS).as_bytes(), "text/plain").unwrap();
        assert!(!at.cut);
        let past = reduce("ä".repeat(MAX_CHARS + 1).as_bytes(), "text/plain").unwrap();
        assert!(past.cut);
        assert_eq!(past.text, at.text);
    }
}
