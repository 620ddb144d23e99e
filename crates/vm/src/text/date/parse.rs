//! `Date.parse`: the standard's format first, then the forgiving one that V8 understands.
//!
//! The forgiving reader collects numbers into a day, a time and an offset as they come; words are months, halves of
//! the day or zones, and anything before the first number is ignored. Where V8 differs from the standard on text
//! that the standard leaves to implementations, V8 is followed.

use super::super::{Str, unicode};
use super::calendar::{make_date, make_day, make_time, time_clip};

/// The time value that the text stands for, NaN when it stands for none. Linear in the text.
///
/// ```
/// use outrigger_vm::text::{Str, date};
/// assert_eq!(date::parse(Str::Latin1(b"1970-01-01T00:00:01Z")), 1000.0);
/// assert_eq!(date::parse(Str::Latin1(b"Thu, 01 Jan 1970 00:00:02 GMT")), 2000.0);
/// assert!(date::parse(Str::Latin1(b"soon")).is_nan());
/// ```
pub fn parse(text: Str<'_>) -> f64 {
    let mut reader = Reader::new(text);
    let Some(rest) = reader.standard() else { return f64::NAN };
    match reader.forgiving(rest) {
        Some(()) => reader.finish().unwrap_or(f64::NAN),
        None => f64::NAN,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    /// The value of at most nine significant digits, and how many digits there were.
    Number(i64, usize),
    Symbol(u8),
    Word(Word, usize),
    Space,
    Unknown,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Word {
    Month(i64),
    /// The hours that it adds.
    HalfDay(i64),
    /// Hours from UTC.
    Zone(i64),
    /// The `T` between date and time.
    Separator,
    Other,
}

impl Token {
    fn is_number_of(self, digits: usize, range: std::ops::RangeInclusive<i64>) -> bool {
        matches!(self, Token::Number(value, len) if len == digits && range.contains(&value))
    }

    fn sign(self) -> Option<i64> {
        match self {
            Token::Symbol(b'+') => Some(1),
            Token::Symbol(b'-') => Some(-1),
            _ => None,
        }
    }
}

struct Reader<'a> {
    text: Str<'a>,
    at: usize,
    current: Token,
    day: Day,
    time: Time,
    zone: Zone,
}

impl<'a> Reader<'a> {
    fn new(text: Str<'a>) -> Reader<'a> {
        let mut reader = Reader {
            text,
            at: 0,
            current: Token::End,
            day: Day { parts: Vec::with_capacity(3), month: None, order: Order::Guess },
            time: Time { parts: Vec::with_capacity(4), half: None },
            zone: Zone { sign: None, hour: None, minute: None },
        };
        reader.next();
        reader
    }

    /// Reads the standard's format. `None`: no date at all; otherwise the token with which to go on.
    fn standard(&mut self) -> Option<Token> {
        if let Some(sign) = self.current.sign() {
            let token = self.next();
            if !self.current.is_number_of(6, 0..=999_999) {
                return Some(token);
            }
            let year = self.number();
            if sign < 0 && year == 0 {
                return Some(token);
            }
            self.day.add(sign * year)?;
        } else if self.current.is_number_of(4, 0..=9999) {
            let year = self.number();
            self.day.add(year)?;
        } else {
            return Some(self.next());
        }
        for range in [1..=12, 1..=31] {
            if !self.skip(b'-') {
                break;
            }
            if !self.current.is_number_of(2, range) {
                return Some(self.next());
            }
            let part = self.number();
            self.day.add(part)?;
        }
        if self.current != Token::Word(Word::Separator, 1) {
            if self.current != Token::End {
                return Some(self.next());
            }
        } else {
            self.next();
            self.standard_time()?;
        }
        if self.zone.hour.is_none() && self.time.parts.is_empty() {
            self.zone.set(0);
        }
        self.day.order = Order::Standard;
        Some(Token::End)
    }

    /// After the `T` nothing is forgiven.
    fn standard_time(&mut self) -> Option<()> {
        let hour = self.fixed(0..=24)?;
        self.time.add(hour)?;
        let sixty = if hour == 24 { 0..=0 } else { 0..=59 };
        self.skip(b':').then_some(())?;
        let minute = self.fixed(sixty.clone())?;
        self.time.add(minute)?;
        if self.skip(b':') {
            let second = self.fixed(sixty)?;
            self.time.add(second)?;
            if self.skip(b'.') {
                let fraction = self.milliseconds().filter(|&fraction| hour != 24 || fraction == 0)?;
                self.time.add(fraction)?;
            }
        }
        if self.current == Token::Word(Word::Zone(0), 1) {
            self.next();
            self.zone.set(0);
        } else if let Some(sign) = self.current.sign() {
            self.next();
            self.zone.sign = Some(sign);
            let (hour, minute) = if self.current.is_number_of(4, 0..=9999) {
                let both = self.number();
                (both / 100, both % 100)
            } else {
                let hour = self.fixed(0..=23)?;
                self.skip(b':').then_some(())?;
                (hour, self.fixed(0..=59)?)
            };
            if hour > 23 || minute > 59 {
                return None;
            }
            (self.zone.hour, self.zone.minute) = (Some(hour), Some(minute));
        }
        (self.current == Token::End).then_some(())
    }

    fn forgiving(&mut self, first: Token) -> Option<()> {
        let mut has_number = !self.day.parts.is_empty();
        let mut token = first;
        while token != Token::End {
            match token {
                Token::Number(value, _) => {
                    has_number = true;
                    self.forgiving_number(value)?;
                }
                Token::Word(Word::HalfDay(hours), _) if !self.time.parts.is_empty() => {
                    self.time.half = Some(hours)
                }
                Token::Word(Word::Month(month), _) => {
                    self.day.month = Some(month);
                    self.skip(b'-');
                }
                Token::Word(Word::Zone(hours), _) if has_number => self.zone.set(hours),
                // Words are ignored before the first number, unless they touch it.
                Token::Word(..) if has_number || matches!(self.current, Token::Number(..)) => return None,
                Token::Word(..) => {}
                Token::Symbol(b'+' | b'-') if self.zone.is_utc() || !self.time.parts.is_empty() => {
                    self.zone.sign = token.sign();
                    has_number = true;
                    self.forgiving_offset()?;
                }
                Token::Symbol(b'+' | b'-' | b')') if has_number => return None,
                Token::Symbol(_) | Token::Space | Token::Unknown | Token::End => {}
            }
            token = self.next();
        }
        Some(())
    }

    fn forgiving_number(&mut self, value: i64) -> Option<()> {
        if self.skip(b':') {
            if self.skip(b':') {
                if !self.time.parts.is_empty() {
                    return None;
                }
                self.time.add(value)?;
                return self.time.add(0);
            }
            self.time.add(value)?;
            self.skip(b'.');
            return Some(());
        }
        if self.skip(b'.') && self.time.expects(value) {
            self.time.add(value)?;
            let fraction = self.milliseconds()?;
            return self.time.add_final(fraction);
        }
        if self.zone.expects(value) {
            self.zone.minute = Some(value);
        } else if self.time.expects(value) {
            self.time.add_final(value)?;
            let may_follow = matches!(
                self.current,
                Token::End | Token::Space | Token::Word(Word::Zone(0), 1) | Token::Symbol(b'+' | b'-')
            );
            may_follow.then_some(())?;
        } else {
            self.day.add(value)?;
            self.skip(b'-');
        }
        Some(())
    }

    fn forgiving_offset(&mut self) -> Option<()> {
        let (value, len) = match self.current {
            Token::Number(value, len) => {
                self.next();
                (value, len)
            }
            _ => (0, 0),
        };
        (self.zone.hour, self.zone.minute) = match len {
            _ if self.current == Token::Symbol(b':') => (Some(value), None),
            1 | 2 => (Some(value), Some(0)),
            3 | 4 => (Some(value / 100), Some(value % 100)),
            _ => return None,
        };
        Some(())
    }

    fn finish(&self) -> Option<f64> {
        let (year, month, day) = self.day.resolve()?;
        let [hour, minute, second, millisecond] = self.time.resolve()?;
        let day = make_day(year as f64, (month - 1) as f64, day as f64);
        let time = make_time(hour as f64, minute as f64, second as f64, millisecond as f64);
        Some(time_clip(make_date(day, time) - self.zone.seconds() as f64 * 1000.0))
    }

    /// Two digits in a range.
    fn fixed(&mut self, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        self.current.is_number_of(2, range).then(|| self.number())
    }

    /// The number at hand, which the caller has seen.
    fn number(&mut self) -> i64 {
        match self.next() {
            Token::Number(value, _) => value,
            _ => 0,
        }
    }

    /// A fraction of a second, cut after three digits.
    fn milliseconds(&mut self) -> Option<i64> {
        let Token::Number(value, len) = self.current else { return None };
        self.next();
        Some(match len {
            1 => value * 100,
            2 => value * 10,
            _ => value / 10i64.pow(len.min(9) as u32 - 3),
        })
    }

    fn skip(&mut self, symbol: u8) -> bool {
        let found = self.current == Token::Symbol(symbol);
        if found {
            self.next();
        }
        found
    }

    /// Takes the token at hand and reads the one after it.
    fn next(&mut self) -> Token {
        let next = self.scan();
        std::mem::replace(&mut self.current, next)
    }

    fn scan(&mut self) -> Token {
        let Some(unit) = self.text.unit(self.at) else { return Token::End };
        let is_space = unicode::is_white_space(unit) || unicode::is_line_terminator(unit);
        match u8::try_from(unit) {
            Ok(b'0'..=b'9') => return self.scan_number(),
            Ok(byte @ (b':' | b'-' | b'+' | b'.' | b')')) => {
                self.at += 1;
                return Token::Symbol(byte);
            }
            Ok(b'(') => {
                self.skip_parentheses();
                return Token::Unknown;
            }
            Ok(_) | Err(_) => {}
        }
        if unit >= u16::from(b'A') && !is_space {
            return self.scan_word();
        }
        self.at += 1;
        if is_space { Token::Space } else { Token::Unknown }
    }

    fn scan_number(&mut self) -> Token {
        let start = self.at;
        let (mut value, mut significant) = (0, 0);
        while let Some(digit) =
            self.text.unit(self.at).map(|unit| unit.wrapping_sub(0x30)).filter(|&digit| digit < 10)
        {
            if (value != 0 || digit != 0) && significant < 9 {
                value = value * 10 + i64::from(digit);
                significant += 1;
            }
            self.at += 1;
        }
        Token::Number(value, self.at - start)
    }

    fn scan_word(&mut self) -> Token {
        let start = self.at;
        let mut prefix = [0u8; 3];
        while let Some(unit) = self.text.unit(self.at) {
            if unit < u16::from(b'A') || unicode::is_white_space(unit) || unicode::is_line_terminator(unit) {
                break;
            }
            if let Some(letter) = prefix.get_mut(self.at - start) {
                *letter = u8::try_from(unit).map_or(0xFF, |byte| byte.to_ascii_lowercase());
            }
            self.at += 1;
        }
        let len = self.at - start;
        Token::Word(word(prefix, len), len)
    }

    fn skip_parentheses(&mut self) {
        let mut depth = 0usize;
        while let Some(unit) = self.text.unit(self.at) {
            self.at += 1;
            match u8::try_from(unit) {
                Ok(b'(') => depth += 1,
                Ok(b')') => depth = depth.saturating_sub(1),
                Ok(_) | Err(_) => {}
            }
            if depth == 0 {
                return;
            }
        }
    }
}

fn word(prefix: [u8; 3], len: usize) -> Word {
    let months = b"janfebmaraprmayjunjulaugsepoctnovdec";
    if let Some(month) = months.chunks(3).position(|month| month == prefix) {
        return Word::Month(month as i64 + 1);
    }
    if len > 3 {
        return Word::Other;
    }
    match &prefix {
        b"am\0" => Word::HalfDay(0),
        b"pm\0" => Word::HalfDay(12),
        b"ut\0" | b"utc" | b"z\0\0" | b"gmt" => Word::Zone(0),
        b"edt" => Word::Zone(-4),
        b"cdt" | b"est" => Word::Zone(-5),
        b"cst" | b"mdt" => Word::Zone(-6),
        b"mst" | b"pdt" => Word::Zone(-7),
        b"pst" => Word::Zone(-8),
        b"t\0\0" => Word::Separator,
        _ => Word::Other,
    }
}

struct Day {
    parts: Vec<i64>,
    month: Option<i64>,
    order: Order,
}

#[derive(PartialEq)]
enum Order {
    /// Year, month, day, and the year as it is.
    Standard,
    Guess,
}

impl Day {
    fn add(&mut self, part: i64) -> Option<()> {
        add(&mut self.parts, 3, part)
    }

    /// Year, month from one, day.
    fn resolve(&self) -> Option<(i64, i64, i64)> {
        let part = |index: usize| self.parts.get(index).copied().unwrap_or(1);
        self.parts.first()?;
        let is_day = |part: i64| (1..=31).contains(&part);
        let (year, month, day) = match self.month {
            None if self.order == Order::Standard || !is_day(part(0)) => (part(0), part(1), part(2)),
            None => (part(2), part(0), part(1)),
            Some(month) if !is_day(part(0)) => (part(0), month, part(1)),
            Some(month) => (part(1), month, part(0)),
        };
        let year = match year {
            _ if self.order == Order::Standard => year,
            0..=49 => year + 2000,
            50..=99 => year + 1900,
            _ => year,
        };
        ((1..=12).contains(&month) && is_day(day)).then_some((year, month, day))
    }
}

struct Time {
    parts: Vec<i64>,
    half: Option<i64>,
}

impl Time {
    fn add(&mut self, part: i64) -> Option<()> {
        add(&mut self.parts, 4, part)
    }

    /// Adds the last part that was written; those after it are zero.
    fn add_final(&mut self, part: i64) -> Option<()> {
        self.add(part)?;
        self.parts.resize(4, 0);
        Some(())
    }

    fn expects(&self, part: i64) -> bool {
        match self.parts.len() {
            1 | 2 => (0..60).contains(&part),
            3 => (0..1000).contains(&part),
            _ => false,
        }
    }

    fn resolve(&self) -> Option<[i64; 4]> {
        let part = |index: usize| self.parts.get(index).copied().unwrap_or(0);
        let mut hour = part(0);
        if let Some(half) = self.half {
            (0..=12).contains(&hour).then_some(())?;
            hour = hour % 12 + half;
        }
        let parts = [hour, part(1), part(2), part(3)];
        let limits = [24, 60, 60, 1000];
        let fits = parts.iter().zip(limits).all(|(part, limit)| *part < limit) || parts == [24, 0, 0, 0];
        fits.then_some(parts)
    }
}

struct Zone {
    sign: Option<i64>,
    hour: Option<i64>,
    minute: Option<i64>,
}

impl Zone {
    fn set(&mut self, hours: i64) {
        self.sign = Some(if hours < 0 { -1 } else { 1 });
        (self.hour, self.minute) = (Some(hours.abs()), Some(0));
    }

    fn is_utc(&self) -> bool {
        (self.hour, self.minute) == (Some(0), Some(0))
    }

    fn expects(&self, part: i64) -> bool {
        self.hour.is_some() && self.minute.is_none() && (0..60).contains(&part)
    }

    fn seconds(&self) -> i64 {
        self.sign.unwrap_or(1) * (self.hour.unwrap_or(0) * 3600 + self.minute.unwrap_or(0) * 60)
    }
}

fn add(parts: &mut Vec<i64>, limit: usize, part: i64) -> Option<()> {
    (parts.len() < limit).then(|| parts.push(part))
}
