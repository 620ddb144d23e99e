//! Numbers: printing, reading and arithmetic, as recorded.

use outrigger_vm::text::number::print::{Buffer, Radix, decimal, radix};
use outrigger_vm::text::number::{convert, digits, math, read};

use super::{Row, check, spell_number};

#[test]
fn numbers_print_read_and_compute_as_in_node() {
    check(include_str!("tables/numbers.tsv"), 3000, answer);
}

fn answer(row: &Row<'_>) -> Option<String> {
    let refused = |_| "!RangeError".to_owned();
    let first = || row.number(0);
    Some(match row.function {
        "toString" => decimal(first(), &mut Buffer::new()).to_owned(),
        "radix" => radix(first(), Radix::new(row.number(1) as u32)?),
        "toFixed" => digits::to_fixed(first(), row.number(1)).unwrap_or_else(refused),
        "toPrecision" => digits::to_precision(first(), row.number(1)).unwrap_or_else(refused),
        "toExponential" => {
            let places = (row.arguments[1] != "-").then(|| row.number(1));
            digits::to_exponential(first(), places).unwrap_or_else(refused)
        }
        "toInt32" => convert::to_int32(first()).to_string(),
        "clz32" => math::clz32(convert::to_uint32(first())).to_string(),
        "Number" => spell_number(read::string_to_number(row.units(0).as_str())),
        "parseFloat" => spell_number(read::parse_float(row.units(0).as_str())),
        "parseInt" => spell_number(read::parse_int(row.units(0).as_str(), row.number(1) as i32)),
        "round" => spell_number(math::round(first())),
        "fround" => spell_number(math::fround(first())),
        "sign" => spell_number(math::sign(first())),
        "trunc" => spell_number(first().trunc()),
        "pow" => spell_number(math::pow(first(), row.number(1))),
        "rem" => spell_number(math::remainder(first(), row.number(1))),
        "max" => spell_number(math::max(first(), row.number(1))),
        "min" => spell_number(math::min(first(), row.number(1))),
        "hypot" => spell_number(math::hypot(&[first(), row.number(1)])),
        _ => return None,
    })
}
