//! Programs as bytes, and back.
//!
//! Instructions are written function by function in the order of their numbers, so the place of a function in the
//! arena is not part of the blob. What was read is checked by `verify` before anybody can run it.

use super::bytes::{Flaw, Read, Reader, Writer, require};
use super::verify::verify;
use crate::code::{
    Base, Capture, Constant, Declare, Function, FunctionKind, Handler, Member, Op, Operands, Program,
    Template,
};

/// Numbers from here on are captures out of a record: the others end below.
const RECORDS: u64 = 1 << 18;

/// The most instructions of one program: far above what a source of the largest permitted size needs.
const MOST_CODE: usize = 1 << 26;

const KINDS: &[FunctionKind] = &[
    FunctionKind::Script,
    FunctionKind::Normal,
    FunctionKind::Arrow,
    FunctionKind::Method,
    FunctionKind::BaseConstructor,
    FunctionKind::DerivedConstructor,
    FunctionKind::Generator,
    FunctionKind::Async,
    FunctionKind::AsyncArrow,
    FunctionKind::AsyncGenerator,
    FunctionKind::Fields,
];

/// Appends a program.
pub(crate) fn write(w: &mut Writer, program: &Program) {
    let Program { base, code, functions, constants, sites, templates, source } = program;
    for n in [base.functions, base.constants, base.sites, base.templates] {
        w.uint(u64::from(n));
    }
    w.text(source.as_bytes());
    w.count(constants.len());
    for constant in constants {
        write_constant(w, constant);
    }
    w.count(sites.len());
    for &k in sites {
        w.id(k, base.constants);
    }
    w.count(templates.len());
    for template in templates {
        w.count(template.raw.len());
        for &k in &template.raw {
            w.id(k, base.constants);
        }
        w.count(template.cooked.len());
        for k in &template.cooked {
            w.option(*k);
        }
    }
    w.count(functions.len());
    for function in functions {
        let from = function.start as usize;
        let ops = code.get(from..from + function.len as usize).unwrap_or_default();
        write_function(w, *base, function, ops);
    }
}

/// Reads a program and checks it.
pub(crate) fn read(r: &mut Reader<'_>) -> Read<Program> {
    let base = Base { functions: r.u32()?, constants: r.u32()?, sites: r.u32()?, templates: r.u32()? };
    let source = std::str::from_utf8(r.text()?).map_err(|_| Flaw::Invalid("a source is not text"))?;
    r.spend(source.len())?;
    let mut constants = Vec::with_capacity(r.count(size_of::<Constant>())?);
    for _ in 0..constants.capacity() {
        constants.push(read_constant(r)?);
    }
    let mut sites = Vec::with_capacity(r.count(size_of::<u32>())?);
    for _ in 0..sites.capacity() {
        sites.push(r.id(base.constants)?);
    }
    let mut templates = Vec::with_capacity(r.count(size_of::<Template>())?);
    for _ in 0..templates.capacity() {
        let mut raw = Vec::with_capacity(r.count(size_of::<u32>())?);
        for _ in 0..raw.capacity() {
            raw.push(r.id(base.constants)?);
        }
        let mut cooked = Vec::with_capacity(r.count(size_of::<Option<u32>>())?);
        for _ in 0..cooked.capacity() {
            cooked.push(r.option()?);
        }
        templates.push(Template { cooked, raw });
    }
    let mut functions = Vec::with_capacity(r.count(size_of::<Function>())?);
    let mut code = Vec::new();
    for _ in 0..functions.capacity() {
        functions.push(read_function(r, base, &mut code)?);
    }
    let program = Program { base, code, functions, constants, sites, templates, source: source.into() };
    verify(&program)?;
    Ok(program)
}

fn write_constant(w: &mut Writer, constant: &Constant) {
    match constant {
        Constant::Number(n) => {
            w.byte(0);
            w.word(n.to_bits());
        }
        Constant::String(units) => {
            if units.iter().all(|&u| u < 256) {
                w.byte(1);
                w.count(units.len());
                units.iter().for_each(|&u| w.byte(u as u8));
            } else {
                w.byte(2);
                w.count(units.len());
                units.iter().for_each(|&u| w.uint(u64::from(u)));
            }
        }
        Constant::BigInt(digits) => {
            w.byte(3);
            w.text(digits.as_bytes());
        }
    }
}

