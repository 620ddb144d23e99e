//! A machine as bytes: programs, heap, frames, registers and queues.
//!
//! Every field of the machine is named here, so that a new one cannot be forgotten: the compiler asks for a line.

use super::SnapshotError;
use super::bytes::{Flaw, Read, Reader, Writer, require};
use super::known::{KnownPrograms, write_programs};
use crate::code::Base;
use crate::exec::state::{Arguments, HostCall, Job, Limit, Limits, ReactionKind, Site, State};
use crate::exec::{Calling, Frame, FrameFlags, Image, RECORD_FIELDS, REGISTERS, Vm, saved_frame};
use crate::heap::{
    Class, ClosureId, Heap, Key, OverLimit, Pace, Point, Spans, atoms, read_value, read_values, write_value,
    write_values,
};
use crate::value::Value;
use std::collections::VecDeque;
use std::sync::Arc;

/// Where execution stands while a snapshot is taken.
const SNAPSHOT: Point = Point(u64::MAX - 1);

/// No run makes so many host calls.
const MOST_CALLS: u64 = 1 << 53;

/// Writes a machine. It is collected first.
pub(super) fn write(vm: &mut Vm, image: &Image, w: &mut Writer) {
    vm.state.held.clear();
    let used = vm.state.registers_in_use();
    vm.regs.truncate(used);
    vm.regs.resize(room_for(&vm.state, used), Value::UNDEFINED);
    // Only a footprint beyond all limits can make this fail, and then the run is as good as over.
    if let Err(over) = vm.state.collect(&vm.regs, SNAPSHOT) {
        vm.refused.get_or_insert(Limit::Heap(over));
    }
    vm.state.heap.settle();
    let Vm { state, regs, refused } = &*vm;
    let State {
        heap,
        frames,
        pc,
        // The loop finds its page by the pc.
        page: _,
        fuel,
        // Only a running slice has any.
        reserve: _,
        // Of interest only when a run has just ended.
        thrown: _,
        limits,
        code,
        taken,
        constants,
        sites: _,
        // Caches: what they knew is found again.
        gets: _,
        sets: _,
        templates,
        realm: _,
        helpers: _,
        jobs,
        waiting,
        pending,
        calls,
        arguments,
        // The embedder's, not the machine's.
        held: _,
        // The sum of those of the calls.
        queued_weight: _,
        answered,
        // It has just been collected.
        stale: _,
        pending_calling,
        above,
        root,
        job_promise,
        random,
        now,
        // A cache: patterns are compiled again.
        regexps: _,
        printed,
    } = state;
    let taken = *taken;
    let base = &image.state.heap.spans();
    write_programs(w, code, &image.state.code);
    heap.save(&image.state.heap, w);
    write_values(w, base, constants.get(taken.constants as usize..).unwrap_or_default());
    write_values(w, base, templates.get(taken.templates as usize..).unwrap_or_default());
    w.uint(limits.instructions - fuel);
    write_limit(w, *refused);
    w.uint(u64::from(*pc));
    w.byte(pending_calling.dst);
    w.uint(u64::from(pending_calling.flags.0));
    write_value(w, base, pending_calling.new_target);
    w.byte(*above);
    w.word(*random);
    w.word(now.to_bits());
    w.uint(*calls);
    w.flag(*arguments == Arguments::Plain);
    w.byte(match answered {
        None => 0,
        Some(Ok(_)) => 1,
        Some(Err(_)) => 2,
    });
    write_value(w, base, answered.map_or(Value::UNDEFINED, |answer| answer.unwrap_or_else(|e| e)));
    write_value(w, base, *job_promise);
    write_optional(w, base, *root);
    write_values(w, base, printed);
    w.count(frames.len());
    frames.iter().for_each(|f| write_frame(w, base, taken, f));
    write_values(w, base, regs.get(..used).unwrap_or_default());
    w.count(jobs.len());
    jobs.iter().for_each(|job| write_job(w, base, job));
    w.flag(pending.is_some());
    pending.iter().for_each(|call| write_call(w, base, call));
    w.count(waiting.len());
    waiting.iter().for_each(|call| write_call(w, base, call));
}

/// Reads a machine.
pub(super) fn read(
    image: &Image,
    payload: &[u8],
    limits: Limits,
    pace: Pace,
    programs: &mut KnownPrograms,
) -> Result<Vm, SnapshotError> {
    let (vm, used) = read_machine(image, payload, limits, pace, programs).map_err(|flaw| match flaw {
        Flaw::Invalid(what) => SnapshotError::Invalid(what),
        Flaw::TooLarge => SnapshotError::HeapLimit,
    })?;
    vm.state.fits(limits, used)?;
    Ok(vm)
}

