//! Where the instructions of a machine's programs lie while it runs.
//!
//! The loop wants a whole window behind every instruction: half a megabyte that is never executed. So programs are kept without
//! it, however many there are, and are laid out here for a run. Each thread has one stage, on which the last code
//! stays: a machine that goes on where it stood finds it there.

use super::code_table::Code;
use crate::code::{Op, WINDOW};
use std::cell::Cell;
use std::sync::Arc;

/// The most instructions of a stage that is kept between runs.
const KEPT: usize = 8 * WINDOW;

thread_local! {
    static STAGE: Cell<Option<Stage>> = const { Cell::new(None) };
}

/// Instructions, padded by a window.
pub(super) struct Stage {
    ops: Vec<Op>,
    code: Arc<Code>,
}

impl Stage {
    /// The stage with this code on it.
    pub(super) fn with(code: &Arc<Code>) -> Stage {
        // There is none on a thread's first run and while a thread ends.
        match STAGE.try_with(Cell::take).ok().flatten() {
            Some(stage) if stage.code.has_programs_of(code) => stage,
            Some(stage) => Stage::lay_out(stage.cleared(), code),
            None => Stage::lay_out(Vec::new(), code),
        }
    }

    /// All of it.
    pub(super) fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Leaves it to the next run.
    pub(super) fn leave(self) {
        if self.ops.len() <= KEPT {
            let _ = STAGE.try_with(|stage| stage.set(Some(self)));
        }
    }

    fn lay_out(mut ops: Vec<Op>, code: &Arc<Code>) -> Stage {
        let needed = code.own_len() + WINDOW;
        if ops.len() < needed {
            ops.reserve_exact(needed - ops.len());
            ops.resize(needed, Op::RetUndef);
        }
        code.lay_out(&mut ops);
        Stage { ops, code: Arc::clone(code) }
    }

    /// Nothing but returns.
    fn cleared(mut self) -> Vec<Op> {
        let used = self.code.own_len().min(self.ops.len());
        self.ops[..used].fill(Op::RetUndef);
        self.ops
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, Step, Vm};
    use super::*;

    fn machine(source: &str) -> Vm {
        let heap = crate::heap::Limits { bytes: 8 << 20, records: 1 << 20 };
        let limits = Limits { instructions: 1_000_000, call_depth: 100, host_calls: 4, heap };
        let mut vm = Vm::new(limits, &["ask"]).expect("the engine works");
        vm.load(source).expect("it is a script");
        vm
    }

    /// The stage of this thread, which is put back.
    fn looked_at<T>(look: impl FnOnce(Option<&Stage>) -> T) -> T {
        let stage = STAGE.take();
        let seen = look(stage.as_ref());
        STAGE.set(stage);
        seen
    }

    #[test]
    fn machines_take_turns_on_one_stage() {
        let (mut long, mut short) = (machine("let n = 1; n += ask(); n += ask(); n"), machine("ask() * 2"));
        assert!(matches!(long.run(), Step::Suspended(_)));
        assert!(matches!(short.run(), Step::Suspended(_)));
        let five = Ok(crate::value::Value::int(5));
        assert!(matches!(long.resume(five), Step::Suspended(_)));
        assert_eq!(short.resume(five), Step::Completed(crate::value::Value::int(10)));
        assert_eq!(long.resume(five), Step::Completed(crate::value::Value::int(11)));
        looked_at(|stage| {
            let stage = stage.expect("it was left");
            let (own, rest) = stage.ops().split_at(long.state.code.own_len());
            assert!(own.iter().any(|op| *op != Op::RetUndef));
            assert!(rest.len() >= WINDOW && rest.iter().all(|op| *op == Op::RetUndef));
        });
    }

    #[test]
    fn code_that_stays_is_not_laid_out_again_and_a_giants_stage_is_not_kept() {
        let mut vm = machine("ask(); 1");
        assert!(matches!(vm.run(), Step::Suspended(_)));
        let place = looked_at(|stage| stage.expect("it was left").ops().as_ptr());
        assert_eq!(vm.resume(Ok(crate::value::Value::NULL)), Step::Completed(crate::value::Value::int(1)));
        assert_eq!(place, looked_at(|stage| stage.expect("it was left").ops().as_ptr()));
        let mut giant = machine(&"x = 1;".repeat(KEPT).replacen("x", "let x", 1)[..]);
        assert!(giant.state.code.own_len() + WINDOW > KEPT);
        giant.run();
        looked_at(|stage| assert!(stage.is_none()));
    }
}
