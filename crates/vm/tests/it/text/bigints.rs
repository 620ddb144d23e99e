//! BigInts: text, arithmetic and meetings with doubles, as recorded.

use std::cmp::Ordering;

use outrigger_vm::text::bigint::arithmetic::{self, BigIntError};
use outrigger_vm::text::bigint::{BigInt, double, print, read, read_literal};
use outrigger_vm::text::number::print::Radix;

use super::{Row, check, spell_number};

#[test]
fn bigints_print_read_and_compute_as_in_node() {
    check(include_str!("tables/bigints.tsv"), 4000, answer);
}

fn answer(row: &Row<'_>) -> Option<String> {
    let big = |index: usize| read_literal(row.arguments[index]).expect("the tables spell BigInts in decimal");
    let tell = |result: Result<BigInt, BigIntError>| match result {
        Ok(value) => print(&value, Radix::TEN),
        Err(_) => "!RangeError".to_owned(),
    };
    Some(match row.function {
        "toString" => print(&big(0), Radix::new(row.number(1) as u32)?),
        "Number" => spell_number(double::to_f64(&big(0))),
        "asIntN" => print(&arithmetic::as_int_n(row.number(0) as u64, &big(1)), Radix::TEN),
        "asUintN" => tell(arithmetic::as_uint_n(row.number(0) as u64, &big(1))),
        "shl" => tell(arithmetic::shift_left(&big(0), &big(1))),
        "shr" => tell(arithmetic::shift_right(&big(0), &big(1))),
        "compare" => match double::compare(&big(0), row.number(1)) {
            Some(Ordering::Less) => "<",
            Some(Ordering::Greater) => ">",
            Some(Ordering::Equal) => "=",
            None => "?",
        }
        .to_owned(),
        "add" => tell(arithmetic::add(&big(0), &big(1))),
        "sub" => tell(arithmetic::subtract(&big(0), &big(1))),
        "mul" => tell(arithmetic::multiply(&big(0), &big(1))),
        "div" => tell(arithmetic::divide(&big(0), &big(1))),
        "rem" => tell(arithmetic::remainder(&big(0), &big(1))),
        "pow" => tell(arithmetic::pow(&big(0), &big(1))),
        "and" => tell(Ok(big(0) & big(1))),
        "or" => tell(Ok(big(0) | big(1))),
        "xor" => tell(Ok(big(0) ^ big(1))),
        "BigInt" => double::from_f64(row.number(0)).map_or("!RangeError".to_owned(), |value| tell(Ok(value))),
        "parse" => read(row.units(0).as_str()).map_or("!SyntaxError".to_owned(), |value| tell(Ok(value))),
        _ => return None,
    })
}