fn read_machine(
    image: &Image,
    payload: &[u8],
    limits: Limits,
    pace: Pace,
    programs: &mut KnownPrograms,
) -> Read<(Vm, u64)> {
    // Programs and queues are paid for out of the same purse as the heap, but are not the guest's to pay.
    let budget = limits.heap.bytes.saturating_add(payload.len().saturating_mul(64)).saturating_add(1 << 24);
    let r = &mut Reader::new(payload, budget);
    let base = &image.state.heap.spans();
    let code = programs.read(r, &image.state.code)?;
    let heap = Heap::load(&image.state.heap, r, limits.heap, pace)?;
    let mut vm = image.with_heap(heap, limits);
    let taken = vm.state.taken;
    let st = &mut vm.state;
    let ends = code.base();
    st.code = code;
    let constants = read_values(r, base)?;
    require(constants.len() as u32 == ends.constants - taken.constants, "constants are missing")?;
    st.heap.check_values(&constants)?;
    st.constants.extend(constants);
    let templates = read_values(r, base)?;
    require(templates.len() as u32 == ends.templates - taken.templates, "templates are missing")?;
    st.heap.check_values(&templates)?;
    st.templates.extend(templates);
    let used = r.uint()?;
    st.fuel = limits.instructions.saturating_sub(used);
    vm.refused = read_limit(r)?;
    st.pc = r.u32()?;
    st.pending_calling =
        Calling { dst: r.byte()?, flags: FrameFlags(r.u16()?), new_target: read_value(r, base)? };
    st.heap.check_value(st.pending_calling.new_target)?;
    require(st.pending_calling.dst < u8::MAX, "a host call has nowhere to return to")?;
    st.above = r.byte()?;
    st.random = r.word()?.max(1);
    st.now = f64::from_bits(r.word()?);
    st.calls = r.uint()?;
    st.arguments = if r.flag()? { Arguments::Plain } else { Arguments::Any };
    st.answered = read_answer(r, base, &st.heap)?;
    st.job_promise = read_value(r, base)?;
    st.heap.check_value(st.job_promise)?;
    st.root = read_optional(r, base)?;
    st.heap.check_value(st.root.unwrap_or(Value::UNDEFINED))?;
    st.printed = read_values(r, base)?;
    st.heap.check_values(&st.printed)?;
    for _ in 0..r.count(size_of::<Frame>())? {
        st.frames.push(read_frame(r, base, taken)?);
    }
    let mut regs = read_values(r, base)?;
    st.heap.check_values(&regs)?;
    for _ in 0..r.count(size_of::<Job>())? {
        let job = read_job(r, base)?;
        st.heap.check_values(&job_values(&job))?;
        st.jobs.push_back(job);
    }
    st.pending = if r.flag()? { Some(read_call(r, base, &st.heap)?) } else { None };
    let mut waiting = VecDeque::new();
    for _ in 0..r.count(size_of::<HostCall>())? {
        waiting.push_back(read_call(r, base, &st.heap)?);
    }
    st.waiting = waiting;
    let queued = st.waiting.iter().chain(&st.pending);
    st.queued_weight = queued.fold(0, |sum, call| sum.saturating_add(call.weight));
    check_calls(st)?;
    r.end()?;
    check_closures(st)?;
    check_frames(st, &regs)?;
    check_records(st)?;
    restore_sites(st, taken)?;
    regs.resize(room_for(st, regs.len()), Value::UNDEFINED);
    vm.regs = regs;
    Ok((vm, used))
}

/// How long the register file must be to run on.
fn room_for(st: &State, used: usize) -> usize {
    let window = st.frames.last().map_or(0, |top| top.base as usize + 256);
    (used.max(window) + 256).max(REGISTERS)
}

fn write_limit(w: &mut Writer, limit: Option<Limit>) {
    let (tag, n) = match limit {
        None => (0, 0),
        Some(Limit::Instructions) => (1, 0),
        Some(Limit::CallDepth) => (2, 0),
        Some(Limit::HostCalls) => (3, 0),
        Some(Limit::Heap(OverLimit::Bytes { limit })) => (4, limit),
        Some(Limit::Heap(OverLimit::Records { limit })) => (5, limit),
    };
    w.byte(tag);
    w.count(n);
}

