//! Text that comes from an extension and that people will see: how long it may be, and that it hides nothing.

use serde::Serialize;

/// What is wrong with something that an extension declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flaw {
    /// Where, as a JSON pointer below the parameters.
    pub path: String,
    /// What.
    pub reason: String,
}

/// More flaws than this are not listed.
pub const MAX_FLAWS: usize = 16;

/// How long a text may be, in code points, and whether it may have several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextRule {
    pub(super) least: usize,
    pub(super) most: usize,
    pub(super) lines: Lines,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    One,
    Many,
}

impl TextRule {
    pub(super) const fn line(least: usize, most: usize) -> Self {
        Self { least, most, lines: Lines::One }
    }

    pub(super) const fn lines(least: usize, most: usize) -> Self {
        Self { least, most, lines: Lines::Many }
    }
}

/// Collects flaws with the path they are at; never more than [`MAX_FLAWS`].
#[derive(Debug, Default)]
pub(super) struct Flaws(Vec<Flaw>);

impl Flaws {
    pub(super) fn add(&mut self, path: impl Into<String>, reason: impl Into<String>) {
        if self.0.len() < MAX_FLAWS {
            self.0.push(Flaw { path: path.into(), reason: reason.into() });
        }
    }

    pub(super) fn text(&mut self, path: &str, text: &str, rule: TextRule) {
        // Every code point has at most four bytes, so a text of gigabytes is not counted.
        let length = if text.len() > rule.most.saturating_mul(4) { usize::MAX } else { text.chars().count() };
        if length > rule.most {
            self.add(path, format!("longer than {} characters", rule.most));
        } else if length < rule.least {
            self.add(path, "empty");
        }
        let wrong = |c: &char| is_hidden(*c) && !(rule.lines == Lines::Many && matches!(c, '\n' | '\t'));
        if let Some(found) = text.chars().take(rule.most.saturating_add(1)).find(wrong) {
            self.add(path, format!("has the character U+{:04X}, which cannot be shown", u32::from(found)));
        }
    }

    pub(super) fn into_result(self) -> Result<(), Vec<Flaw>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }
}

/// Whether a character would be invisible, move the cursor, or make text read in another order than it is stored.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' | '\u{061C}')
}

/// `text` as one line that can be shown anywhere: hidden characters become U+FFFD, what is longer than `most` code points is
/// cut and ends with `…`.
#[must_use]
pub fn clean(text: &str, most: usize) -> String {
    let show = |c: char| if is_hidden(c) { '\u{FFFD}' } else { c };
    let mut shown: String = text.chars().take(most).map(show).collect();
    if text.chars().nth(most).is_some() && shown.pop().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flaws(text: &str, rule: TextRule) -> Vec<String> {
        let mut flaws = Flaws::default();
        flaws.text("/title", text, rule);
        flaws.0.into_iter().map(|flaw| flaw.reason).collect()
    }

    #[test]
    fn a_text_is_right_at_its_limit_and_wrong_one_past_it() {
        let rule = TextRule::line(1, 3);
        assert_eq!(flaws("😀😀😀", rule), Vec::<String>::new(), "code points are counted, not bytes");
        assert_eq!(flaws("abcd", rule), ["longer than 3 characters"]);
        assert_eq!(flaws("", rule), ["empty"]);
        assert_eq!(flaws("", TextRule::line(0, 3)), Vec::<String>::new());
    }

    #[test]
    fn hidden_characters_are_named() {
        let rule = TextRule::line(1, 10);
        assert_eq!(flaws("a\u{202E}b", rule), ["has the character U+202E, which cannot be shown"]);
        assert_eq!(flaws("a\nb", rule), ["has the character U+000A, which cannot be shown"]);
        assert_eq!(flaws("a\n\tb", TextRule::lines(1, 10)), Vec::<String>::new());
        assert_eq!(
            flaws("a\rb", TextRule::lines(1, 10)),
            ["has the character U+000D, which cannot be shown"]
        );
    }

    #[test]
    fn cleaned_text_has_one_line_and_keeps_its_length() {
        assert_eq!(clean("a\u{1b}[31m\u{2066}é", 100), "a\u{FFFD}[31m\u{FFFD}é");
        assert_eq!(clean("abc", 3), "abc");
        assert_eq!(clean("abcd", 3), "ab…");
        assert_eq!(clean("a", 0), "");
    }
}
