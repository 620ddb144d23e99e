//! The order of text in English, for `localeCompare` and `Intl.Collator`.
//!
//! A small collation algorithm over weights recorded from ICU (`order.txt`): Latin, Greek, Cyrillic, kana,
//! punctuation, symbols. Limits: other scripts come after these in code point order with their cases together;
//! contractions of several letters do not exist; non-spacing marks that are not listed share one accent weight.

use std::cmp::Ordering;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{decompose_canonical, is_combining_mark};

use super::super::Str;

/// Which differences count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensitivity {
    /// Letters only: a = á = A.
    Base,
    /// Letters and accents: a = A.
    Accent,
    /// Letters and case: a = á.
    Case,
    /// Everything.
    Variant,
}

/// Whether spaces and punctuation count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Punctuation {
    /// They come before symbols, digits and letters.
    Counts,
    /// They are skipped.
    Ignored,
}

/// How runs of digits compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// One by one: "10" < "2".
    Apart,
    /// By value: "2" < "10".
    Numeric,
}

/// Which case wins when nothing else differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseFirst {
    /// a < A, as in English.
    Lower,
    /// A < a.
    Upper,
}

/// The options of a collator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which differences count.
    pub sensitivity: Sensitivity,
    /// Whether spaces and punctuation count.
    pub punctuation: Punctuation,
    /// How runs of digits compare.
    pub digits: Digits,
    /// Which case wins when nothing else differs.
    pub case_first: CaseFirst,
}

impl Options {
    /// What `localeCompare` uses when it is told nothing.
    pub const ENGLISH: Options = Options {
        sensitivity: Sensitivity::Variant,
        punctuation: Punctuation::Counts,
        digits: Digits::Apart,
        case_first: CaseFirst::Lower,
    };
}

/// Compares two texts. Work is linear in both, much more than that of a plain comparison: see [`cost`].
///
/// ```
/// use outrigger_vm::text::{Text, unicode::collate::{Options, compare}};
/// use std::cmp::Ordering;
/// assert_eq!(compare(Text::of("résumé").as_str(), Text::of("Resume").as_str(), Options::ENGLISH), Ordering::Greater);
/// ```
pub fn compare(left: Str<'_>, right: Str<'_>, options: Options) -> Ordering {
    if left == right {
        return Ordering::Equal;
    }
    if let (Str::Latin1(left), Str::Latin1(right)) = (left, right)
        && options == Options::ENGLISH
        && let Some(order) = compare_ascii(left, right)
    {
        return order;
    }
    let (left, right) = (weigh(left, options), weigh(right, options));
    let letters = by_level(&left, &right, |weight| weight.primary != 0, |weight| weight.primary);
    let accents = || by_level(&left, &right, |_| true, |weight| u32::from(weight.secondary));
    let cases = || by_level(&left, &right, |weight| weight.primary != 0, |weight| u32::from(weight.upper));
    let variants = || by_level(&left, &right, |_| true, |weight| weight.tertiary_key(options.case_first));
    letters.then_with(|| match options.sensitivity {
        Sensitivity::Base => Ordering::Equal,
        Sensitivity::Accent => accents(),
        Sensitivity::Case => cases(),
        Sensitivity::Variant => accents().then_with(variants),
    })
}

/// The work of comparing two texts. The long way also needs about sixteen bytes for each unit meanwhile.
pub fn cost(left: Str<'_>, right: Str<'_>, options: Options) -> u64 {
    let is_short =
        |text| matches!(text, Str::Latin1(bytes) if bytes.iter().all(|byte| (0x20..0x7F).contains(byte)));
    let len = (left.len() as u64).saturating_add(right.len() as u64);
    if options == Options::ENGLISH && is_short(left) && is_short(right) { 1 + len } else { 1 + 16 * len }
}

