//! Regular expressions against another engine's, `regress`: same pattern, same text, same match.

use crate::Choices;
use outrigger_vm::heap::Str;
use outrigger_vm::regex::{Flags, Fuel, Program, Scratch, StackBytes, compile, exec};
use std::ops::Range;

/// The other engine has no limit: what costs us more than this is not asked of it.
const FUEL: u64 = 5_000;

/// The first byte chooses flags; the rest is the pattern, a zero, and the text.
pub fn pattern(input: &[u8]) {
    let mut choices = Choices::new(input);
    let flags = choices.pick(&["", "i", "m", "s", "u", "iu", "ms"]);
    let Ok(rest) = std::str::from_utf8(choices.rest) else { return };
    let (pattern, text) = rest.split_once('\0').unwrap_or((rest, "aabb ab\nA 12_x"));
    if pattern.len() > 60 || text.len() > 100 {
        return;
    }
    let units: Vec<u16> = pattern.encode_utf16().collect();
    let Some(parsed) = Flags::parse(flags.encode_utf16()) else { return };
    let Ok(ours) = compile(Str::Wide(&units), parsed) else { return };
    let text: Vec<u16> = text.encode_utf16().collect();
    let Some(found) = find(&ours, &text) else { return };
    // Letters beyond ASCII fold by the version of Unicode, which differs; the rest does not.
    let comparable = pattern.is_ascii() && !pattern.contains("\\p") && !pattern.contains("\\P");
    let Ok(theirs) = regress::Regex::with_flags(pattern, flags) else { return };
    if !comparable || pattern.contains("(?<") {
        return;
    }
    let expected = match flags.contains('u') {
        true => theirs.find_from_utf16(&text, 0).next(),
        false => theirs.find_from_ucs2(&text, 0).next(),
    };
    let expected = expected.map(|found| found.groups().collect::<Vec<_>>());
    assert_eq!(found, expected, "/{pattern}/{flags}");
}

/// Where the groups are; `None` when it takes too long.
#[expect(clippy::option_option, reason = "the outer is about cost, the inner about the answer")]
fn find(program: &Program, text: &[u16]) -> Option<Option<Vec<Option<Range<usize>>>>> {
    let mut scratch = Scratch::new(StackBytes(1 << 20));
    let found = exec(program, Str::Wide(text), 0, &mut Fuel(FUEL), &mut scratch).ok()?;
    Some(found.map(|captures| (0..captures.len()).map(|group| captures.get(group)).collect()))
}
