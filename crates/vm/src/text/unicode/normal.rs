//! `normalize`, `isWellFormed` and `toWellFormed`.

use unicode_normalization::{IsNormalized, UnicodeNormalization as _};

use super::super::{Str, Text};
use super::segments::{Segment, segments};

/// A normalization form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Composed.
    Nfc,
    /// Decomposed.
    Nfd,
    /// Composed, compatibility characters replaced.
    Nfkc,
    /// Decomposed, compatibility characters replaced.
    Nfkd,
}

impl Form {
    /// The form that a guest names.
    pub fn named(name: Str<'_>) -> Option<Form> {
        let forms: [(&[u8], Form); 4] =
            [(b"NFC", Form::Nfc), (b"NFD", Form::Nfd), (b"NFKC", Form::Nfkc), (b"NFKD", Form::Nfkd)];
        forms.into_iter().find(|(spelling, _)| name == Str::Latin1(spelling)).map(|(_, form)| form)
    }

    /// A result has at most this many code units for each one of the input; charge for it before.
    pub fn max_growth(self) -> usize {
        match self {
            Form::Nfc => 3,
            Form::Nfd => 4,
            // One Arabic ligature is eighteen letters long.
            Form::Nfkc | Form::Nfkd => 18,
        }
    }
}

/// The work of normalizing a text.
pub fn normalize_cost(text: Str<'_>, form: Form) -> u64 {
    match (text, form) {
        (Str::Latin1(bytes), _) if bytes.is_ascii() => super::super::linear_cost(bytes.len()),
        (_, Form::Nfc | Form::Nfd) => 1 + 10 * text.len() as u64,
        // One unit may become eighteen.
        (_, Form::Nfkc | Form::Nfkd) => 1 + 60 * text.len() as u64,
    }
}

/// `String.prototype.normalize`, after [`normalize_cost`]; `None` when the text is in that form already.
///
/// ```
/// use outrigger_vm::text::{Text, unicode::{Form, normalize}};
/// assert_eq!(normalize(Text::of("é").as_str(), Form::Nfd), Some(Text::of("e\u{301}")));
/// assert_eq!(normalize(Text::of("é").as_str(), Form::Nfc), None);
/// ```
pub fn normalize(text: Str<'_>, form: Form) -> Option<Text> {
    if let Str::Latin1(bytes) = text
        && (form == Form::Nfc || bytes.is_ascii())
    {
        return None;
    }
    let points = text.code_points().map(|point| char::from_u32(point).unwrap_or('\u{0}'));
    let quick = match form {
        Form::Nfc => unicode_normalization::is_nfc_quick(points),
        Form::Nfd => unicode_normalization::is_nfd_quick(points),
        Form::Nfkc => unicode_normalization::is_nfkc_quick(points),
        Form::Nfkd => unicode_normalization::is_nfkd_quick(points),
    };
    if quick == IsNormalized::Yes {
        return None;
    }
    let mut out = Text::with_capacity(text.len());
    for segment in segments(text) {
        let mut push = |char: char| out.push_code_point(char.into());
        match segment {
            Segment::LoneSurrogate(unit) => out.push(unit),
            Segment::Text(text) => match form {
                Form::Nfc => text.nfc().for_each(&mut push),
                Form::Nfd => text.nfd().for_each(&mut push),
                Form::Nfkc => text.nfkc().for_each(&mut push),
                Form::Nfkd => text.nfkd().for_each(&mut push),
            },
        }
    }
    Some(out)
}

/// `String.prototype.isWellFormed`.
pub fn is_well_formed(text: Str<'_>) -> bool {
    match text {
        Str::Latin1(_) => true,
        Str::Wide(_) => text.code_points().all(|point| char::from_u32(point).is_some()),
    }
}

/// `String.prototype.toWellFormed`; `None` when nothing is to be replaced.
pub fn to_well_formed(text: Str<'_>) -> Option<Text> {
    if is_well_formed(text) {
        return None;
    }
    let mut out = Text::with_capacity(text.len());
    for point in text.code_points() {
        out.push_code_point(char::from_u32(point).map_or(0xFFFD, u32::from));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_named_exactly() {
        assert_eq!(Form::named(Str::Latin1(b"NFKC")), Some(Form::Nfkc));
        assert_eq!(Form::named(Str::Latin1(b"nfc")), None);
    }

    #[test]
    fn no_code_point_grows_more_than_its_form_says() {
        for char in (0..0x11_0000).filter_map(char::from_u32) {
            let mut units = [0; 2];
            let text = Str::Wide(char.encode_utf16(&mut units));
            for form in [Form::Nfc, Form::Nfd, Form::Nfkc, Form::Nfkd] {
                let len = normalize(text, form).map_or(0, |text| text.len());
                assert!(len <= form.max_growth() * text.len(), "{char:?} {form:?} {len}");
            }
            for cased in [super::super::to_lower_case(text), super::super::to_upper_case(text)] {
                assert!(cased.len() <= super::super::MAX_CASE_GROWTH * text.len(), "{char:?}");
            }
        }
    }
}