fn read_constant(r: &mut Reader<'_>) -> Read<Constant> {
    Ok(match r.byte()? {
        0 => Constant::Number(f64::from_bits(r.word()?)),
        1 => {
            let text = r.text()?;
            r.spend(text.len() * 2)?;
            Constant::String(text.iter().map(|&b| u16::from(b)).collect())
        }
        2 => {
            let mut units = Vec::with_capacity(r.count(2)?);
            for _ in 0..units.capacity() {
                units.push(r.u16()?);
            }
            require(units.iter().any(|&u| u > 255), "a narrow text is spelled as a wide one")?;
            Constant::String(units)
        }
        3 => {
            let digits = r.text()?;
            r.spend(digits.len())?;
            let digits = std::str::from_utf8(digits).map_err(|_| Flaw::Invalid("a bigint is not text"))?;
            Constant::BigInt(digits.to_owned())
        }
        _ => return Err(Flaw::Invalid("there is no such constant")),
    })
}

/// Appends a function with its instructions, but not where they are.
pub(crate) fn write_function(w: &mut Writer, base: Base, function: &Function, ops: &[Op]) {
    let Function {
        name,
        kind,
        start: _,
        len: _,
        registers,
        parameters,
        length,
        captures,
        handlers,
        positions,
        span,
        keeps_arguments,
        hidden,
    } = function;
    w.byte(KINDS.iter().position(|k| k == kind).unwrap_or(usize::from(u8::MAX)) as u8);
    w.byte(u8::from(*keeps_arguments) | u8::from(*hidden) << 1 | u8::from(name.is_some()) << 2);
    if let Some(k) = *name {
        w.id(k, base.constants);
    }
    for n in [*registers, *parameters, *length] {
        w.uint(u64::from(n));
    }
    w.count(captures.len());
    for capture in captures {
        w.uint(match *capture {
            Capture::Absent => 0,
            Capture::Register(r) => u64::from(r) * 2 + 1,
            Capture::Captured(n) => u64::from(n) * 2 + 2,
            Capture::Record(r, n) => RECORDS + (u64::from(r) << 16 | u64::from(n)),
        });
    }
    w.count(ops.len());
    let mut operands = OperandWriter { w, base };
    for op in ops {
        operands.w.byte(op.number());
        // The writer never stops.
        let _ = { *op }.operands(&mut operands);
    }
    let w = operands.w;
    w.count(handlers.len());
    for h in handlers {
        for n in [h.start, h.end, h.target, u32::from(h.register)] {
            w.uint(u64::from(n));
        }
    }
    w.uint(u64::from(span.0));
    w.int(i64::from(span.1) - i64::from(span.0));
    w.count(positions.len());
    let (mut at, mut offset) = (0, span.0);
    for &(pc, position) in positions {
        w.uint(u64::from(pc.wrapping_sub(at)));
        w.int(i64::from(position) - i64::from(offset));
        (at, offset) = (pc, position);
    }
}

/// Reads a function, and appends its instructions to the code.
pub(crate) fn read_function(r: &mut Reader<'_>, base: Base, code: &mut Vec<Op>) -> Read<Function> {
    let kind = KINDS.get(usize::from(r.byte()?)).copied();
    let kind = kind.ok_or(Flaw::Invalid("there is no such kind of function"))?;
    let bits = r.byte()?;
    require(bits < 8, "a function has unknown properties")?;
    let name = if bits & 4 != 0 { Some(r.id(base.constants)?) } else { None };
    let (registers, parameters, length) = (r.u16()?, r.u16()?, r.u16()?);
    let mut captures = Vec::with_capacity(r.count(size_of::<Capture>())?);
    for _ in 0..captures.capacity() {
        captures.push(match r.u32()? {
            0 => Capture::Absent,
            n if u64::from(n) >= RECORDS => {
                let place = n - RECORDS as u32;
                Capture::Record(narrow(place >> 16)?, (place & 0xFFFF) as u16)
            }
            n if n % 2 == 1 => Capture::Register(narrow(n / 2)?),
            n => Capture::Captured(narrow(n / 2 - 1)?),
        });
    }
    let start = code.len();
    let len = r.count(size_of::<Op>())?;
    require(start + len <= MOST_CODE, "a function is too long")?;
    let mut operands = OperandReader { r, base };
    for _ in 0..len {
        let mut op = Op::blank(operands.r.byte()?).ok_or(Flaw::Invalid("there is no such instruction"))?;
        op.operands(&mut operands)?;
        code.push(op);
    }
    let r = operands.r;
    let mut handlers = Vec::with_capacity(r.count(size_of::<Handler>())?);
    for _ in 0..handlers.capacity() {
        handlers.push(Handler {
            start: r.u32()?,
            end: r.u32()?,
            target: r.u32()?,
            register: narrow(r.u32()?)?,
        });
    }
    let from = r.u32()?;
    let span = (from, r.id(from)?);
    let mut positions = Vec::with_capacity(r.count(size_of::<(u32, u32)>())?);
    let (mut at, mut offset) = (0u32, from);
    for _ in 0..positions.capacity() {
        at = at.checked_add(r.u32()?).ok_or(Flaw::Invalid("a position is out of range"))?;
        offset = r.id(offset)?;
        positions.push((at, offset));
    }
    Ok(Function {
        name,
        kind,
        start: start as u32,
        len: len as u32,
        registers,
        parameters,
        length,
        captures,
        handlers,
        positions,
        span,
        keeps_arguments: bits & 1 != 0,
        hidden: bits & 2 != 0,
    })
}