fn read_limit(r: &mut Reader<'_>) -> Read<Option<Limit>> {
    let (tag, n) = (r.byte()?, r.uint()?);
    let limit = usize::try_from(n).map_err(|_| Flaw::Invalid("a limit is too large"))?;
    Ok(match tag {
        0 => None,
        1 => Some(Limit::Instructions),
        2 => Some(Limit::CallDepth),
        3 => Some(Limit::HostCalls),
        4 => Some(Limit::Heap(OverLimit::Bytes { limit })),
        5 => Some(Limit::Heap(OverLimit::Records { limit })),
        _ => return Err(Flaw::Invalid("there is no such limit")),
    })
}

fn write_optional(w: &mut Writer, base: &Spans, v: Option<Value>) {
    w.flag(v.is_some());
    if let Some(v) = v {
        write_value(w, base, v);
    }
}

fn read_optional(r: &mut Reader<'_>, base: &Spans) -> Read<Option<Value>> {
    if r.flag()? { read_value(r, base).map(Some) } else { Ok(None) }
}

fn write_frame(w: &mut Writer, base: &Spans, taken: Base, frame: &Frame) {
    let Frame { func, pc, base: at, args, argc, closure, dst, flags, callee, new_target } = *frame;
    w.id(func, taken.functions);
    for n in [pc, at, args, argc] {
        w.uint(u64::from(n));
    }
    w.id(closure.raw(), base.closures);
    w.byte(dst);
    w.uint(u64::from(flags.0));
    write_value(w, base, callee);
    write_value(w, base, new_target);
}

fn read_frame(r: &mut Reader<'_>, base: &Spans, taken: Base) -> Read<Frame> {
    Ok(Frame {
        func: r.id(taken.functions)?,
        pc: r.u32()?,
        base: r.u32()?,
        args: r.u32()?,
        argc: r.u32()?,
        closure: ClosureId::from_raw(r.id(base.closures)?),
        dst: r.byte()?,
        flags: FrameFlags(r.u16()?),
        callee: read_value(r, base)?,
        new_target: read_value(r, base)?,
    })
}

fn write_job(w: &mut Writer, base: &Spans, job: &Job) {
    w.byte(match job {
        Job::Reaction { kind: ReactionKind::Fulfil, .. } => 0,
        Job::Reaction { kind: ReactionKind::Reject, .. } => 1,
        Job::Thenable { .. } => 2,
    });
    job_values(job).iter().for_each(|&v| write_value(w, base, v));
}

fn job_values(job: &Job) -> [Value; 3] {
    match *job {
        Job::Reaction { kind: _, handler, promise, value } => [handler, promise, value],
        Job::Thenable { promise, thenable, then } => [promise, thenable, then],
    }
}

fn read_job(r: &mut Reader<'_>, base: &Spans) -> Read<Job> {
    let tag = r.byte()?;
    let (a, b, c) = (read_value(r, base)?, read_value(r, base)?, read_value(r, base)?);
    let reaction = |kind| Job::Reaction { kind, handler: a, promise: b, value: c };
    match tag {
        0 => Ok(reaction(ReactionKind::Fulfil)),
        1 => Ok(reaction(ReactionKind::Reject)),
        2 => Ok(Job::Thenable { promise: a, thenable: b, then: c }),
        _ => Err(Flaw::Invalid("there is no such microtask")),
    }
}

fn write_call(w: &mut Writer, base: &Spans, call: &HostCall) {
    let HostCall { id, name, args, promise, weight } = call;
    w.uint(*id);
    w.uint(*weight);
    write_value(w, base, *name);
    write_values(w, base, args);
    write_optional(w, base, *promise);
}

fn read_call(r: &mut Reader<'_>, base: &Spans, heap: &Heap) -> Read<HostCall> {
    let (id, weight) = (r.uint()?, r.uint()?);
    let (name, args, promise) = (read_value(r, base)?, read_values(r, base)?, read_optional(r, base)?);
    heap.check_value(name)?;
    heap.check_values(&args)?;
    heap.check_value(promise.unwrap_or(Value::UNDEFINED))?;
    Ok(HostCall { id, name, args, promise, weight })
}

fn read_answer(r: &mut Reader<'_>, base: &Spans, heap: &Heap) -> Read<Option<Result<Value, Value>>> {
    let (tag, value) = (r.byte()?, read_value(r, base)?);
    heap.check_value(value)?;
    match tag {
        0 => Ok(None),
        1 => Ok(Some(Ok(value))),
        2 => Ok(Some(Err(value))),
        _ => Err(Flaw::Invalid("there is no such answer")),
    }
}

