//! Long functions: more instructions than a page holds are laid out in several.
//!
//! A page is filled to half with instructions of the function. Behind them is a jump to the next page, and then a
//! far jump for every target in another page that something here jumps to: there are at most as many of those as
//! instructions, so they always fit.

use super::emit::target_mut;
use crate::code::{Op, WINDOW};
use rustc_hash::FxHashMap;

/// Instructions of the function that a page takes.
const FILL: usize = WINDOW / 2;

/// Where instruction number `pc` goes. The very first place stays free: a jump to it would look like a call.
pub(super) fn place(pc: u32) -> u32 {
    let at = pc as usize + 1;
    (at / FILL * WINDOW + at % FILL) as u32
}

/// The pages of a function whose jumps name places already.
pub(super) fn lay_out(code: &[Op]) -> Vec<Op> {
    let mut out = vec![Op::Nop];
    let mut far: FxHashMap<u32, u32> = FxHashMap::default();
    let mut trampolines = Vec::new();
    for (pc, &op) in code.iter().enumerate() {
        let here = place(pc as u32) as usize;
        if here.is_multiple_of(WINDOW) {
            end_page(&mut out, &mut trampolines, here);
            far.clear();
        }
        let mut op = op;
        if let Some(target) = target_mut(&mut op)
            && *target as usize / WINDOW != here / WINDOW
        {
            let page = here / WINDOW * WINDOW;
            let next = (page + FILL + 1 + trampolines.len()) as u32;
            *target = *far.entry(*target).or_insert_with(|| {
                trampolines.push(Op::FarJump(*target));
                next
            });
        }
        out.push(op);
    }
    end_page(&mut out, &mut trampolines, 0);
    out.push(Op::RetUndef);
    out
}

/// Ends a page: on to the next one (if there is one), and the far jumps.
fn end_page(out: &mut Vec<Op>, trampolines: &mut Vec<Op>, next: usize) {
    let page = out.len() / WINDOW * WINDOW;
    // A page that is not full ends by itself: the last instruction of a function returns.
    out.resize(page + FILL, Op::RetUndef);
    out.push(if next == 0 { Op::RetUndef } else { Op::FarJump(next as u32) });
    out.append(trampolines);
    if next > 0 {
        out.resize(next, Op::RetUndef);
    }
}
