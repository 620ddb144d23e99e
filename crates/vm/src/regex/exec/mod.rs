//! The matcher: backtracking over an explicit stack, paid for with fuel.
//!
//! Two stacks live in a [`Scratch`] that the caller reuses. *Choices* say where to go on after a failure;
//! the *trail* says which slots to restore then. A lookaround that holds drops its choices and keeps its trail,
//! so captures made inside it are undone with everything else. One unit of fuel is one instruction, or up to
//! sixteen units of text passed over by a scan; a single scan never passes the text's end before it is charged.

mod machine;
mod scan;

use crate::heap::Str;
use crate::regex::Flags;
use crate::regex::program::{Program, Search};
use crate::regex::search::next_start;
use crate::regex::text::Unit;
use machine::{Choice, Machine, UNSET};
use std::ops::Range;

/// Steps that a match may still take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuel(pub u64);

impl Fuel {
    /// Takes `units` away, or says that there are not so many.
    pub(super) fn charge(&mut self, units: u64) -> Result<(), ExecError> {
        match self.0.checked_sub(units) {
            Some(rest) => {
                self.0 = rest;
                Ok(())
            }
            None => {
                self.0 = 0;
                Err(ExecError::OutOfFuel)
            }
        }
    }
}

/// The bytes that the matcher's stacks may grow to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackBytes(pub usize);

/// Why a match was given up. The text may or may not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// All fuel is used.
    #[error("the regular expression used all its fuel")]
    OutOfFuel,
    /// The stacks would grow past their limit.
    #[error("the regular expression needs more than its share of stack")]
    StackLimit,
    /// Positions are 32 bits wide.
    #[error("the text is too long for a regular expression")]
    TextTooLong,
}

/// Memory that matches use one after the other.
#[derive(Debug)]
pub struct Scratch {
    choices: Vec<Choice>,
    trail: Vec<(u32, u32)>,
    slots: Vec<u32>,
    max_choices: usize,
    max_trail: usize,
}

impl Scratch {
    /// Half of `limit` is for choices, half for the trail.
    #[must_use]
    pub fn new(limit: StackBytes) -> Self {
        Self {
            choices: Vec::new(),
            trail: Vec::new(),
            slots: Vec::new(),
            max_choices: limit.0 / 2 / size_of::<Choice>(),
            max_trail: limit.0 / 2 / size_of::<(u32, u32)>(),
        }
    }
}

impl Scratch {
    /// Gives memory above so many bytes back.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.choices.clear();
        self.choices.shrink_to(bytes / 2 / size_of::<Choice>());
        self.trail.clear();
        self.trail.shrink_to(bytes / 2 / size_of::<(u32, u32)>());
    }
}

/// Where the groups of a match are, in units.
#[derive(Clone, Copy, Debug)]
pub struct Captures<'a> {
    slots: &'a [u32],
}

impl Captures<'_> {
    /// The range of a group; group 0 is the whole match and always there.
    #[must_use]
    pub fn get(&self, group: usize) -> Option<Range<usize>> {
        match (self.slots.get(group * 2), self.slots.get(group * 2 + 1)) {
            (Some(&start), Some(&end)) if start != UNSET && end != UNSET => {
                Some(start as usize..end as usize)
            }
            _ => None,
        }
    }

    /// How many groups there are, group 0 included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() / 2
    }

    /// Never: group 0 is always there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

/// Finds the first match at or after `start`, or exactly at `start` if the pattern is sticky.
///
/// # Errors
/// If fuel or stack run out before the answer is known.
pub fn exec<'s>(
    program: &Program,
    text: Str<'_>,
    start: usize,
    fuel: &mut Fuel,
    scratch: &'s mut Scratch,
) -> Result<Option<Captures<'s>>, ExecError> {
    let found = match text {
        Str::Latin1(units) => find(program, units, start, fuel, scratch)?,
        Str::Wide(units) => find(program, units, start, fuel, scratch)?,
    };
    let slots = scratch.slots.get(..program.groups as usize * 2).unwrap_or(&[]);
    Ok(found.then_some(Captures { slots }))
}

fn find<T: Unit>(
    program: &Program,
    text: &[T],
    start: usize,
    fuel: &mut Fuel,
    scratch: &mut Scratch,
) -> Result<bool, ExecError> {
    if text.len() >= (u32::MAX / 2) as usize {
        return Err(ExecError::TextTooLong);
    }
    if start > text.len() {
        return Ok(false);
    }
    let mut at = start;
    // A start inside a pair is a start before it: the text is code points.
    if program.flags.reads_code_points() && T::is_inside_pair(text, at) {
        at -= 1;
    }
    let sticky = program.flags.has(Flags::STICKY);
    let mut machine = Machine { program, text, fuel, scratch };
    loop {
        if !sticky {
            match next_start(program, text, at, machine.fuel)? {
                Some(next) => at = next,
                None => return Ok(false),
            }
        }
        if text.len() - at < program.min_len as usize {
            return Ok(false);
        }
        if machine.run(at)? {
            return Ok(true);
        }
        if sticky || program.search == Search::Anchored || at >= text.len() {
            return Ok(false);
        }
        at += if program.flags.reads_code_points() { T::point_at(text, at).1 } else { 1 };
    }
}