/// ASCII has no accents and no marks, so one pass decides; `None` when there is something else or a control.
fn compare_ascii(left: &[u8], right: &[u8]) -> Option<Ordering> {
    let weights = &TABLE.ascii;
    let weigh = |byte: u8| weights.get(usize::from(byte)).copied().flatten();
    let mut tie = Ordering::Equal;
    for (at, &byte) in left.iter().enumerate() {
        let here = weigh(byte)?;
        let Some(&other) = right.get(at) else {
            // The rest must be plain too: controls weigh nothing.
            return left[at..].iter().all(|&byte| weigh(byte).is_some()).then_some(Ordering::Greater);
        };
        let there = weigh(other)?;
        if here.primary != there.primary {
            return Some(here.primary.cmp(&there.primary));
        }
        tie = tie.then(here.tertiary.cmp(&there.tertiary));
    }
    match right.get(left.len()..) {
        Some([]) | None => Some(tie),
        Some(rest) => rest.iter().all(|&byte| weigh(byte).is_some()).then_some(Ordering::Less),
    }
}

/// What one element of a text weighs on each level; a mark has no primary weight.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Weight {
    primary: u32,
    secondary: u16,
    tertiary: u16,
    upper: bool,
}

impl Weight {
    fn tertiary_key(&self, case_first: CaseFirst) -> u32 {
        let case = match case_first {
            CaseFirst::Lower => 0,
            CaseFirst::Upper => u32::from(!self.upper),
        };
        case << 16 | u32::from(self.tertiary)
    }
}

fn by_level(
    left: &[Weight],
    right: &[Weight],
    counts: impl Fn(&Weight) -> bool,
    key: impl Fn(&Weight) -> u32,
) -> Ordering {
    let level = |weights| -> Vec<u32> {
        <[Weight]>::iter(weights).filter(|weight| counts(weight)).map(&key).collect()
    };
    level(left).cmp(&level(right))
}

fn weigh(text: Str<'_>, options: Options) -> Vec<Weight> {
    let table = &*TABLE;
    let mut out = Vec::with_capacity(text.len() + 2);
    // A lone surrogate weighs like the replacement character.
    let chars = text.code_points().map(|point| char::from_u32(point).unwrap_or('\u{FFFD}'));
    let mut chars = chars.nfc().peekable();
    while let Some(char) = chars.next() {
        if options.digits == Digits::Numeric && char.is_ascii_digit() {
            let mut digits = vec![char];
            while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            table.number(&digits, &mut out);
            continue;
        }
        let before = out.len();
        table.push(char, &mut out);
        if options.punctuation == Punctuation::Ignored {
            let is_skipped =
                out[before..].iter().any(|weight| (1..=table.last_punctuation).contains(&weight.primary));
            if is_skipped {
                out.truncate(before);
            }
        }
    }
    out
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::read(include_str!("order.txt")));

/// Code points in order, each with its stretch of `weights`.
struct Table {
    points: Vec<(u32, u32, u32)>,
    weights: Vec<Weight>,
    last_punctuation: u32,
    /// The single weight of each ASCII character; controls have none.
    ascii: [Option<Weight>; 128],
}

/// Primary weights are this far apart, so that code points without a line of their own fit between two lines.
const STEP: u32 = 1 << 20;

/// Where letters without a line of their own begin; the lines end long before.
const UNLISTED: u32 = 0xF000_0000;

impl Table {
    fn read(lines: &str) -> Table {
        let mut table =
            Table { points: Vec::new(), weights: Vec::new(), last_punctuation: 0, ascii: [None; 128] };
        let mut primary = 0;
        let mut long = Vec::new();
        for line in lines.lines() {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            match kind {
                "ignored" => rest.split(' ').for_each(|point| table.add(parse(point), &[])),
                "marks" => table.group(0, 2, rest),
                "long" => long.push(rest),
                _ => {
                    primary += STEP;
                    if kind == "punct" {
                        table.last_punctuation = primary;
                    }
                    table.group(primary, 1, rest);
                }
            }
        }
        table.points.sort_unstable();
        // What a long one stands for must be known before it is.
        let longer: Vec<(u32, Vec<Weight>)> = long.into_iter().filter_map(|line| table.long(line)).collect();
        longer.iter().for_each(|(point, weights)| table.add(*point, weights));
        table.points.sort_unstable();
        for byte in 0..128u8 {
            if let Some([weight]) = table.listed(char::from(byte)) {
                table.ascii[usize::from(byte)] = Some(*weight);
            }
        }
        table
    }

