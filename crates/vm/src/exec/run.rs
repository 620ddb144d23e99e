//! The dispatch loop: fast paths inline, everything else one call out of line.
//!
//! `pc`, the code window, the register window and nothing else are locals. An instruction that cannot finish here
//! leaves the inner loop with an [`Exit`]; the outer loop acts on it and re-makes the windows of the top frame.

use super::arith::{self, Arith, Relation, Unary};
use super::call::{Calling, cell_value};
use super::code_table::{Code, Entry, Running};
use super::frame::FrameFlags;
use super::property::{self, Missing};
use super::state::{Exit, Limit, NO_SHAPE, State};
use super::{Window, global, iterate, object};
use crate::code::{ErrorKind, Op, WINDOW};
use crate::heap::{AllocError, Point};
use crate::value::Value;

/// Which part of a pc names the instruction inside its page.
const PAGE_MASK: u32 = WINDOW as u32 - 1;

/// What going to another page of a long function costs: behind it are thousands of instructions that nobody counts.
const FAR_COST: u64 = 1024;

/// Registers that a frame's window spans.
pub(crate) const SPAN: usize = 256;

/// Runs until the bottom frame returns, throws, suspends or hits a limit.
pub(crate) fn run(st: &mut State, regs: &mut Vec<Value>, code: &Running<'_>) -> Exit {
    loop {
        let exit = dispatch(st, regs, code);
        let again = match exit {
            Exit::Enter => Ok(()),
            Exit::Throw(exception) => st.unwind(regs, code, exception),
            Exit::Alloc(AllocError::Collect) => collect(st, regs, code),
            Exit::Alloc(AllocError::TooLong) => {
                let thrown = st.throw(ErrorKind::Range, "Invalid string length");
                match thrown {
                    Exit::Throw(exception) => st.unwind(regs, code, exception),
                    other => Err(other),
                }
            }
            Exit::Limit(_) | Exit::Suspend | Exit::Done(_) | Exit::Slow | Exit::Pause => Err(exit),
        };
        match again {
            Ok(()) => {}
            Err(Exit::Enter) => {}
            Err(Exit::Alloc(AllocError::Collect)) => {
                if let Err(exit) = collect(st, regs, code) {
                    return exit;
                }
            }
            Err(Exit::Throw(exception)) if !st.frames.is_empty() && exit != Exit::Throw(exception) => {
                if let Err(exit) = st.unwind(regs, code, exception) {
                    return exit;
                }
            }
            Err(exit) => return exit,
        }
    }
}

impl State {
    /// A back edge to `pc` that the slice cannot pay for.
    #[cold]
    fn end_slice(&mut self, cost: u64, pc: u32) -> Exit {
        if let Err(exit) = self.burn_reserve(cost) {
            return exit;
        }
        if let Some(top) = self.frames.last_mut() {
            top.pc = pc;
        }
        Exit::Pause
    }
}

/// Collects, then the instruction is executed again.
#[cold]
fn collect(st: &mut State, regs: &mut [Value], code: &Code) -> Result<(), Exit> {
    let pc = st.pc.saturating_sub(1);
    let mut end = 0;
    if let Some(top) = st.frames.last_mut() {
        top.pc = pc;
        end = (top.base as usize + SPAN).min(regs.len());
        let used = top.base as usize + code.function(top.func).registers as usize;
        // What is above the frame is dead, and must not be mistaken for references.
        if let Some(dead) = regs.get_mut(used.min(end)..) {
            dead.fill(Value::UNDEFINED);
        }
        end = used.min(end);
    }
    // The fuel and the depth name the attempt: neither moves while an instruction is only repeated.
    let point = Point(st.fuel ^ ((st.frames.len() as u64) << 48) ^ (u64::from(pc) << 32));
    st.collect(&regs[..end], point).map_err(|over| Exit::Limit(Limit::Heap(over)))
}

/// Makes a fresh frame's registers: arguments that must survive are moved out of the way, the rest is undefined.
/// Answers what to throw, if the frame is resumed by a throw.
#[inline]
fn prepare(st: &mut State, regs: &mut Vec<Value>, entry: Entry) -> Option<Value> {
    let frame = st.frames.last_mut()?;
    let beyond = if frame.flags.has(FrameFlags::LIST) { 0 } else { frame.argc as usize };
    let end = frame.base as usize + SPAN + 1 + beyond;
    if regs.len() < end {
        grow(regs, end);
    }
    if frame.flags.has(FrameFlags::RESTORE) {
        return st.restore(regs);
    }
    let parameters = u32::from(entry.parameters);
    if frame.flags.has(FrameFlags::LIST) {
        st.take_list(regs, entry);
        return None;
    }
    let mut given = frame.argc;
    if entry.keeps_arguments && frame.argc > parameters && frame.args == frame.base + 1 {
        let from = frame.base as usize;
        let to = from + 1 + frame.argc as usize + 1;
        if regs.len() < to + SPAN {
            grow(regs, to + SPAN);
        }
        regs.copy_within(from - 1..from + 1 + parameters as usize, to - 1);
        frame.base = to as u32;
        given = parameters;
    }
    let base = frame.base as usize;
    let from = base + 1 + given as usize;
    let to = base + entry.registers as usize;
    if from < to
        && let Some(fresh) = regs.get_mut(from..to)
    {
        fresh.fill(Value::UNDEFINED);
    }
    None
}

