//! What must be true of a program before it may run: every operand names something that is there.
//!
//! The interpreter relies on it: it indexes registers, constants, sites and captures without asking again.

use super::bytes::{Flaw, Read, require};
use crate::builtins::{Percent, percent};
use crate::code::{Base, Capture, Declare, Function, Member, Op, Operands, Program, WINDOW};
use crate::compile::MAX_REGISTERS;
use rustc_hash::FxHashSet;

/// The intrinsics that the compiler itself uses.
const GUEST_INTRINSICS: &[&str] = &["SuperBase"];

/// Checks a whole program. Nothing about it is trusted but the numbers in its base, which whoever loads it compares with
/// what the machine has.
pub(crate) fn verify(program: &Program) -> Read<()> {
    let Program { base, code, functions, constants, sites, templates, source: _ } = program;
    let ends = Base {
        functions: end(base.functions, functions.len())?,
        constants: end(base.constants, constants.len())?,
        sites: end(base.sites, sites.len())?,
        templates: end(base.templates, templates.len())?,
    };
    require(!functions.is_empty(), "a program has no functions")?;
    let constant = |k: u32| require(base.constants <= k && k < ends.constants, "a constant is missing");
    sites.iter().try_for_each(|&k| constant(k))?;
    for template in templates {
        template.raw.iter().try_for_each(|&k| constant(k))?;
        template.cooked.iter().flatten().try_for_each(|&k| constant(k))?;
    }
    for function in functions {
        if let Some(k) = function.name {
            constant(k)?;
        }
        let registers = function.registers;
        require(
            (1..=MAX_REGISTERS).contains(&registers) && function.parameters < registers,
            "a function has too many registers",
        )?;
        let ops = code.get(function.start as usize..).and_then(|ops| ops.get(..function.len as usize));
        let ops = ops.ok_or(Flaw::Invalid("a function is not in the code"))?;
        require(ops.last().is_some_and(|op| ends_function(*op)), "a function runs past its end")?;
        for h in &function.handlers {
            // A handler lies behind what it covers, so that exceptions only ever lead forward.
            let whole = h.start <= h.end && h.end <= h.target && h.target < function.len;
            require(whole && u16::from(h.register) < registers, "a handler is out of range")?;
        }
        require(function.positions.is_sorted_by_key(|&(pc, _)| pc), "positions are out of order")?;
        let mut checker = Checker { program, base: *base, ends, function, area: 0, jump: None };
        let mut landings = FxHashSet::from_iter(function.handlers.iter().map(|h| h.target));
        for (pc, op) in (0u32..).zip(ops) {
            checker.jump = None;
            { *op }.operands(&mut checker)?;
            check_jump(pc, *op, checker.jump, &mut landings)?;
        }
        check_pages(ops, &landings)?;
    }
    Ok(())
}

fn end(base: u32, len: usize) -> Read<u32> {
    // Ids are packed into 31 bits here and there, so none may come near the end of a u32.
    let end = u32::try_from(len).ok().and_then(|len| base.checked_add(len));
    end.filter(|&end| end < 1 << 30).ok_or(Flaw::Invalid("a table is too long"))
}

/// Only a back edge that is paid for leads back, and only a far jump leaves its page. Collects where everything else leads.
fn check_jump(pc: u32, op: Op, target: Option<u32>, landings: &mut FxHashSet<u32>) -> Read<()> {
    let Some(target) = target else { return Ok(()) };
    match op {
        Op::FarJump(_) => return Ok(()),
        Op::Loop(cost, _) => require(cost > 0, "a loop costs nothing")?,
        // They charge for the distance, or for the comparison that had to be called.
        Op::LoopLt(..) | Op::LoopLtInt(..) => {}
        _ => {
            require(target > pc, "a jump leads back")?;
            landings.insert(target);
        }
    }
    require(target as usize / WINDOW == pc as usize / WINDOW, "a jump leaves its page")
}

/// A far jump that leads back is only reached from back edges, and no page runs into its own beginning.
fn check_pages(ops: &[Op], landings: &FxHashSet<u32>) -> Read<()> {
    for (pc, op) in (0u32..).zip(ops) {
        if let Op::FarJump(target) = *op
            && target <= pc
        {
            let before = pc.checked_sub(1).and_then(|before| ops.get(before as usize));
            let alone = before.is_some_and(|before| ends_function(*before)) && !landings.contains(&pc);
            require(alone, "a far jump leads back")?;
        }
        if (pc as usize + 1).is_multiple_of(WINDOW) {
            require(ends_function(*op), "a page runs past its end")?;
        }
    }
    Ok(())
}

