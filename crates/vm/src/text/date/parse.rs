//! `Date.parse`: the standard's format first, then the forgiving one that V8 understands.
//!
//! The forgiving reader collects numbers into a day, a time and an offset as they come; words are months, halves of
//! the day or zones, and anything before the first number is ignored. Where V8 differs from the standard on text
//! that the standard leaves to implementations, V8 is followed.

mod parts;
mod tokens;

use self::parts::{Day, Order, Time, Zone};
use self::tokens::{Scanner, Token, Word};
use super::super::Str;
use super::calendar::{make_date, make_day, make_time, time_clip};

/// The work of reading a date from `len` code units.
pub fn parse_cost(len: usize) -> u64 {
    1 + 2 * len as u64
}

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

struct Reader<'a> {
    scanner: Scanner<'a>,
    current: Token,
    day: Day,
    time: Time,
    zone: Zone,
}

impl<'a> Reader<'a> {
    fn new(text: Str<'a>) -> Reader<'a> {
        let mut reader = Reader {
            scanner: Scanner::new(text),
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
        let next = self.scanner.scan();
        std::mem::replace(&mut self.current, next)
    }
}
