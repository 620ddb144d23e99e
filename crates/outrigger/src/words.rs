//! A command line in one argument, taken apart as a shell would, but without a shell: words, quotes, nothing else.

use anyhow::bail;

/// The words of `text`. Quotes group and a backslash takes the next character as it is (not within '…'); nothing is expanded.
pub(crate) fn words(text: &str) -> anyhow::Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' | '"' => quoted(&mut rest, c, word.get_or_insert_default(), text)?,
            '\\' => match rest.next() {
                Some(next) => word.get_or_insert_default().push(next),
                None => bail!("the command `{text}` ends with a backslash"),
            },
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if words.is_empty() {
        bail!("the command is empty");
    }
    Ok(words)
}

fn quoted(rest: &mut std::str::Chars<'_>, quote: char, word: &mut String, text: &str) -> anyhow::Result<()> {
    while let Some(c) = rest.next() {
        match c {
            c if c == quote => return Ok(()),
            '\\' if quote == '"' => match rest.next() {
                Some(escaped @ ('"' | '\\')) => word.push(escaped),
                Some(other) => word.extend(['\\', other]),
                None => break,
            },
            c => word.push(c),
        }
    }
    bail!("the command `{text}` has a {quote} that is never closed")
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_command_line_is_taken_apart_like_in_a_shell() {
        let cases: &[(&str, &[&str])] = &[
            ("node agent.js", &["node", "agent.js"]),
            ("  node\t'my agent.js'  ", &["node", "my agent.js"]),
            (r#"sh -c "echo \"hi\" $HOME""#, &["sh", "-c", r#"echo "hi" $HOME"#]),
            (r"a\ b c'd'e", &["a b", "cde"]),
            ("x ''", &["x", ""]),
            (r#"x "a\n""#, &["x", r"a\n"]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text).unwrap(), *expected, "{text}");
        }
    }

    #[test]
    fn an_open_quote_is_an_error_that_shows_the_command() {
        for text in ["node 'x", "node \"x", "node \\", "", "   "] {
            let error = words(text).unwrap_err().to_string();
            assert!(error.contains(text.trim()), "{error}");
        }
    }
}
