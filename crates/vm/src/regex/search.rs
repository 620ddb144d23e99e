//! Where a match can begin: skips what cannot start one, without running a single instruction.

use super::exec::{ExecError, Fuel};
use super::program::{Program, Search};
use super::text::Unit;

/// The next position at or after `at` that is worth a try.
pub(super) fn next_start<T: Unit>(
    program: &Program,
    text: &[T],
    at: usize,
    fuel: &mut Fuel,
) -> Result<Option<usize>, ExecError> {
    let rest = text.get(at..).unwrap_or(&[]);
    let found = match program.search {
        Search::Everywhere => return Ok(Some(at)),
        Search::Anchored => return Ok((at == 0).then_some(0)),
        Search::Literal { at: literal, len } => {
            let wanted = &program.literals[literal as usize..(literal + len) as usize];
            T::find_run(rest, wanted)
        }
        Search::First => {
            let first = &program.first;
            let found = match program.first_bytes {
                Some((bytes, count)) if !(T::HAS_PAIRS && first.high != 0) => T::find_any(rest, bytes, count),
                Some(_) | None => rest.iter().position(|unit| first.has(unit.unit())),
            };
            found.or(first.end.then_some(rest.len()))
        }
    };
    fuel.charge(found.unwrap_or(rest.len()) as u64 / 16)?;
    let mut found = found.map(|skipped| at + skipped);
    // The second half of a pair is no place to begin under `u` and `v`.
    if let Some(place) = found.filter(|&place| place > at)
        && program.flags.reads_code_points()
        && T::is_inside_pair(text, place)
    {
        found = Some(place - 1);
    }
    Ok(found)
}
