//! Programs that were read before: all snapshots of a run have the same program in them, and reading it once is enough.
//!
//! Reading a program takes most of the time of restoring a small machine: it is decoded and checked. The same bytes are the
//! same program, so that nothing about them needs to be checked again.

use super::bytes::{Read, Reader, Writer, require};
use super::program;
use crate::exec::Code;
use std::sync::Arc;

/// Programs out of snapshots, the latest first, for [`crate::exec::Vm::restore_knowing`]. What was not used for longest goes
/// when their memory exceeds a budget.
#[derive(Debug)]
pub struct KnownPrograms {
    known: Vec<Known>,
    spent: usize,
    budget: usize,
}

#[derive(Debug)]
struct Known {
    /// The bytes it was read from: all of them and no others.
    bytes: Arc<[u8]>,
    /// What reading it took out of the budget of its snapshot.
    cost: usize,
    /// The image's code, and what the bytes say.
    code: Arc<Code>,
}

impl KnownPrograms {
    /// Keeps programs of so many bytes altogether. With none, every program is read anew.
    #[must_use]
    pub fn within(budget: usize) -> KnownPrograms {
        KnownPrograms { known: Vec::new(), spent: 0, budget }
    }

    /// How many are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Reads the programs of a machine, and answers the image's code with theirs. The reader pays the same whether they are
    /// known or not.
    pub(super) fn read(&mut self, r: &mut Reader<'_>, image: &Code) -> Read<Arc<Code>> {
        let bytes = r.text()?;
        if let Some(at) = self.known.iter().position(|known| *known.bytes == *bytes) {
            self.known[..=at].rotate_right(1);
            let known = &self.known[0];
            r.spend(known.cost)?;
            return Ok(Arc::clone(&known.code));
        }
        let purse = r.budget();
        let code = Arc::new(r.within(bytes, |r| read_code(r, image))?);
        let cost = purse - r.budget();
        self.keep(Known { bytes: code.spelled(|| bytes.into()), cost, code: Arc::clone(&code) });
        Ok(code)
    }

    fn keep(&mut self, known: Known) {
        if size(&known) > self.budget {
            return;
        }
        self.spent += size(&known);
        self.known.insert(0, known);
        while self.spent > self.budget {
            let Some(last) = self.known.pop() else { break };
            self.spent -= size(&last);
        }
    }
}

/// Appends the programs of a machine that are not the image's.
pub(super) fn write_programs(w: &mut Writer, code: &Code, image: &Code) {
    let bytes = code.spelled(|| {
        let own = code.programs.get(image.programs.len()..).unwrap_or_default();
        let mut section = Writer::new();
        section.count(own.len());
        own.iter().for_each(|p| program::write(&mut section, p));
        section.finish().into()
    });
    w.text(&bytes);
}

fn read_code(r: &mut Reader<'_>, image: &Code) -> Read<Code> {
    let mut code = image.clone();
    for _ in 0..r.count(0)? {
        let program = program::read(r)?;
        require(program.base == code.base(), "a program does not follow the one before it")?;
        code.add(Arc::new(program));
    }
    r.end()?;
    Ok(code)
}

fn size(known: &Known) -> usize {
    known.bytes.len() + known.cost + known.code.bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::{Limits, Step, Vm};
    use crate::heap::Limits as HeapLimits;
    use crate::value::Value;

    const LIMITS: Limits = Limits {
        instructions: 1_000_000,
        call_depth: 100,
        host_calls: 10,
        heap: HeapLimits { bytes: 8 << 20, records: 1 << 18 },
    };

    fn waiting(source: &str) -> Vec<u8> {
        let mut vm = Vm::new(LIMITS, &["ask"]).unwrap();
        vm.load(source).unwrap();
        assert!(matches!(vm.run(), Step::Suspended(_)));
        vm.snapshot().unwrap()
    }

    fn answer(mut vm: Vm, with: i32) -> String {
        let Step::Completed(value) = vm.resume(Ok(Value::int(with))) else { panic!("it ends") };
        vm.text(value)
    }

    #[test]
    fn a_machine_of_a_known_program_goes_on_like_one_that_was_read() {
        let mut programs = KnownPrograms::within(8 << 20);
        let (add, multiply) = (waiting("ask(1) + 5"), waiting("ask(1) * 5"));
        for round in 0..3 {
            for (bytes, result) in [(&add, "11"), (&multiply, "30")] {
                let mut known = Vm::restore_knowing(bytes, LIMITS, &mut programs).unwrap();
                assert_eq!(known.snapshot().unwrap(), *bytes, "round {round}");
                assert_eq!(answer(known, 6), result);
            }
        }
        assert_eq!(programs.len(), 2);
    }

    #[test]
    fn what_was_not_used_for_longest_is_read_again() {
        let snapshots = ["ask(1) + 1", "ask(1) + 2", "ask(1) + 3"].map(waiting);
        let mut one = KnownPrograms::within(8 << 20);
        Vm::restore_knowing(&snapshots[0], LIMITS, &mut one).unwrap();
        // Room for two of them, which are all of a size.
        let mut programs = KnownPrograms::within(2 * one.spent + one.spent / 2);
        for at in [0, 1, 0, 2, 0] {
            let vm = Vm::restore_knowing(&snapshots[at], LIMITS, &mut programs).unwrap();
            assert_eq!(answer(vm, 0), (at + 1).to_string());
            assert!(programs.len() <= 2 && programs.spent <= programs.budget);
        }
        let begins = |snapshot: &Vec<u8>| {
            programs.known.iter().any(|known| snapshot.windows(known.bytes.len()).any(|w| *w == *known.bytes))
        };
        assert_eq!(snapshots.each_ref().map(begins), [true, false, true]);
        let mut none = KnownPrograms::within(0);
        assert_eq!(answer(Vm::restore_knowing(&snapshots[0], LIMITS, &mut none).unwrap(), 0), "1");
        assert!(none.is_empty());
    }

    #[test]
    fn a_program_that_was_changed_is_not_the_known_one() {
        let bytes = waiting("ask('once') + 1");
        let mut programs = KnownPrograms::within(8 << 20);
        Vm::restore_knowing(&bytes, LIMITS, &mut programs).unwrap();
        for at in 26..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            super::super::reseal(&mut changed);
            let fresh = Vm::restore(&changed, LIMITS).map_err(|error| error.to_string());
            let mut before = KnownPrograms::within(8 << 20);
            Vm::restore_knowing(&bytes, LIMITS, &mut before).unwrap();
            let known = Vm::restore_knowing(&changed, LIMITS, &mut before).map_err(|error| error.to_string());
            let retake = |vm: Result<Vm, String>| vm.map(|mut vm| vm.snapshot().unwrap());
            assert_eq!(retake(known), retake(fresh), "byte {at}");
        }
    }
}
