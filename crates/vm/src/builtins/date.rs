//! `Date`: the calendar for `date.js`, and the getters of plain dates. Local time is UTC.

use super::{Args, Row, slow};
use crate::code::ErrorKind;
use crate::exec::Window;
use crate::exec::state::{Exit, Res, State};
use crate::heap::Class;
use crate::text::date::{self, Fields, calendar, print};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("Now", |st, _, _| Ok(Value::number(st.now))),
    ("Date.now", |st, _, _| Ok(Value::number(st.now))),
    ("DateField", date_field),
    ("MakeDate", make_date),
    ("MakeFullYear", |st, w, a| {
        Ok(Value::number(calendar::make_full_year(st.primitive_to_number(a.get(w, 0))?)))
    }),
    ("TimeClip", |st, w, a| Ok(Value::number(calendar::time_clip(st.primitive_to_number(a.get(w, 0))?)))),
    ("DateParse", parse),
    ("DatePrint", print_date),
    ("Date.prototype.getTime", |st, _, a| Ok(Value::number(time_of(st, a.this)?))),
    ("Date.prototype.valueOf", |st, _, a| Ok(Value::number(time_of(st, a.this)?))),
    ("Date.prototype.getFullYear", |st, _, a| getter(st, a, YEAR)),
    ("Date.prototype.getUTCFullYear", |st, _, a| getter(st, a, YEAR)),
    ("Date.prototype.getMonth", |st, _, a| getter(st, a, MONTH)),
    ("Date.prototype.getUTCMonth", |st, _, a| getter(st, a, MONTH)),
    ("Date.prototype.getDate", |st, _, a| getter(st, a, DAY)),
    ("Date.prototype.getUTCDate", |st, _, a| getter(st, a, DAY)),
    ("Date.prototype.getHours", |st, _, a| getter(st, a, HOUR)),
    ("Date.prototype.getUTCHours", |st, _, a| getter(st, a, HOUR)),
    ("Date.prototype.getMinutes", |st, _, a| getter(st, a, MINUTE)),
    ("Date.prototype.getUTCMinutes", |st, _, a| getter(st, a, MINUTE)),
    ("Date.prototype.getSeconds", |st, _, a| getter(st, a, SECOND)),
    ("Date.prototype.getUTCSeconds", |st, _, a| getter(st, a, SECOND)),
    ("Date.prototype.getMilliseconds", |st, _, a| getter(st, a, MILLISECOND)),
    ("Date.prototype.getUTCMilliseconds", |st, _, a| getter(st, a, MILLISECOND)),
    ("Date.prototype.getDay", |st, _, a| getter(st, a, WEEKDAY)),
    ("Date.prototype.getUTCDay", |st, _, a| getter(st, a, WEEKDAY)),
];

// The numbers of the fields, as `date.js` uses them.
const YEAR: i32 = 0;
const MONTH: i32 = 1;
const DAY: i32 = 2;
const HOUR: i32 = 3;
const MINUTE: i32 = 4;
const SECOND: i32 = 5;
const MILLISECOND: i32 = 6;
const WEEKDAY: i32 = 7;

/// The time value of a date; anything else is for the JavaScript version to refuse.
fn time_of(st: &mut State, this: Value) -> Result<f64, Exit> {
    let cell = this.as_object().filter(|&o| st.heap.class(o) == Class::Date).and_then(|o| st.heap.cell_of(o));
    cell.and_then(|c| st.heap.cell(c).as_number()).ok_or(Exit::Slow)
}

fn getter(st: &mut State, args: Args, field: i32) -> Res {
    let time = time_of(st, args.this)?;
    Ok(read(time, field))
}

fn read(time: f64, field: i32) -> Value {
    let Some(f) = Fields::of(time) else { return Value::NAN };
    Value::int(match field {
        YEAR => f.year,
        MONTH => i32::from(f.month),
        DAY => i32::from(f.day),
        HOUR => i32::from(f.hour),
        MINUTE => i32::from(f.minute),
        SECOND => i32::from(f.second),
        MILLISECOND => i32::from(f.millisecond),
        _ => i32::from(f.weekday),
    })
}

/// `%DateField(time, field)`.
fn date_field(st: &mut State, w: &mut Window, args: Args) -> Res {
    let time = st.primitive_to_number(args.get(w, 0))?;
    Ok(read(time, args.get(w, 1).as_int().unwrap_or(0)))
}

/// `%MakeDate(year, month, day, hours, minutes, seconds, ms)`: MakeDate(MakeDay(…), MakeTime(…)), not clipped.
fn make_date(st: &mut State, w: &mut Window, args: Args) -> Res {
    let mut parts = [0.0; 7];
    for (n, part) in parts.iter_mut().enumerate() {
        *part = st.primitive_to_number(args.get(w, n as u32))?;
    }
    let [year, month, day, hour, minute, second, ms] = parts;
    let day = calendar::make_day(year, month, day);
    Ok(Value::number(calendar::make_date(day, calendar::make_time(hour, minute, second, ms))))
}

/// `%DateParse(text)`.
fn parse(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some(s) = args.get(w, 0).as_string() else { return slow() };
    st.burn(date::parse_cost(st.heap.string_length(s) as usize))?;
    st.heap.flatten(s)?;
    Ok(Value::number(date::parse(crate::exec::text(st.heap.str(s)))))
}

/// `%DatePrint(time, kind)`: 0 everything, 1 the day, 2 the time, 3 ISO, 4 UTC.
fn print_date(st: &mut State, w: &mut Window, args: Args) -> Res {
    let time = st.primitive_to_number(args.get(w, 0))?;
    let kind = args.get(w, 1).as_int().unwrap_or(0);
    let text = match (Fields::of(time), kind) {
        (None, 3) => return Err(st.throw(ErrorKind::Range, "Invalid time value")),
        (None, _) => "Invalid Date".to_owned(),
        (Some(f), 1) => print::day(&f),
        (Some(f), 2) => print::time(&f),
        (Some(f), 3) => print::iso(&f),
        (Some(f), 4) => print::utc(&f),
        (Some(f), _) => print::full(&f),
    };
    Ok(Value::string(st.heap.new_string(&text)?))
}