#[cold]
#[inline(never)]
fn grow(regs: &mut Vec<Value>, end: usize) {
    regs.resize(end * 2, Value::UNDEFINED);
}

#[expect(clippy::too_many_lines, reason = "one arm per instruction: splitting it would split the jump table")]
#[expect(clippy::cognitive_complexity, reason = "likewise")]
fn dispatch(st: &mut State, regs: &mut Vec<Value>, code: &Running<'_>) -> Exit {
    'frame: loop {
        // Only what the loop needs is copied out of the frame; cold arms look again.
        let Some(top) = st.frames.last() else { return Exit::Done(Value::UNDEFINED) };
        let (entry, start) = (code.entry(top.func), top.pc);
        if start == 0 || top.flags.has(FrameFlags::RESTORE) {
            if let Some(exception) = prepare(st, regs, entry) {
                st.pc = start;
                return Exit::Throw(exception);
            }
            // The end of a slice. A frame that has not begun can be prepared again.
            if st.fuel == 0 && st.reserve > 0 && start == 0 {
                return Exit::Pause;
            }
        }
        let Some(top) = st.frames.last() else { return Exit::Done(Value::UNDEFINED) };
        let (frame_base, flags, closure) = (top.base, top.flags, top.closure);
        let ops = code.window(code.stage, entry, start);
        st.page = start & !PAGE_MASK;
        st.above = entry.registers as u8;
        let base = frame_base as usize;
        let Some(w) = regs.get_mut(base..).and_then(|r| r.first_chunk_mut::<SPAN>()) else {
            return Exit::Limit(Limit::CallDepth);
        };
        let w: &mut Window = w;
        let mut pc: u16 = start as u16;

        // Where the pc is in the function: windows are pages.
        macro_rules! abs {
            () => {
                st.page | u32::from(pc)
            };
        }
        // The whole frame, for arms that are not in a hurry.
        macro_rules! frame {
            () => {
                match st.frames.last() {
                    Some(&frame) => frame,
                    None => return Exit::Done(Value::UNDEFINED),
                }
            };
        }
        macro_rules! r {
            ($i:expr) => {
                w[$i as usize]
            };
        }
        // Calls out of line; the value goes to a register.
        macro_rules! cold {
            ($d:expr, $e:expr) => {{
                st.pc = abs!();
                let fuel = st.fuel;
                match $e {
                    Ok(v) => r!($d) = v,
                    Err(Exit::Enter) => continue 'frame,
                    Err(exit) => return st.repaid(exit, fuel),
                }
            }};
        }
        // Calls out of line for the effect.
        macro_rules! effect {
            ($e:expr) => {{
                st.pc = abs!();
                let fuel = st.fuel;
                match $e {
                    Ok(_) => {}
                    Err(Exit::Enter) => continue 'frame,
                    Err(exit) => return st.repaid(exit, fuel),
                }
            }};
        }
        macro_rules! alloc {
            ($d:expr, $e:expr, $wrap:expr) => {{
                match $e {
                    Ok(id) => r!($d) = $wrap(id),
                    Err(error) => {
                        st.pc = abs!();
                        return Exit::Alloc(error);
                    }
                }
            }};
        }
        macro_rules! int_or_float {
            ($d:expr, $a:expr, $b:expr, $int:expr, $float:expr, $slow:expr) => {{
                let (a, b): (Value, Value) = ($a, $b);
                if Value::both_int(a, b)
                    && let Some(v) = $int(a.int_unchecked(), b.int_unchecked())
                {
                    r!($d) = v;
                } else if let (Some(x), Some(y)) = (a.as_number(), b.as_number()) {
                    r!($d) = Value::number($float(x, y));
                } else {
                    cold!($d, $slow(st, w, $d, a, b))
                }
            }};
        }
        macro_rules! bits {
            ($d:expr, $a:expr, $b:expr, $f:expr, $op:expr) => {{
                let (a, b): (Value, Value) = ($a, $b);
                if Value::both_int(a, b) {
                    r!($d) = $f(a.int_unchecked(), b.int_unchecked());
                } else {
                    cold!($d, arith::arith(st, w, $op, $d, a, b))
                }
            }};
        }
        macro_rules! relation {
            ($a:expr, $b:expr, $op:tt, $rel:expr, $d:expr, $flags:expr) => {{
                let (a, b): (Value, Value) = ($a, $b);
                if Value::both_int(a, b) {
                    a.int_unchecked() $op b.int_unchecked()
                } else {
                    st.pc = abs!();
                    match arith::compare(st, w, $rel, $d, $flags, a, b) {
                        Ok(truth) => truth,
                        Err(Exit::Enter) => continue 'frame,
                        Err(exit) => return exit,
                    }
                }
            }};
        }
        macro_rules! strict {
            ($a:expr, $b:expr) => {{
                let (a, b): (Value, Value) = ($a, $b);
                if Value::both_int(a, b) {
                    a == b
                } else {
                    match st.heap.strict_equals(a, b) {
                        Ok(same) => same,
                        Err(error) => {
                            st.pc = abs!();
                            return Exit::Alloc(error);
                        }
                    }
                }
            }};
        }
        // A back edge that knows no cost: as long as the round is, and a far jump pays for itself.
        macro_rules! back {
            ($t:expr) => {{
                let cost = u64::from(pc.saturating_sub($t as u16).max(1));
                pc = $t as u16;
                match st.fuel.checked_sub(cost) {
                    Some(left) => st.fuel = left,
                    None => return st.end_slice(cost, abs!()),
                }
            }};
        }
        macro_rules! jump_if {
            ($cond:expr, $t:expr) => {
                if $cond {
                    pc = $t as u16;
                }
            };
        }

        loop {
            let op = ops[pc as usize];
            pc = pc.wrapping_add(1);
            match op {
                Op::LoadK(d, k) => r!(d) = st.constants[k as usize],
                Op::LoadInt(d, i) => r!(d) = Value::int(i),
                Op::LoadUndef(d) => r!(d) = Value::UNDEFINED,
                Op::LoadNull(d) => r!(d) = Value::NULL,
                Op::LoadTrue(d) => r!(d) = Value::TRUE,
                Op::LoadFalse(d) => r!(d) = Value::FALSE,
                Op::LoadHole(d) => r!(d) = Value::HOLE,
                Op::Move(d, a) => r!(d) = r!(a),

                Op::Add(d, a, b) => int_or_float!(
                    d,
                    r!(a),
                    r!(b),
                    |x: i32, y: i32| x.checked_add(y).map(Value::int),
                    |x: f64, y: f64| x + y,
                    arith::add
                ),
                Op::AddInt(d, a, i) => int_or_float!(
                    d,
                    r!(a),
                    Value::int(i),
                    |x: i32, y: i32| x.checked_add(y).map(Value::int),
                    |x: f64, y: f64| x + y,
                    arith::add
                ),
                Op::AddK(d, a, k) => {
                    let b = st.constants[k as usize];
                    cold!(d, arith::add(st, w, d, r!(a), b))
                }
                Op::Sub(d, a, b) => int_or_float!(
                    d,
                    r!(a),
                    r!(b),
                    |x: i32, y: i32| x.checked_sub(y).map(Value::int),
                    |x: f64, y: f64| x - y,
                    |st, w, d, a, b| arith::arith(st, w, Arith::Sub, d, a, b)
                ),
                Op::SubInt(d, a, i) => int_or_float!(
                    d,
                    r!(a),
                    Value::int(i),
                    |x: i32, y: i32| x.checked_sub(y).map(Value::int),
                    |x: f64, y: f64| x - y,
                    |st, w, d, a, b| arith::arith(st, w, Arith::Sub, d, a, b)
                ),
                Op::Mul(d, a, b) => int_or_float!(
                    d,
                    r!(a),
                    r!(b),
                    arith::int_mul,
                    |x: f64, y: f64| x * y,
                    |st, w, d, a, b| arith::arith(st, w, Arith::Mul, d, a, b)
                ),
                Op::MulInt(d, a, i) => int_or_float!(
                    d,
                    r!(a),
                    Value::int(i),
                    arith::int_mul,
                    |x: f64, y: f64| x * y,
                    |st, w, d, a, b| arith::arith(st, w, Arith::Mul, d, a, b)
                ),
                Op::Div(d, a, b) => int_or_float!(
                    d,
                    r!(a),
                    r!(b),
                    |_: i32, _: i32| None,
                    |x: f64, y: f64| x / y,
                    |st, w, d, a, b| arith::arith(st, w, Arith::Div, d, a, b)
                ),
                Op::Mod(d, a, b) => int_or_float!(
                    d,
                    r!(a),
                    r!(b),
                    arith::int_mod,
                    crate::text::number::math::remainder,
                    |st, w, d, a, b| arith::arith(st, w, Arith::Mod, d, a, b)
                ),
                Op::ModInt(d, a, i) => int_or_float!(
                    d,
                    r!(a),
                    Value::int(i),
                    arith::int_mod,
                    crate::text::number::math::remainder,
                    |st, w, d, a, b| arith::arith(st, w, Arith::Mod, d, a, b)
                ),
                Op::Exp(d, a, b) => cold!(d, arith::arith(st, w, Arith::Exp, d, r!(a), r!(b))),
                Op::BitAnd(d, a, b) => {
                    bits!(d, r!(a), r!(b), |x: i32, y: i32| Value::int(x & y), Arith::BitAnd)
                }
                Op::BitAndInt(d, a, i) => {
                    bits!(d, r!(a), Value::int(i), |x: i32, y: i32| Value::int(x & y), Arith::BitAnd)
                }
                Op::BitOr(d, a, b) => {
                    bits!(d, r!(a), r!(b), |x: i32, y: i32| Value::int(x | y), Arith::BitOr)
                }
                Op::BitXor(d, a, b) => {
                    bits!(d, r!(a), r!(b), |x: i32, y: i32| Value::int(x ^ y), Arith::BitXor)
                }
                Op::Shl(d, a, b) => {
                    bits!(d, r!(a), r!(b), |x: i32, y: i32| Value::int(x.wrapping_shl(y as u32)), Arith::Shl)
                }
                Op::Shr(d, a, b) => {
                    bits!(d, r!(a), r!(b), |x: i32, y: i32| Value::int(x.wrapping_shr(y as u32)), Arith::Shr)
                }
                Op::UShr(d, a, b) => bits!(
                    d,
                    r!(a),
                    r!(b),
                    |x: i32, y: i32| Value::uint((x as u32).wrapping_shr(y as u32)),
                    Arith::UShr
                ),
                Op::Neg(d, a) => cold!(d, arith::unary(st, w, Unary::Neg, d, r!(a))),
                Op::ToNumber(d, a) => {
                    let v = r!(a);
                    if v.is_number() {
                        r!(d) = v;
                    } else {
                        cold!(d, arith::unary(st, w, Unary::Plus, d, v))
                    }
                }
                Op::ToNumeric(d, a) => {
                    let v = r!(a);
                    if v.is_number() {
                        r!(d) = v;
                    } else {
                        cold!(d, arith::unary(st, w, Unary::Numeric, d, v))
                    }
                }
                Op::BitNot(d, a) => {
                    let v = r!(a);
                    if v.is_int() {
                        r!(d) = Value::int(!v.int_unchecked());
                    } else {
                        cold!(d, arith::unary(st, w, Unary::BitNot, d, v))
                    }
                }
                Op::Not(d, a) => r!(d) = Value::bool(!st.heap.truthy(r!(a))),
                Op::TypeOf(d, a) => r!(d) = Value::string(st.heap.type_of(r!(a))),
                Op::Inc(d, a) => {
                    let v = r!(a);
                    match v.as_int().and_then(|i| i.checked_add(1)) {
                        Some(i) => r!(d) = Value::int(i),
                        None => cold!(d, arith::unary(st, w, Unary::Inc, d, v)),
                    }
                }
                Op::Dec(d, a) => {
                    let v = r!(a);
                    match v.as_int().and_then(|i| i.checked_sub(1)) {
                        Some(i) => r!(d) = Value::int(i),
                        None => cold!(d, arith::unary(st, w, Unary::Dec, d, v)),
                    }
                }
                Op::ToStr(d, a) => {
                    let v = r!(a);
                    if v.is_string() {
                        r!(d) = v;
                    } else {
                        cold!(d, object::to_str(st, w, d, v))
                    }
                }
                Op::ToKey(d, a) => {
                    let v = r!(a);
                    if v.is_int() || v.is_string() || v.is_symbol() {
                        r!(d) = v;
                    } else {
                        cold!(d, object::to_key(st, w, d, v))
                    }
                }

                Op::Lt(d, a, b) => {
                    let t = relation!(r!(a), r!(b), <, Relation::Lt, d, FrameFlags::NONE);
                    r!(d) = Value::bool(t);
                }
                Op::Le(d, a, b) => {
                    let t = relation!(r!(a), r!(b), <=, Relation::Le, d, FrameFlags::NONE);
                    r!(d) = Value::bool(t);
                }
                Op::Gt(d, a, b) => {
                    let t = relation!(r!(a), r!(b), >, Relation::Gt, d, FrameFlags::NONE);
                    r!(d) = Value::bool(t);
                }
                Op::Ge(d, a, b) => {
                    let t = relation!(r!(a), r!(b), >=, Relation::Ge, d, FrameFlags::NONE);
                    r!(d) = Value::bool(t);
                }
                Op::Eq(d, a, b) => {
                    cold!(d, arith::loose_equal(st, w, d, FrameFlags::NONE, r!(a), r!(b)).map(Value::bool))
                }
                Op::Ne(d, a, b) => {
                    cold!(
                        d,
                        arith::loose_equal(st, w, d, FrameFlags::NEGATE, r!(a), r!(b))
                            .map(|t| Value::bool(!t))
                    )
                }
                Op::StrictEq(d, a, b) => r!(d) = Value::bool(strict!(r!(a), r!(b))),
                Op::StrictNe(d, a, b) => r!(d) = Value::bool(!strict!(r!(a), r!(b))),
                Op::In(d, a, b) => cold!(d, property::has(st, w, d, r!(a), r!(b))),
                Op::InstanceOf(d, a, b) => cold!(d, object::instance_of(st, w, d, r!(a), r!(b))),

                Op::Jump(t) => pc = t as u16,
                Op::Loop(cost, t) => {
                    pc = t as u16;
                    match st.fuel.checked_sub(u64::from(cost)) {
                        Some(left) => st.fuel = left,
                        None => return st.end_slice(u64::from(cost), abs!()),
                    }
                }
                Op::LoopLt(a, b, t) => {
                    if relation!(r!(a), r!(b), <, Relation::Lt, 0, FrameFlags::BRANCH) {
                        back!(t);
                    }
                }
                Op::LoopLtInt(a, i, t) => {
                    let limit = Value::int(i32::from(i));
                    if relation!(r!(a), limit, <, Relation::Lt, 0, FrameFlags::BRANCH) {
                        back!(t);
                    }
                }
                Op::JTrue(a, t) => jump_if!(st.heap.truthy(r!(a)), t),
                Op::JFalse(a, t) => jump_if!(!st.heap.truthy(r!(a)), t),
                Op::JNullish(a, t) => jump_if!(r!(a).is_nullish(), t),
                Op::JNotNullish(a, t) => jump_if!(!r!(a).is_nullish(), t),
                Op::JUndef(a, t) => jump_if!(r!(a).is_undefined(), t),
                Op::JNotUndef(a, t) => jump_if!(!r!(a).is_undefined(), t),
                Op::JLt(a, b, t) => {
                    jump_if!(relation!(r!(a), r!(b), <, Relation::Lt, 0, FrameFlags::BRANCH), t)
                }
                Op::JNotLt(a, b, t) => {
                    jump_if!(!relation!(r!(a), r!(b), <, Relation::Lt, 0, FrameFlags::BRANCH), t)
                }
                Op::JLe(a, b, t) => {
                    jump_if!(relation!(r!(a), r!(b), <=, Relation::Le, 0, FrameFlags::BRANCH), t)
                }
                Op::JNotLe(a, b, t) => {
                    jump_if!(!relation!(r!(a), r!(b), <=, Relation::Le, 0, FrameFlags::BRANCH), t)
                }
                Op::JGt(a, b, t) => {
                    jump_if!(relation!(r!(a), r!(b), >, Relation::Gt, 0, FrameFlags::BRANCH), t)
                }
                Op::JNotGt(a, b, t) => {
                    jump_if!(!relation!(r!(a), r!(b), >, Relation::Gt, 0, FrameFlags::BRANCH), t)
                }
                Op::JGe(a, b, t) => {
                    jump_if!(relation!(r!(a), r!(b), >=, Relation::Ge, 0, FrameFlags::BRANCH), t)
                }
                Op::JNotGe(a, b, t) => {
                    jump_if!(!relation!(r!(a), r!(b), >=, Relation::Ge, 0, FrameFlags::BRANCH), t)
                }
                Op::JNotLtInt(a, i, t) => jump_if!(
                    !relation!(r!(a), Value::int(i32::from(i)), <, Relation::Lt, 0, FrameFlags::BRANCH),
                    t
                ),
                Op::JSeq(a, b, t) => jump_if!(strict!(r!(a), r!(b)), t),
                Op::JSne(a, b, t) => jump_if!(!strict!(r!(a), r!(b)), t),
                Op::JHole(a, t) => jump_if!(r!(a).is_hole(), t),
                Op::JNotInt(a, i, t) => {
                    let v = r!(a);
                    let same = if v.is_int() {
                        v == Value::int(i32::from(i))
                    } else {
                        v.as_number() == Some(f64::from(i))
                    };
                    jump_if!(!same, t);
                }
                Op::JInt(a, i, t) => jump_if!(r!(a) == Value::int(i32::from(i)), t),

                Op::NewCell(d, a) => alloc!(d, st.heap.new_cell(r!(a)), cell_value),
                Op::NewHoleCell(d) => alloc!(d, st.heap.new_cell(Value::HOLE), cell_value),
                Op::GetCell(d, a) => {
                    if let Some(cell) = r!(a).as_cell() {
                        r!(d) = st.heap.cell(cell);
                    }
                }
                Op::SetCell(a, b) => {
                    if let Some(cell) = r!(a).as_cell() {
                        st.heap.set_cell(cell, r!(b));
                    }
                }
                Op::GetCellChecked(d, a, k) => {
                    let v = r!(a).as_cell().map_or(Value::HOLE, |c| st.heap.cell(c));
                    if v.is_hole() {
                        effect!(object::uninitialised(st, k));
                    }
                    r!(d) = v;
                }
                Op::SetCellChecked(a, b, k) => {
                    if let Some(cell) = r!(a).as_cell() {
                        if st.heap.cell(cell).is_hole() {
                            effect!(object::uninitialised(st, k));
                        }
                        st.heap.set_cell(cell, r!(b));
                    }
                }
                Op::GetCap(d, n) => {
                    if let Some(cell) = st.heap.capture(closure, u32::from(n)).as_cell() {
                        r!(d) = st.heap.cell(cell);
                    }
                }
                Op::SetCap(a, n) => {
                    if let Some(cell) = st.heap.capture(closure, u32::from(n)).as_cell() {
                        st.heap.set_cell(cell, r!(a));
                    }
                }
                Op::GetCapChecked(d, n, k) => {
                    let cell = st.heap.capture(closure, u32::from(n)).as_cell();
                    let v = cell.map_or(Value::HOLE, |c| st.heap.cell(c));
                    if v.is_hole() {
                        effect!(object::uninitialised(st, k));
                    }
                    r!(d) = v;
                }
                Op::SetCapChecked(a, n, k) => {
                    if let Some(cell) = st.heap.capture(closure, u32::from(n)).as_cell() {
                        if st.heap.cell(cell).is_hole() {
                            effect!(object::uninitialised(st, k));
                        }
                        st.heap.set_cell(cell, r!(a));
                    }
                }
                Op::CheckInit(a, k) => {
                    if r!(a).is_hole() {
                        effect!(object::uninitialised(st, k));
                    }
                }
                Op::ThrowConst(k) => effect!(object::constant_assignment(st, k)),
                Op::GetGlobal(d, s) => {
                    let site = &st.sites[s as usize];
                    match st.heap.slot_if_shape(st.realm.global, site.shape, site.slot) {
                        Some(v) if site.holder.is_none() => r!(d) = v,
                        _ => cold!(d, property::get_global(st, w, d, s, Missing::Throws)),
                    }
                }
                Op::GetGlobalOrUndef(d, s) => cold!(d, property::get_global(st, w, d, s, Missing::Undefined)),
                Op::SetGlobal(a, s) => {
                    let v = r!(a);
                    let site = st.sites[s as usize];
                    if site.next != site.shape
                        || !st.heap.set_slot_if_shape(st.realm.global, site.shape, site.slot, v)
                    {
                        effect!(property::set_global(st, w, s, v))
                    }
                }
                Op::DeclareVar(s) => effect!(object::declare_var(st, s)),
                Op::DeclareFunc(a, s) => effect!(object::declare_function(st, r!(a), s)),
                Op::Callee(d) => r!(d) = frame!().callee,
                Op::NewTarget(d) => {
                    let suspendable = flags.has(FrameFlags::ASYNC.and(FrameFlags::GENERATOR));
                    r!(d) = if suspendable { Value::UNDEFINED } else { frame!().new_target };
                }
                Op::CheckThis(a) => {
                    if r!(a).is_hole() {
                        effect!(object::unbound_this(st));
                    }
                }

                Op::NewObject(d) => alloc!(d, st.heap.new_object(st.realm.object_shape), Value::object),
                Op::NewArray(d, n) => {
                    alloc!(d, st.heap.new_array_with_capacity(st.realm.array_shape, n), Value::array)
                }
                Op::GetProp(d, a, s) => {
                    let v = r!(a);
                    let site = &st.sites[s as usize];
                    if let Some(obj) = v.as_object()
                        && site.holder.is_none()
                        && let Some(found) = st.heap.slot_if_shape(obj, site.shape, site.slot)
                    {
                        r!(d) = found;
                    } else {
                        cold!(d, property::get_prop(st, w, d, v, s))
                    }
                }
                Op::GetMethod(d, a, s) => {
                    let v = r!(a);
                    r!(d + 1) = v;
                    let site = &st.sites[s as usize];
                    if let Some(obj) = v.as_object()
                        && site.shape == st.heap.shape(obj)
                    {
                        match site.holder {
                            None => {
                                r!(d) = st.heap.slot(obj, site.slot);
                                continue;
                            }
                            Some(holder) if site.epoch == st.heap.prototype_epoch() => {
                                r!(d) = st.heap.slot(holder, site.slot);
                                continue;
                            }
                            Some(_) => {}
                        }
                    }
                    cold!(d, property::get_prop(st, w, d, v, s))
                }
                Op::SetProp(a, b, s) => {
                    let (v, value) = (r!(a), r!(b));
                    let site = st.sites[s as usize];
                    if let Some(obj) = v.as_object()
                        && site.next == site.shape
                        && site.shape != NO_SHAPE
                        && st.heap.set_slot_if_shape(obj, site.shape, site.slot, value)
                    {
                    } else {
                        effect!(property::set_prop(st, w, v, s, value))
                    }
                }
                Op::GetElem(d, a, b) => {
                    let (v, key) = (r!(a), r!(b));
                    if let Some(array) = v.as_array()
                        && let Some(i) = key.as_int()
                        && let Some(found) = st.heap.array_get(array, i as u32)
                    {
                        r!(d) = found;
                    } else {
                        cold!(d, property::get_elem(st, w, d, v, key))
                    }
                }
                Op::SetElem(a, b, c) => {
                    let (v, key, value) = (r!(a), r!(b), r!(c));
                    if let Some(array) = v.as_array()
                        && let Some(i) = key.as_int()
                        && st.heap.array_set(array, i as u32, value)
                    {
                    } else {
                        effect!(property::set_elem(st, w, v, key, value))
                    }
                }
                Op::InitProp(a, b, s) => {
                    let (v, value) = (r!(a), r!(b));
                    let site = st.sites[s as usize];
                    if let Some(obj) = v.as_object()
                        && !st.heap.add_slot_if_shape(obj, site.shape, site.next, site.slot, value)
                    {
                        effect!(property::init_prop(st, w, obj, s, value))
                    }
                }
                Op::InitElem(a, b, c) => {
                    if let Some(obj) = r!(a).as_object() {
                        effect!(property::init_elem(st, w, obj, r!(b), r!(c)))
                    }
                }
                Op::InitMember(a, b, c, m) => effect!(object::init_member(st, r!(a), r!(b), r!(c), m)),
                Op::ArrayPush(a, b) => effect!(object::array_push(st, r!(a), r!(b))),
                Op::ArrayHole(a) => effect!(object::array_push(st, r!(a), Value::HOLE)),
                Op::InitProto(a, b) => effect!(object::init_proto(st, r!(a), r!(b))),
                Op::Delete(d, a, b) => cold!(d, property::delete(st, w, d, r!(a), r!(b))),
                Op::GetSuper(d, a, b, c) => cold!(d, object::get_super(st, w, d, r!(a), r!(b), r!(c))),
                Op::SetSuper(a, b, c, d) => effect!(object::set_super(st, w, r!(a), r!(b), r!(c), r!(d))),
                Op::NewPrivate(d, k) => cold!(d, object::new_private(st, k)),
                Op::GetPrivate(d, a, b) => cold!(d, property::get_private(st, w, d, r!(a), r!(b))),
                Op::SetPrivate(a, b, c) => effect!(property::set_private(st, w, r!(a), r!(b), r!(c))),
                Op::HasPrivate(d, a, b) => cold!(d, object::has_private(st, r!(a), r!(b))),
                Op::InitPrivate(a, b, c, m) => effect!(object::init_private(st, r!(a), r!(b), r!(c), m)),
                Op::NewRegExp(d, k) => cold!(d, st.regexp_literal(k)),
                Op::Template(d, n) => {
                    r!(d) = st.templates.get(n as usize).copied().unwrap_or(Value::UNDEFINED)
                }
                Op::SetName(a, b, m) => effect!(object::set_name(st, r!(a), r!(b), m)),
                Op::Closure(d, n) => cold!(d, st.new_closure(w, code, n)),
                Op::Class(d, a, n) => effect!(object::new_class(st, w, code, d, a, n)),
                Op::SetFields(a, b) => effect!(object::set_fields(st, r!(a), r!(b))),
                Op::SetHome(a, b) => object::set_home(st, r!(a), r!(b)),
                Op::CheckObject(a) => {
                    if r!(a).is_nullish() {
                        effect!(object::not_an_object(st, r!(a)));
                    }
                }
                Op::CopyRest(d, a, b) => cold!(d, object::copy_rest(st, w, d, r!(a), r!(b))),

                Op::Call(d, a, n) => {
                    st.pc = abs!();
                    if let Some(obj) = r!(a).as_object()
                        && let Some(closure) = st.heap.closure_of(obj)
                        && !st.heap.flags(obj).has(crate::heap::Flags::CLASS_CONSTRUCTOR)
                    {
                        let base = frame_base + u32::from(a) + 1;
                        let calling =
                            Calling { dst: d, flags: FrameFlags::NONE, new_target: Value::UNDEFINED };
                        match st.push_closure(closure, r!(a), base, base + 1, u32::from(n), calling) {
                            Ok(()) => continue 'frame,
                            Err(exit) => return exit,
                        }
                    }
                    cold!(d, object::call_other(st, w, d, a, u32::from(n)))
                }
                Op::CallSpread(d, a) => cold!(d, object::call_spread(st, w, d, a)),
                Op::New(d, a, n) => cold!(d, st.construct(w, a, u32::from(n), d, r!(a))),
                Op::NewSpread(d, a) => cold!(d, object::new_spread(st, w, d, a)),
                Op::SuperCall(d, a, n, t) => cold!(d, object::super_call(st, w, d, a, u32::from(n), r!(t))),
                Op::SuperCallSpread(d, a, t) => cold!(d, object::super_call_spread(st, w, d, a, r!(t))),
                Op::CheckUnbound(a) => {
                    if !r!(a).is_hole() {
                        effect!(object::already_bound(st));
                    }
                }
                Op::InitFields(a, b) => effect!(object::init_fields(st, w, r!(a), r!(b))),
                Op::Ret(a) => {
                    let value = r!(a);
                    if flags != FrameFlags::NONE {
                        st.pc = abs!();
                        match st.return_special(regs, code, value) {
                            Ok(()) => continue 'frame,
                            Err(exit) => return exit,
                        }
                    }
                    let dst = st.frames.pop().map_or(0, |f| f.dst);
                    let Some(caller) = st.frames.last() else { return Exit::Done(value) };
                    let at = caller.base as usize + dst as usize;
                    if let Some(place) = regs.get_mut(at) {
                        *place = value;
                    }
                    continue 'frame;
                }
                Op::RetUndef => {
                    st.pc = abs!();
                    if flags == FrameFlags::NONE {
                        let frame = frame!();
                        st.frames.pop();
                        if let Err(exit) = st.deliver(regs, code, frame, Value::UNDEFINED) {
                            return exit;
                        }
                        continue 'frame;
                    }
                    match st.return_special(regs, code, Value::UNDEFINED) {
                        Ok(()) => continue 'frame,
                        Err(exit) => return exit,
                    }
                }
                Op::Throw(a) => {
                    st.pc = abs!();
                    return Exit::Throw(r!(a));
                }
                Op::ThrowNew(kind, k) => effect!(object::throw_new(st, kind, k)),
                Op::Arguments(d) => {
                    st.pc = abs!();
                    let frame = frame!();
                    match object::arguments(st, regs, &frame) {
                        Ok(v) => {
                            if let Some(place) = regs.get_mut(base + d as usize) {
                                *place = v;
                            }
                            if let Some(top) = st.frames.last_mut() {
                                top.pc = abs!();
                            }
                            continue 'frame;
                        }
                        Err(exit) => return exit,
                    }
                }
                Op::Rest(d, n) => {
                    st.pc = abs!();
                    let frame = frame!();
                    match object::rest(st, regs, &frame, n) {
                        Ok(v) => {
                            if let Some(place) = regs.get_mut(base + d as usize) {
                                *place = v;
                            }
                            if let Some(top) = st.frames.last_mut() {
                                top.pc = abs!();
                            }
                            continue 'frame;
                        }
                        Err(exit) => return exit,
                    }
                }
                Op::Intrinsic(d, a, n, i) => cold!(d, super::native::intrinsic(st, w, d, a, n, i)),
                Op::CallHelper(d, a, n, h) => cold!(d, object::call_helper(st, w, d, a, n, h)),

                Op::GetIter(a, b) => effect!(iterate::get_iter(st, w, a, b)),
                Op::GetRealIter(a, b) => effect!(iterate::get_real_iter(st, w, a, b)),
                Op::IterNext(d, a, t) => {
                    if let Some(i) = r!(a + 1).as_int() {
                        let array = r!(a);
                        if let Some(id) = array.as_array()
                            && let Some(v) = st.heap.array_get(id, i as u32)
                        {
                            r!(a + 1) = Value::int(i.wrapping_add(1));
                            r!(d) = v;
                            continue;
                        }
                    }
                    st.pc = abs!();
                    match iterate::iter_next(st, w, d, a) {
                        Ok(iterate::Next::Value) => {}
                        Ok(iterate::Next::Done) => pc = t as u16,
                        Err(Exit::Enter) => continue 'frame,
                        Err(exit) => return exit,
                    }
                }
                Op::IterClose(a) => effect!(iterate::close(st, w, a)),
                Op::IterAbort(a) => effect!(iterate::abort(st, w, a)),
                Op::ForIn(a, b) => effect!(iterate::for_in(st, w, a, b)),
                Op::ForInNext(d, a, t) => {
                    st.pc = abs!();
                    match iterate::for_in_next(st, w, d, a) {
                        Ok(iterate::Next::Value) => {}
                        Ok(iterate::Next::Done) => pc = t as u16,
                        Err(exit) => return exit,
                    }
                }
                Op::Spread(a, b) => effect!(iterate::spread(st, w, r!(a), r!(b))),
                Op::CopyProps(a, b) => effect!(object::copy_props(st, w, r!(a), r!(b))),
                Op::GetAsyncIter(a, b) => effect!(iterate::get_async_iter(st, w, a, b)),
                Op::CheckIterResult(a) => {
                    if !r!(a).is_object() {
                        effect!(iterate::not_a_result(st));
                    }
                }

                Op::GeneratorStart(d) => {
                    st.pc = abs!();
                    let frame = frame!();
                    match st.generator_start(regs, code, frame, d) {
                        Ok(()) => continue 'frame,
                        Err(exit) => return exit,
                    }
                }
                Op::Yield(d, a, m) => {
                    st.pc = abs!();
                    let v = r!(a);
                    let frame = frame!();
                    match st.yield_value(regs, code, frame, v, (d, m)) {
                        Ok(()) => continue 'frame,
                        Err(exit) => return exit,
                    }
                }
                Op::YieldResult(d, a, m) => {
                    st.pc = abs!();
                    let v = r!(a);
                    let frame = frame!();
                    match st.yield_result(regs, code, frame, v, (d, m)) {
                        Ok(()) => continue 'frame,
                        Err(exit) => return exit,
                    }
                }
                Op::Await(d, a) => {
                    st.pc = abs!();
                    let v = r!(a);
                    let frame = frame!();
                    match st.await_value(regs, code, frame, v, d) {
                        Ok(()) => continue 'frame,
                        Err(exit) => return exit,
                    }
                }
                Op::AsyncStart(d) => {
                    st.pc = abs!();
                    match st.async_start() {
                        Ok(promise) => {
                            r!(d) = promise;
                            if let Some(top) = st.frames.last_mut() {
                                top.pc = abs!();
                            }
                            continue 'frame;
                        }
                        Err(exit) => return exit,
                    }
                }
                Op::ResumeCheck(m, v, t) => match r!(m).as_int() {
                    Some(1) => {
                        st.pc = abs!();
                        return Exit::Throw(r!(v));
                    }
                    Some(2) => pc = t as u16,
                    _ => {}
                },
                Op::Nop => {}
                Op::NewRecord(d, n) => cold!(d, st.new_scope_record(n)),
                Op::GetRecord(d, a, n) => r!(d) = st.scope_value(r!(a), n),
                Op::SetRecord(b, a, n) => st.set_scope_value(r!(a), n, r!(b)),
                Op::HasGlobal(d, s) => r!(d) = global::exists(st, s),
                Op::FarJump(t) => {
                    if let Some(top) = st.frames.last_mut() {
                        top.pc = t;
                    }
                    effect!(st.burn(FAR_COST));
                    continue 'frame;
                }
                Op::DeclareGlobal(step, s) => effect!(global::declare(st, step, s)),
                Op::InitGlobal(a, s) => global::initialise(st, s, r!(a)),
            }
        }
    }
}
