//! `WhiteSpace` and `LineTerminator`, and trimming by them.

use super::super::Str;

/// `WhiteSpace`, without line terminators.
pub fn is_white_space(unit: u16) -> bool {
    matches!(
        unit,
        0x09 | 0x0B | 0x0C | 0x20 | 0xA0 | 0xFEFF | 0x1680 | 0x2000..=0x200A | 0x202F | 0x205F | 0x3000
    )
}

/// `LineTerminator`.
pub fn is_line_terminator(unit: u16) -> bool {
    matches!(unit, 0x0A | 0x0D | 0x2028 | 0x2029)
}

/// `String.prototype.trim`.
pub fn trim(text: Str<'_>) -> Str<'_> {
    trim_start(trim_end(text))
}

/// `String.prototype.trimStart`.
pub fn trim_start(text: Str<'_>) -> Str<'_> {
    let spaces = text.units().take_while(|&unit| is_space(unit)).count();
    text.slice(spaces, text.len())
}

/// `String.prototype.trimEnd`.
pub fn trim_end(text: Str<'_>) -> Str<'_> {
    let mut end = text.len();
    while end > 0 && text.get(end - 1).is_some_and(is_space) {
        end -= 1;
    }
    text.slice(0, end)
}

fn is_space(unit: u16) -> bool {
    is_white_space(unit) || is_line_terminator(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trimming_removes_every_space_and_nothing_else() {
        assert_eq!(
            trim(Str::Wide(&[0xFEFF, 0x2029, 0x61, 0x20, 0x62, 0x3000, 0x0D])),
            Str::Wide(&[0x61, 0x20, 0x62])
        );
        assert_eq!(trim(Str::Latin1(b" \t\n")), Str::Latin1(b""));
        assert_eq!(trim_end(Str::Latin1(b" a ")), Str::Latin1(b" a"));
        // U+180E, U+200B and U+0085 are not white space.
        assert_eq!(trim(Str::Wide(&[0x180E, 0x200B, 0x85])).len(), 3);
    }
}
