//! `GetSubstitution`: what `$1`, `$&` and their like stand for in a replacement.

use super::{Str, Text};

/// A match that a replacement refers to.
#[derive(Clone, Copy, Debug)]
pub struct Matched<'a, F> {
    /// The whole text.
    pub text: Str<'a>,
    /// What matched; usually the part of the text, but an `exec` of the guest's own may say otherwise.
    pub whole: Str<'a>,
    /// Where the match is in the text.
    pub start: usize,
    /// Where it ends; at most at the end of the text.
    pub end: usize,
    /// How many groups there are, without the whole match.
    pub groups: usize,
    /// What a group matched, counted from one.
    pub group: F,
}

/// Whether a replacement is to be taken as it is.
pub fn is_plain(template: Str<'_>) -> bool {
    match template {
        Str::Latin1(bytes) => memchr::memchr(b'$', bytes).is_none(),
        Str::Wide(units) => !units.contains(&u16::from(b'$')),
    }
}

/// Appends the replacement. `named` answers for `$<name>`; when it is absent, `$<` stands for itself.
pub fn substitute<'a, F, N>(template: Str<'_>, matched: &Matched<'a, F>, mut named: Option<N>, out: &mut Text)
where
    F: Fn(usize) -> Option<Str<'a>>,
    N: FnMut(Str<'_>) -> Option<Str<'a>>,
{
    let mut at = 0;
    while let Some(next) = find_dollar(template, at) {
        out.push_text(template.slice(at, next));
        at = next + step(template, next, matched, &mut named, out);
    }
    out.push_text(template.slice(at, template.len()));
}

/// Handles the reference at a dollar sign; answers how many units it took.
fn step<'a, F, N>(
    template: Str<'_>,
    at: usize,
    matched: &Matched<'a, F>,
    named: &mut Option<N>,
    out: &mut Text,
) -> usize
where
    F: Fn(usize) -> Option<Str<'a>>,
    N: FnMut(Str<'_>) -> Option<Str<'a>>,
{
    let unit = |offset: usize| template.get(at + offset).and_then(|unit| u8::try_from(unit).ok());
    let digit = |offset: usize| unit(offset).filter(u8::is_ascii_digit).map(|d| usize::from(d - b'0'));
    let text = matched.text;
    match unit(1) {
        Some(b'$') => out.push(u16::from(b'$')),
        Some(b'&') => out.push_text(matched.whole),
        Some(b'`') => out.push_text(text.slice(0, matched.start)),
        Some(b'\'') => out.push_text(text.slice(matched.end, text.len())),
        Some(b'0'..=b'9') => {
            let one = digit(1).unwrap_or(0);
            let two = digit(2).map(|d| one * 10 + d).filter(|n| (1..=matched.groups).contains(n));
            let (number, len) = match two {
                Some(number) => (number, 3),
                None => (one, 2),
            };
            if !(1..=matched.groups).contains(&number) {
                out.push_text(template.slice(at, at + 2));
                return 2;
            }
            if let Some(group) = (matched.group)(number) {
                out.push_text(group);
            }
            return len;
        }
        Some(b'<') => {
            let close = (at + 2..template.len()).find(|&i| template.get(i) == Some(u16::from(b'>')));
            let (Some(named), Some(close)) = (named, close) else {
                out.push(u16::from(b'$'));
                return 1;
            };
            if let Some(group) = named(template.slice(at + 2, close)) {
                out.push_text(group);
            }
            return close + 1 - at;
        }
        Some(_) | None => {
            out.push(u16::from(b'$'));
            return 1;
        }
    }
    2
}

fn find_dollar(template: Str<'_>, from: usize) -> Option<usize> {
    super::search::find(template, Str::Latin1(b"$"), from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_stand_for_parts_of_the_match_and_anything_else_for_itself() {
        let text = Str::Latin1(b"one two three");
        let groups = [Some(Str::Latin1(b"t")), None];
        let whole = Str::Latin1(b"two");
        let matched = Matched { text, whole, start: 4, end: 7, groups: 2, group: |n: usize| groups[n - 1] };
        let expand = |template: &str| {
            let mut out = Text::with_capacity(0);
            let named = |name: Str<'_>| name.is_ascii("g").then_some(Str::Latin1(b"wo"));
            substitute(Str::Latin1(template.as_bytes()), &matched, Some(named), &mut out);
            out.as_str().to_string_lossy().into_owned()
        };
        for (template, expected) in [
            ("[$&]", "[two]"),
            ("[$`]", "[one ]"),
            ("[$']", "[ three]"),
            ("$$1", "$1"),
            ("$1$2$3$0$00", "t$3$0$00"),
            ("$01$10$11", "tt0t1"),
            ("$<g>$<x>$<", "wo$<"),
            ("a$", "a$"),
        ] {
            assert_eq!(expand(template), expected, "{template}");
        }
    }
}
