//! The intrinsics of `suspend.js`: resolving promises, and the resumption of async generators.

use super::{Args, Row};
use crate::exec::state::{Res, State};
use crate::exec::{Helper, Resolution, Resume, Window};
use crate::heap::{Attrs, Descriptor};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("ResolvePromise", resolve),
    ("PromiseResolve", |st, w, a| {
        let v = a.get(w, 0);
        st.promise_resolve(w, v, a.calling.dst, a.calling.flags)
    }),
    ("AsyncGeneratorResume", |st, w, a| {
        let (generator, how, v) = (a.get(w, 0), resume_mode(a.get(w, 1)), a.get(w, 2));
        resume(st, w, a, generator, how, v)
    }),
    ("AsyncGenerator.prototype.next", |st, w, a| {
        let v = a.get(w, 0);
        resume(st, w, a, a.this, Resume::Next, v)
    }),
    ("AsyncGenerator.prototype.return", |st, w, a| {
        let v = a.get(w, 0);
        resume(st, w, a, a.this, Resume::Return, v)
    }),
    ("AsyncGenerator.prototype.throw", |st, w, a| {
        let v = a.get(w, 0);
        resume(st, w, a, a.this, Resume::Throw, v)
    }),
    ("Fixed", read_only),
];

/// `%ResolvePromise(promise, v)`.
fn resolve(st: &mut State, w: &mut Window, args: Args) -> Res {
    let (promise, v) = (args.get(w, 0), args.get(w, 1));
    match st.try_resolve(promise, v)? {
        Resolution::Done => Ok(Value::UNDEFINED),
        Resolution::AskThen => {
            Err(st.enter_helper(w, Helper::ResolveSlow, &[promise, v], args.calling.dst, args.calling.flags))
        }
    }
}

fn resume_mode(v: Value) -> Resume {
    match v.as_int() {
        Some(1) => Resume::Throw,
        Some(2) => Resume::Return,
        _ => Resume::Next,
    }
}

fn resume(st: &mut State, w: &mut Window, args: Args, generator: Value, how: Resume, v: Value) -> Res {
    // The body's registers begin where the arguments of this call are: they have been read. Its callee is below them.
    let base = st.top().map_or(0, |f| f.base) + u32::from(args.first) + 1;
    st.async_generator_resume(w, base, args.calling, generator, how, v)
}

/// `%Fixed(target, key, value)`: configurable and nothing else.
fn read_only(st: &mut State, w: &mut Window, args: Args) -> Res {
    let Some(target) = args.get(w, 0).as_object() else { return Ok(Value::UNDEFINED) };
    let key = st.property_key(args.get(w, 1))?;
    st.heap.define_own(target, key, &Descriptor::data(args.get(w, 2), Attrs::CONFIGURABLE))?;
    Ok(Value::UNDEFINED)
}
