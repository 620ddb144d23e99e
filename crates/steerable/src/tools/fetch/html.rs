//! What a person would read of an HTML page. One pass, no tree: tags end lines or vanish, links keep their address.

/// The text of a page, and its title.
pub(super) fn text(html: &str) -> (String, Option<String>) {
    let mut reader = Reader { out: String::new(), title: None, links: Vec::new() };
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        reader.say(&rest[..at]);
        rest = reader.markup(&rest[at..]);
    }
    reader.say(rest);
    let title = reader.title.map(|title| evened(&title)).filter(|title| !title.is_empty());
    (reader.out.trim().to_owned(), title)
}

/// Elements whose content nobody reads.
const SILENT: [&str; 8] = ["script", "style", "noscript", "svg", "template", "iframe", "object", "canvas"];

/// Elements that begin and end a line.
const BLOCKS: [&str; 34] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "tr",
    "ul",
    "option",
    "summary",
];

struct Reader {
    out: String,
    title: Option<String>,
    /// The addresses of the links that are open.
    links: Vec<Option<String>>,
}

impl Reader {
    /// Takes the markup that `rest` begins with, and gives what comes after it.
    fn markup<'a>(&mut self, rest: &'a str) -> &'a str {
        if let Some(comment) = rest.strip_prefix("<!--") {
            return comment.find("-->").map_or("", |end| &comment[end + 3..]);
        }
        let inner = &rest[1..];
        if !inner.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')) {
            self.say("<");
            return inner;
        }
        let Some(end) = tag_end(inner) else { return "" };
        let (tag, after) = (&inner[..end], &inner[end + 1..]);
        let closes = tag.starts_with('/');
        let tag = tag.trim_start_matches('/');
        let name_end = tag.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(tag.len());
        let name = tag[..name_end].to_ascii_lowercase();
        match (name.as_str(), closes) {
            ("title", false) => {
                let (content, after) = until_closed(after, "title");
                self.title.get_or_insert_with(|| unescaped(content));
                return after;
            }
            (silent, false) if SILENT.contains(&silent) && !tag.ends_with('/') => {
                return until_closed(after, silent).1;
            }
            ("a", false) => {
                let address = attribute(&tag[name_end..], "href").filter(|address| is_worth_showing(address));
                if address.is_some() {
                    self.out.push('[');
                }
                // A page of unclosed links would keep them all.
                self.links.truncate(16);
                self.links.push(address);
            }
            ("a", true) => {
                if let Some(Some(address)) = self.links.pop() {
                    self.out.push_str(&format!("]({address})"));
                }
            }
            ("li", false) => {
                self.end_line();
                self.out.push_str("- ");
            }
            ("td" | "th", false) if !self.out.is_empty() && !self.out.ends_with('\n') => {
                self.out.push_str(" | ")
            }
            ("p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "table", false) => {
                self.end_line();
                if !self.out.is_empty() && !self.out.ends_with("\n\n") {
                    self.out.push('\n');
                }
                if let Some(level) = name.strip_prefix('h').and_then(|level| level.parse::<usize>().ok()) {
                    self.out.push_str(&"#".repeat(level));
                    self.out.push(' ');
                }
            }
            (block, _) if BLOCKS.contains(&block) => self.end_line(),
            _ => {}
        }
        after
    }

    fn end_line(&mut self) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    /// Words, with single blanks between them.
    fn say(&mut self, text: &str) {
        let text = unescaped(text);
        for character in text.chars() {
            if !character.is_whitespace() {
                self.out.push(character);
            } else if !self.out.is_empty() && !self.out.ends_with([' ', '\n', '[']) {
                self.out.push(' ');
            }
        }
    }
}

/// Where a tag ends; `>` in quotes does not end it.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            (None | Some(_), _) => {}
        }
    }
    // A quote that is never closed: the tag is taken to end at its first `>`.
    tag.find('>')
}

/// The content of an element up to its closing tag, and what follows that.
fn until_closed<'a>(rest: &'a str, name: &str) -> (&'a str, &'a str) {
    let mut from = 0;
    while let Some(at) = rest[from..].find("</") {
        let at = from + at;
        let tail = &rest[at + 2..];
        let is_it = tail.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name));
        if is_it {
            let after = tail.find('>').map_or("", |end| &tail[end + 1..]);
            return (&rest[..at], after);
        }
        from = at + 2;
    }
    (rest, "")
}

fn attribute(attributes: &str, wanted: &str) -> Option<String> {
    let mut rest = attributes.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let name = &rest[..end];
        rest = rest[end..].trim_start();
        let Some(value) = rest.strip_prefix('=') else {
            if end == 0 {
                return None;
            }
            continue;
        };
        let value = value.trim_start();
        let (value, after) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
            Some(_) | None => value.split_once(char::is_whitespace).unwrap_or((value, "")),
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(unescaped(value).trim().to_owned());
        }
        rest = after.trim_start();
    }
    None
}

fn is_worth_showing(address: &str) -> bool {
    let scheme = address.get(..11).unwrap_or(address).to_ascii_lowercase();
    !address.is_empty()
        && !address.starts_with('#')
        && !scheme.starts_with("javascript:")
        && !scheme.starts_with("data:")
}

fn evened(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text with its character references resolved; those that are not known stay.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = rest.as_bytes().iter().take(12).position(|byte| *byte == b';').and_then(|end| {
            let character = reference(&rest[1..end])?;
            Some((character, end + 1))
        });
        match known {
            Some((character, length)) => {
                out.push(character);
                rest = &rest[length..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn reference(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code).filter(|character| *character != '\0');
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "copy" => '©',
        "reg" => '®',
        "hellip" => '…',
        "mdash" => '—',
        "ndash" => '–',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "bull" => '•',
        "middot" => '·',
        "times" => '×',
        "rarr" => '→',
        "larr" => '←',
        "euro" => '€',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "Auml" => 'Ä',
        "Ouml" => 'Ö',
        "Uuml" => 'Ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(html: &str, expected: &str) {
        assert_eq!(text(html).0, expected, "{html}");
    }

    #[test]
    fn a_page_becomes_what_a_person_would_read() {
        check("<h1>Title</h1><p>One\n two</p><p>Three", "# Title\n\nOne two\n\nThree");
        check("<ul><li>a</li><li><b>b</b> c</ul>d", "- a\n- b c\nd");
        check("<a href='/x?a=1&amp;b=2'>here</a>, <a href=\"#top\">top</a>", "[here](/x?a=1&b=2), top");
        check("<table><tr><td>1</td><td>2</td></tr><tr><td>3", "1 | 2\n3");
        check("a<script>if (a < b) '</p>'</script>b<STYLE>x</style >c", "abc");
        check("a<!-- <p>x --> b", "a b");
        check("1 < 2 &amp;&amp; x &unknown; &#x41;&#66; &", "1 < 2 && x &unknown; AB &");
        check("<img alt='a > b'>x", "x");
        check("a<br>b<br/>c", "a\nb\nc");
        check("", "");
    }

    #[test]
    fn the_title_is_told_apart() {
        let (text, title) = text("<html><head><title>A\n &amp; B</title><style>x</style></head><body>c");
        assert_eq!((text.as_str(), title.as_deref()), ("c", Some("A & B")));
    }

    #[test]
    fn broken_markup_costs_no_more_than_its_length() {
        let started = std::time::Instant::now();
        for piece in ["<", "<a href='", "<!--", "</", "<script>", "&", "<a>", "<p"] {
            let _ = text(&piece.repeat(200_000));
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
    }
}
