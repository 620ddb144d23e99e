//! Rust source with its comments and literals blanked, so that a rule about code sees only code.
//!
//! Lines keep their numbers. This is not a parser: it knows exactly the tokens in which other tokens can hide.

/// The code of `source`: every character of a comment, string or character literal becomes a space.
pub(super) fn code_only(source: &str) -> String {
    blank(source, Keep::Code)
}

/// As [`code_only`], but string literals stay: for tests and benches that are registered by name.
pub(super) fn code_and_strings(source: &str) -> String {
    blank(source, Keep::CodeAndStrings)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Code,
    CodeAndStrings,
}

fn blank(source: &str, keep: Keep) -> String {
    let mut masked = String::with_capacity(source.len());
    let mut rest = source;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let (length, code) = token(rest, first, before);
        let (text, next) = rest.split_at(length);
        let is_string = text.ends_with(['"', '#']) && !text.starts_with('/');
        if code || (keep == Keep::CodeAndStrings && is_string) {
            masked.push_str(text);
        } else {
            masked.extend(text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        before = text.chars().next_back().unwrap_or(' ');
        rest = next;
    }
    masked
}

/// The length of what starts here, and whether it is code.
fn token(rest: &str, first: char, before: char) -> (usize, bool) {
    let word_before = before.is_alphanumeric() || before == '_';
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), false);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), false);
    }
    if first == '"' {
        return (string(rest, 0), false);
    }
    if first == '\'' {
        return match character(rest) {
            Some(length) => (length, false),
            None => (1, true), // A lifetime or a loop label.
        };
    }
    if !word_before
        && matches!(first, 'r' | 'b' | 'c')
        && let Some(length) = prefixed(rest)
    {
        return (length, false);
    }
    (first.len_utf8(), true)
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The end of a string whose quote is at `quote`; a backslash hides the next byte.
fn string(rest: &str, quote: usize) -> usize {
    let bytes = rest.as_bytes();
    let mut at = quote + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `'x'`, `'\n'` and `'\u{1F600}'`, but not `'a` alone.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        // The escaped character itself may be a quote.
        let after = chars.nth(1)?.0;
        return rest[after..].find('\'').map(|end| after + end + 1).or(Some(rest.len()));
    }
    let (at, next) = chars.next()?;
    (next == '\'').then_some(at + 1)
}

/// `r"…"`, `r#"…"#`, `b"…"`, `br#"…"#`, `c"…"` and `b'…'`.
fn prefixed(rest: &str) -> Option<usize> {
    let letters = rest.len() - rest.trim_start_matches(['r', 'b', 'c']).len();
    let prefix = &rest[..letters];
    if !matches!(prefix, "r" | "b" | "c" | "br" | "cr") {
        return None;
    }
    let after = &rest[letters..];
    if prefix == "b" && after.starts_with('\'') {
        return character(after).map(|length| letters + length);
    }
    if !prefix.ends_with('r') {
        return after.starts_with('"').then(|| string(rest, letters));
    }
    let hashes = after.len() - after.trim_start_matches('#').len();
    if !after[hashes..].starts_with('"') {
        return None; // A raw identifier.
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let body = letters + hashes + 1;
    Some(rest[body..].find(&close).map_or(rest.len(), |end| body + end + close.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &str) {
        assert_eq!(code_only(source), expected, "{source}");
    }

    #[test]
    fn comments_are_blanked_and_lines_keep_their_numbers() {
        check("a // b\nc", "a     \nc");
        check("a /* b\n /* c */ d */ e", "a     \n              e");
        check("/// ```\nx", "       \nx");
    }

    #[test]
    fn strings_of_every_kind_are_blanked() {
        check(r#"f("a\"b")"#, "f(      )");
        check(r##"f(r#"a"b"#)"##, "f(        )");
        check(r#"f(b"x", c"y", br"z\")"#, "f(    ,     ,       )");
        check("\"// not a comment\" x", "                   x");
    }

    #[test]
    fn characters_are_told_from_lifetimes() {
        check(r"let q = '\''; x", "let q =     ; x");
        check(r"f('/', b'\\', '\u{1F600}')", "f(   ,      ,            )");
        check("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)");
        check("'outer: loop { '\"' }", "'outer: loop {     }");
    }

    #[test]
    fn identifiers_that_begin_like_a_prefix_stay() {
        check("r#type bar \"x\" br b c", "r#type bar     br b c");
        check("attr\"x\"", "attr   ");
    }

    #[test]
    fn what_never_ends_is_blanked_to_the_end() {
        check("a \"b", "a   ");
        check("a /* b", "a     ");
        check("a '\\", "a '\\");
    }

    #[test]
    fn strings_can_be_kept_for_names() {
        assert_eq!(code_and_strings(r#"row("lines") // "x""#), r#"row("lines")       "#);
        assert_eq!(code_and_strings(r##"row(r#"lines"#)"##), r##"row(r#"lines"#)"##);
    }
}
