//! JSON text: quoting, events and error messages, as recorded.

use outrigger_vm::text::json::{Event, JsonError, Reader, Unit, quote};
use outrigger_vm::text::number::print::{Buffer, decimal};
use outrigger_vm::text::{Str, Text};

use super::{Row, check, spell};

#[test]
fn json_is_quoted_read_and_refused_as_in_node() {
    check(include_str!("tables/json.tsv"), 100, answer);
}

fn answer(row: &Row<'_>) -> Option<String> {
    let text = row.units(0);
    let again = match row.function {
        "quote" => {
            let mut out = Text::with_capacity(0);
            quote(text.as_str(), &mut out);
            return Some(spell(out.as_str()));
        }
        "error" | "again" => match text.as_str() {
            Str::Latin1(bytes) => {
                let wide: Vec<u16> = bytes.iter().map(|&byte| u16::from(byte)).collect();
                assert_eq!(print_again(bytes), print_again(&wide), "both widths agree");
                print_again(bytes)
            }
            Str::Wide(units) => print_again(units),
        },
        _ => return None,
    };
    Some(spell(again.unwrap_or_else(|error| error.message(text.as_str())).as_str()))
}

/// Reads a text and prints it from its events.
fn print_again<U: Unit>(source: &[U]) -> Result<Text, JsonError> {
    let mut reader = Reader::new(source, 1000);
    let mut out = Text::with_capacity(source.len());
    let mut comma = "";
    loop {
        let event = reader.next_event()?;
        if !matches!(event, Event::ObjectEnd | Event::ArrayEnd | Event::End) {
            out.push_str(comma);
        }
        comma = ",";
        match event {
            Event::ObjectStart | Event::ArrayStart => {
                out.push_str(if event == Event::ObjectStart { "{" } else { "[" });
                comma = "";
            }
            Event::ObjectEnd => out.push_str("}"),
            Event::ArrayEnd => out.push_str("]"),
            Event::Key(token) => {
                quote(reader.decode(token).as_str(), &mut out);
                out.push_str(":");
                comma = "";
            }
            Event::String(token) => quote(reader.decode(token).as_str(), &mut out),
            Event::Number(value) => out.push_str(decimal(value, &mut Buffer::new())),
            Event::Integer(value) => out.push_str(&value.to_string()),
            Event::True => out.push_str("true"),
            Event::False => out.push_str("false"),
            Event::Null => out.push_str("null"),
            Event::End => return Ok(out),
        }
    }
}