/// Every host call has a number of its own that was given out.
fn check_calls(st: &State) -> Read<()> {
    require(st.calls < MOST_CALLS, "there were too many host calls")?;
    let mut last = 0;
    for call in &st.waiting {
        require(call.id > last && call.id <= st.calls, "a host call has the number of another")?;
        last = call.id;
    }
    let waits = st.pending.as_ref().is_some_and(|call| call.promise.is_none());
    require(waits || st.answered.is_none(), "an answer is to no call")?;
    let Some(first) = &st.pending else { return Ok(()) };
    let own = (1..=st.calls).contains(&first.id) && st.waiting.iter().all(|call| call.id != first.id);
    require(own, "a host call has the number of another")
}

/// Every closure has code, and what its code captures.
fn check_closures(st: &State) -> Read<()> {
    for (code, captures) in st.heap.closure_codes() {
        require(code < st.code.len(), "a closure has no code")?;
        let wanted = st.code.function(code).captures.len();
        require(captures as usize >= wanted, "a closure lacks captured variables")?;
    }
    Ok(())
}

/// Is this where a call of the function could stand?
fn check_place(st: &State, func: u32, pc: u32, closure: ClosureId, callee: Value) -> Read<()> {
    require(func < st.code.len(), "a frame has no code")?;
    require(pc < st.code.function(func).len, "a frame stands outside its function")?;
    let own = callee.as_object().and_then(|f| st.heap.closure_of(f));
    require(own == Some(closure), "a frame is not that of its function")?;
    require(st.heap.closure_code(closure) == func, "a frame is not that of its function")
}

fn check_frames(st: &State, regs: &[Value]) -> Read<()> {
    for (i, frame) in st.frames.iter().enumerate() {
        st.heap.check_values(&[frame.callee, frame.new_target])?;
        check_place(st, frame.func, frame.pc, frame.closure, frame.callee)?;
        let registers = u64::from(st.code.function(frame.func).registers);
        let len = regs.len() as u64;
        // What a frame below the top has above the call it waits for is dead, so only the top must have all.
        let top = i + 1 == st.frames.len();
        let fits = frame.base > 0
            && u64::from(frame.base) <= len
            && (!top || u64::from(frame.base) + registers <= len)
            && (frame.pc != 0 || u64::from(frame.base) + 1 + u64::from(frame.argc) <= len);
        require(fits, "a frame has no registers")?;
        require(frame.dst < u8::MAX, "a frame has nowhere to return to")?;
        let suspendable = FrameFlags::GENERATOR.and(FrameFlags::ASYNC).and(FrameFlags::RESTORE);
        if frame.flags.has(suspendable) {
            let class = frame.new_target.as_object().map(|o| st.heap.class(o));
            let record = matches!(class, Some(Class::Generator | Class::AsyncGenerator));
            require(record, "a suspendable frame has no record")?;
        }
    }
    // More would be forgotten by the next snapshot, and a frame might stand on them.
    require(regs.len() == st.registers_in_use(), "the registers are not those of the frames")?;
    require(st.frames.is_empty() || st.pc <= 65_536, "the machine stands nowhere")
}

/// Every suspended frame stands where its function could.
fn check_records(st: &State) -> Read<()> {
    for fields in st.heap.suspended() {
        require(fields.len() >= RECORD_FIELDS, "a suspended frame is not whole")?;
        let saved = saved_frame(fields);
        check_place(st, saved.func, saved.pc, saved.closure, saved.callee)?;
        let registers = usize::from(st.code.function(saved.func).registers);
        require(fields.len() <= RECORD_FIELDS + registers, "a suspended frame has too many registers")?;
    }
    Ok(())
}

/// Sites are made of constants; their caches start empty.
fn restore_sites(st: &mut State, taken: Base) -> Read<()> {
    let code = Arc::clone(&st.code);
    let own = code.programs.iter().filter(|p| p.base.functions >= taken.functions);
    for &k in own.flat_map(|p| &p.sites) {
        let constant = st.constants.get(k as usize).copied().unwrap_or(Value::UNDEFINED);
        let key = st.heap.key_of_value(constant).map_err(|_| Flaw::TooLarge)?;
        st.sites.push(Site::new(key.unwrap_or(Key::atom(atoms::EMPTY))));
    }
    Ok(())
}