/// Does nothing come after it?
fn ends_function(op: Op) -> bool {
    matches!(
        op,
        Op::Ret(_)
            | Op::RetUndef
            | Op::Throw(_)
            | Op::ThrowNew(..)
            | Op::Jump(_)
            | Op::Loop(..)
            | Op::FarJump(_)
    )
}

struct Checker<'p> {
    program: &'p Program,
    base: Base,
    ends: Base,
    function: &'p Function,
    /// Where the arguments of the call at hand begin.
    area: u16,
    /// Where the instruction at hand may jump to.
    jump: Option<u32>,
}

impl Checker<'_> {
    fn registers(&self, from: u8, count: u16) -> Read<()> {
        require(u16::from(from) + count <= self.function.registers, "a register is out of range")
    }
}

macro_rules! anything {
    ($($kind:ident: $type:ty),*) => {$(
        fn $kind(&mut self, _: &mut $type) -> Read<()> {
            Ok(())
        }
    )*};
}

impl Operands for Checker<'_> {
    type Stop = Flaw;

    anything!(cost: u16, number: u32, int: i32, short: i16, member: Member, declare: Declare, error: u8);

    fn reg(&mut self, r: &mut u8) -> Read<()> {
        self.registers(*r, 1)
    }
    fn pair(&mut self, r: &mut u8) -> Read<()> {
        self.registers(*r, 2)
    }
    fn callee(&mut self, r: &mut u8) -> Read<()> {
        self.area = u16::from(*r) + 2;
        self.registers(*r, 2)
    }
    fn spread(&mut self, r: &mut u8) -> Read<()> {
        self.registers(*r, 3)
    }
    fn first(&mut self, r: &mut u8) -> Read<()> {
        self.area = u16::from(*r);
        Ok(())
    }
    fn arguments(&mut self, n: &mut u8) -> Read<()> {
        require(self.area + u16::from(*n) <= self.function.registers, "an argument is out of range")
    }
    fn jump(&mut self, t: &mut u32) -> Read<()> {
        self.jump = Some(*t);
        require(*t < self.function.len, "a jump leaves its function")
    }
    fn constant(&mut self, k: &mut u32) -> Read<()> {
        require(self.base.constants <= *k && *k < self.ends.constants, "a constant is missing")
    }
    fn constants(&mut self, k: &mut u32) -> Read<()> {
        require(self.base.constants <= *k && *k + 1 < self.ends.constants, "a constant is missing")
    }
    fn site(&mut self, s: &mut u32) -> Read<()> {
        require(self.base.sites <= *s && *s < self.ends.sites, "a property site is missing")
    }
    fn template(&mut self, t: &mut u32) -> Read<()> {
        require(self.base.templates <= *t && *t < self.ends.templates, "a template is missing")
    }
    fn captured(&mut self, n: &mut u16) -> Read<()> {
        require(usize::from(*n) < self.function.captures.len(), "a captured variable is missing")
    }
    fn function(&mut self, f: &mut u32) -> Read<()> {
        let place = f.checked_sub(self.base.functions).map(|place| place as usize);
        let made = place.and_then(|place| self.program.functions.get(place));
        let made = made.ok_or(Flaw::Invalid("a function is missing"))?;
        for capture in &made.captures {
            match *capture {
                Capture::Register(r) | Capture::Record(r, _) => self.registers(r, 1)?,
                Capture::Captured(n) => self.captured(&mut { n })?,
                Capture::Absent => {}
            }
        }
        Ok(())
    }
    fn intrinsic(&mut self, n: &mut u32) -> Read<()> {
        // Intrinsics trust their arguments; the prelude, which is never read from bytes, may use them all.
        let known = |name: &&str| percent(name) == Some(Percent::Intrinsic(*n));
        require(GUEST_INTRINSICS.iter().any(known), "a guest names an intrinsic")
    }
    fn helper(&mut self, n: &mut u32) -> Read<()> {
        require((*n as usize) < crate::builtins::HELPERS, "there is no such helper")
    }
}
