//! Dates: reading, printing and the calendar, as recorded.

use outrigger_vm::text::date::{Fields, calendar, parse, print};

use super::{Row, check, spell_number};

#[test]
fn dates_are_read_and_printed_as_in_node() {
    check(include_str!("tables/dates.tsv"), 400, answer);
}

fn answer(row: &Row<'_>) -> Option<String> {
    let fields = || Fields::of(row.number(0));
    Some(match row.function {
        "parse" => spell_number(parse(row.units(0).as_str())),
        "toISOString" => print::iso(&fields()?),
        "toString" => print::full(&fields()?),
        "toDateString" => print::day(&fields()?),
        "toTimeString" => print::time(&fields()?),
        "toUTCString" => print::utc(&fields()?),
        "fields" => {
            let Fields { year, month, day, weekday, hour, minute, second, millisecond } = fields()?;
            format!("{year} {month} {day} {weekday} {hour} {minute} {second} {millisecond}")
        }
        "UTC" => {
            let year = calendar::make_full_year(row.number(0));
            let day = calendar::make_day(year, row.number(1), row.number(2));
            spell_number(calendar::time_clip(calendar::make_date(day, 0.0)))
        }
        _ => return None,
    })
}