fn narrow<T: TryFrom<u32>>(n: u32) -> Read<T> {
    T::try_from(n).map_err(|_| Flaw::Invalid("a number is too large"))
}

struct OperandWriter<'a> {
    w: &'a mut Writer,
    base: Base,
}

macro_rules! plain {
    ($($kind:ident: $type:ty),*) => {$(
        fn $kind(&mut self, n: &mut $type) -> Result<(), Self::Stop> {
            self.w.uint(u64::from(*n));
            Ok(())
        }
    )*};
}

macro_rules! based {
    ($($kind:ident: $base:ident),*) => {$(
        fn $kind(&mut self, n: &mut u32) -> Result<(), Self::Stop> {
            self.w.id(*n, self.base.$base);
            Ok(())
        }
    )*};
}

impl Operands for OperandWriter<'_> {
    type Stop = std::convert::Infallible;

    plain!(reg: u8, pair: u8, callee: u8, spread: u8, first: u8, arguments: u8, error: u8, captured: u16, cost: u16);
    plain!(jump: u32, number: u32, intrinsic: u32, helper: u32);
    based!(constant: constants, constants: constants, site: sites, function: functions, template: templates);

    fn int(&mut self, n: &mut i32) -> Result<(), Self::Stop> {
        self.w.int(i64::from(*n));
        Ok(())
    }
    fn short(&mut self, n: &mut i16) -> Result<(), Self::Stop> {
        self.w.int(i64::from(*n));
        Ok(())
    }
    fn member(&mut self, m: &mut Member) -> Result<(), Self::Stop> {
        self.w.byte(*m as u8);
        Ok(())
    }
    fn declare(&mut self, d: &mut Declare) -> Result<(), Self::Stop> {
        self.w.byte(*d as u8);
        Ok(())
    }
}

struct OperandReader<'a, 'b> {
    r: &'a mut Reader<'b>,
    base: Base,
}

macro_rules! read_plain {
    ($($kind:ident: $type:ty),*) => {$(
        fn $kind(&mut self, n: &mut $type) -> Read<()> {
            *n = narrow(self.r.u32()?)?;
            Ok(())
        }
    )*};
}

macro_rules! read_based {
    ($($kind:ident: $base:ident),*) => {$(
        fn $kind(&mut self, n: &mut u32) -> Read<()> {
            *n = self.r.id(self.base.$base)?;
            Ok(())
        }
    )*};
}

impl Operands for OperandReader<'_, '_> {
    type Stop = Flaw;

    read_plain!(reg: u8, pair: u8, callee: u8, spread: u8, first: u8, arguments: u8, error: u8, captured: u16, cost: u16);
    read_plain!(jump: u32, number: u32, intrinsic: u32, helper: u32);
    read_based!(constant: constants, constants: constants, site: sites, function: functions, template: templates);

    fn int(&mut self, n: &mut i32) -> Read<()> {
        *n = self.r.i32()?;
        Ok(())
    }
    fn short(&mut self, n: &mut i16) -> Read<()> {
        *n = i16::try_from(self.r.i32()?).map_err(|_| Flaw::Invalid("a number is too large"))?;
        Ok(())
    }
    fn member(&mut self, m: &mut Member) -> Read<()> {
        let found = Member::ALL.get(usize::from(self.r.byte()?));
        *m = *found.ok_or(Flaw::Invalid("there is no such member"))?;
        Ok(())
    }
    fn declare(&mut self, d: &mut Declare) -> Read<()> {
        let found = Declare::ALL.get(usize::from(self.r.byte()?));
        *d = *found.ok_or(Flaw::Invalid("there is no such declaration"))?;
        Ok(())
    }
}
