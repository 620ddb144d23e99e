//! Functions implemented by the engine itself; the tables of [`crate::builtins`] have the rest.

use super::Window;
use super::call::Calling;
use super::frame::FrameFlags;
use super::state::{Exit, Res, State};
use super::suspend::Settled;
use crate::builtins::{self, Args};
use crate::heap::ObjId;
use crate::value::Value;

/// From here on, the number of a native function is a place in the tables of the standard library.
pub(crate) const TABLE_NATIVE: i32 = 1 << 24;

/// A call of a native: where its arguments are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NativeArgs {
    /// The register with the callee; `this` and the arguments follow.
    pub(crate) a: u8,
    pub(crate) argc: u32,
    pub(crate) calling: Calling,
}

/// The native functions, numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Native {
    Print,
    ResolvePromise,
    RejectPromise,
    /// `Function.prototype` itself: answers undefined.
    Nothing,
}

impl Native {
    const ALL: &'static [Native] =
        &[Native::Print, Native::ResolvePromise, Native::RejectPromise, Native::Nothing];
}

pub(crate) fn call(st: &mut State, w: &mut Window, callee: ObjId, args: NativeArgs) -> Res {
    let number =
        st.heap.slots_of(callee).and_then(|s| st.heap.slots(s).first().copied()).and_then(|v| v.as_int());
    let this = w[args.a as usize + 1];
    if let Some(n) = number.filter(|&n| n >= TABLE_NATIVE)
        && let Some(native) = builtins::native((n - TABLE_NATIVE) as u32)
    {
        let first = args.a.saturating_add(2);
        let callee = Value::object(callee);
        let args = Args { callee, this, first, argc: args.argc, calling: args.calling };
        return paying_once(st, |st| native(st, w, args));
    }
    let Some(&native) = number.and_then(|n| Native::ALL.get(n as usize)) else {
        return Err(st.type_error("unknown native function"));
    };
    let arg = |w: &Window, n: u32| {
        if n < args.argc { w[args.a as usize + 2 + n as usize] } else { Value::UNDEFINED }
    };
    let first = arg(w, 0);
    match native {
        Native::Print => {
            st.printed.push(first);
            Ok(Value::UNDEFINED)
        }
        Native::ResolvePromise => st.call_resolving(w, callee, Settled::Fulfilled, first, args.calling),
        Native::RejectPromise => st.call_resolving(w, callee, Settled::Rejected, first, args.calling),
        Native::Nothing => Ok(Value::UNDEFINED),
    }
}

/// Calls a native of the tables without arguments from inside an instruction. The caller knows that it enters no frame.
pub(crate) fn call_directly(st: &mut State, w: &mut Window, function: Value, this: Value) -> Res {
    let number = function
        .as_object()
        .and_then(|f| st.heap.slots_of(f))
        .and_then(|s| st.heap.slots(s).first().copied())
        .and_then(|v| v.as_int());
    let native =
        number.filter(|&n| n >= TABLE_NATIVE).and_then(|n| builtins::native((n - TABLE_NATIVE) as u32));
    let Some(native) = native else { return Err(Exit::Slow) };
    let calling = Calling { dst: 0, flags: FrameFlags::NONE, new_target: Value::UNDEFINED };
    let args = Args { callee: function, this, first: 0, argc: 0, calling };
    paying_once(st, |st| native(st, w, args))
}

/// `%Name(…)`.
#[inline(never)]
pub(crate) fn intrinsic(st: &mut State, w: &mut Window, d: u8, a: u8, n: u8, number: u32) -> Res {
    let calling = Calling { dst: d, flags: FrameFlags::NONE, new_target: Value::UNDEFINED };
    let undefined = Value::UNDEFINED;
    let args = Args { callee: undefined, this: undefined, first: a, argc: u32::from(n), calling };
    let native = builtins::native(number);
    match native.map(|native| paying_once(st, |st| native(st, w, args))) {
        Some(Err(Exit::Slow)) | None => {
            Err(st.type_error("the engine called an intrinsic with a value it is not for"))
        }
        Some(result) => result,
    }
}

/// A native that must be run again after a collection pays for its last run only: so what a script costs does not
/// depend on when garbage is collected, and the heap can tell a repeated instruction from progress.
#[inline]
fn paying_once(st: &mut State, native: impl FnOnce(&mut State) -> Res) -> Res {
    let (fuel, reserve) = (st.fuel, st.reserve);
    let result = native(st);
    if let Err(Exit::Alloc(crate::heap::AllocError::Collect)) = result {
        (st.fuel, st.reserve) = (fuel, reserve);
    }
    result
}
