//! Text cut at its lone surrogates, for algorithms that only know well-formed strings.
//!
//! A lone surrogate has no case, no decomposition and no combining class, so nothing ever looks across one.

use super::super::Str;

/// A stretch of well-formed text, or the surrogate that ends it.
pub(crate) enum Segment {
    Text(String),
    LoneSurrogate(u16),
}

pub(crate) fn segments(text: Str<'_>) -> impl Iterator<Item = Segment> {
    let mut points = text.code_points().peekable();
    std::iter::from_fn(move || {
        let first = *points.peek()?;
        if char::from_u32(first).is_none() {
            points.next();
            return Some(Segment::LoneSurrogate(first as u16));
        }
        let mut segment = String::new();
        while let Some(char) = points.peek().copied().and_then(char::from_u32) {
            segment.push(char);
            points.next();
        }
        Some(Segment::Text(segment))
    })
}
