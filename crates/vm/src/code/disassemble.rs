//! Programs as text, for people and for snapshot tests.

use super::program::{Function, Program};
use std::fmt::Write;

/// All functions of a program, one instruction a line.
pub fn disassemble(program: &Program) -> String {
    let mut out = String::new();
    for (index, function) in program.functions.iter().enumerate() {
        function_text(&mut out, program, index, function);
    }
    out
}

fn function_text(out: &mut String, program: &Program, index: usize, function: &Function) {
    // Writing to a String cannot fail, so the results carry no information.
    let _ = writeln!(
        out,
        "function {index} {:?} registers={} parameters={} captures={:?}",
        function.kind, function.registers, function.parameters, function.captures
    );
    let start = function.start as usize;
    for (pc, op) in program.code.iter().skip(start).take(function.len as usize).enumerate() {
        let _ = writeln!(out, "  {pc:4} {op:?}");
    }
    for h in &function.handlers {
        let _ = writeln!(out, "  catch {}..{} -> {} in {}", h.start, h.end, h.target, h.register);
    }
}