    /// One primary weight; `<` and `,` separate accents and cases.
    fn group(&mut self, primary: u32, first: u16, members: &str) {
        let (mut secondary, mut tertiary) = (first, 0);
        let mut start = 0;
        for end in members.match_indices(['<', ',', '=']).map(|(at, _)| at).chain([members.len()]) {
            let point = parse(&members[start..end]);
            let upper = char::from_u32(point).is_some_and(char::is_uppercase);
            self.add(point, &[Weight { primary, secondary, tertiary, upper }]);
            match members.as_bytes().get(end) {
                // Letters that differ like accents come after the marks' own weights.
                Some(b'<') if primary != 0 => (secondary, tertiary) = (secondary.max(1000) + 1, 0),
                Some(b'<') => (secondary, tertiary) = (secondary + 1, 0),
                Some(b',') => tertiary += 1,
                Some(_) | None => {}
            }
            start = end + 1;
        }
    }

    fn long(&self, line: &str) -> Option<(u32, Vec<Weight>)> {
        let mut fields = line.split(' ');
        let (point, parts, level) = (fields.next()?, fields.next()?, fields.next()?);
        let mut weights = Vec::new();
        for part in parts.split('+') {
            self.push(char::from_u32(parse(part))?, &mut weights);
        }
        match level {
            "<" => weights.first_mut()?.secondary += 1000,
            "," => weights.iter_mut().for_each(|weight| weight.tertiary += 1000),
            _ => {}
        }
        Some((parse(point), weights))
    }

    fn add(&mut self, point: u32, weights: &[Weight]) {
        self.points.push((point, self.weights.len() as u32, weights.len() as u32));
        self.weights.extend_from_slice(weights);
    }

    fn listed(&self, char: char) -> Option<&[Weight]> {
        let found = self.points.binary_search_by_key(&u32::from(char), |&(point, ..)| point).ok()?;
        let &(_, start, len) = self.points.get(found)?;
        self.weights.get(start as usize..(start + len) as usize)
    }

    /// Appends the weights of a character, of its parts if it has no line of its own.
    fn push(&self, char: char, out: &mut Vec<Weight>) {
        if let Some(weights) = self.listed(char) {
            return out.extend_from_slice(weights);
        }
        decompose_canonical(char, |part| match self.listed(part) {
            Some(weights) => out.extend_from_slice(weights),
            None => out.push(self.unlisted(part)),
        });
    }

    /// Emoji and other symbols come before currencies, letters after everything.
    fn unlisted(&self, char: char) -> Weight {
        if is_combining_mark(char) {
            return Weight { primary: 0, secondary: 999, tertiary: 0, upper: false };
        }
        if matches!(char, '\u{2400}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}') {
            let currency = self
                .listed('\u{A4}')
                .and_then(|weights| weights.first())
                .map_or(STEP, |weight| weight.primary);
            let primary = currency - STEP + u32::from(char);
            return Weight { primary, secondary: 1, tertiary: 0, upper: false };
        }
        let lower = char.to_lowercase().next().unwrap_or(char);
        let upper = lower != char;
        Weight { primary: UNLISTED + u32::from(lower), secondary: 1, tertiary: u16::from(upper), upper }
    }

    /// A run of digits by value: the place of digits, how many there are, then they.
    fn number(&self, digits: &[char], out: &mut Vec<Weight>) {
        let zeros = digits.iter().take_while(|&&digit| digit == '0').count();
        let digits = &digits[zeros.min(digits.len() - 1)..];
        self.push('0', out);
        out.push(Weight { primary: 1 + digits.len() as u32, secondary: 1, tertiary: 0, upper: false });
        digits.iter().for_each(|&digit| self.push(digit, out));
    }
}

fn parse(hex: &str) -> u32 {
    u32::from_str_radix(hex, 16).unwrap_or(0)
}
