//! Unicode as the language uses it: white space, identifiers, case, normalization, and the order of text in English.

mod case;
pub mod collate;
mod normal;
mod segments;
mod space;

pub use case::{MAX_GROWTH as MAX_CASE_GROWTH, case_cost, to_lower_case, to_upper_case};
pub use normal::{Form, is_well_formed, normalize, normalize_cost, to_well_formed};
pub use space::{is_line_terminator, is_white_space, trim, trim_end, trim_start};

/// Whether a code point may start an identifier (`ID_Start`, `$`, `_`).
///
/// ```
/// assert!(outrigger_vm::text::unicode::is_id_start(0x3C0));
/// assert!(!outrigger_vm::text::unicode::is_id_start(0xD800));
/// ```
pub fn is_id_start(point: u32) -> bool {
    match char::from_u32(point) {
        Some('$' | '_') => true,
        // `ID_Start` of the standard adds the stable exceptions that XID removes.
        Some(char) => unicode_ident::is_xid_start(char) || is_id_not_xid_start(point),
        None => false,
    }
}

/// Whether a code point may continue an identifier (`ID_Continue`, `$`, ZWNJ, ZWJ).
pub fn is_id_continue(point: u32) -> bool {
    match char::from_u32(point) {
        Some('$' | '\u{200C}' | '\u{200D}') => true,
        Some(char) => unicode_ident::is_xid_continue(char) || is_id_not_xid_continue(point),
        None => false,
    }
}

/// `ID_Start` code points that are not closed under NFKC and so are missing from `XID_Start`.
fn is_id_not_xid_start(point: u32) -> bool {
    matches!(point, 0xE33 | 0xEB3 | 0xFF9E | 0xFF9F) || is_id_not_xid_continue(point)
}

/// `ID_Continue` code points that are not closed under NFKC and so are missing from `XID_Continue`.
fn is_id_not_xid_continue(point: u32) -> bool {
    match point {
        0x37A | 0x309B | 0x309C | 0xFC5E..=0xFC63 | 0xFDFA | 0xFDFB => true,
        0xFE70..=0xFE7E => point.is_multiple_of(2),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_follow_id_and_not_xid() {
        assert!([0x24, 0x5F, 0x61, 0x2118, 0x37A, 0xE33, 0x20000].into_iter().all(is_id_start));
        assert!(![0x30, 0x200C, 0x2E2F, 0x110000, 0xDC00].into_iter().any(is_id_start));
        assert!([0x30, 0x200C, 0x200D, 0x387, 0xFE7E, 0xFE71].into_iter().all(is_id_continue));
        assert!(![0x2D, 0x200B, 0x2E2F, 0xD800].into_iter().any(is_id_continue));
    }
}
