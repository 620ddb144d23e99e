//! Promise: the fast paths of plain promises, and what `promise.js` is written with.

use super::{Args, Row, slow};
use crate::exec::state::{Job, Res, State};
use crate::exec::{FrameFlags, Helper, Resolution, Settled, Window};
use crate::heap::{Attrs, Descriptor, Key, Own, atoms, symbols};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("Promise.prototype.then", then),
    ("Promise.resolve", resolve),
    ("Promise.reject", reject),
    ("PromiseNew", |st, w, a| st.new_promise_of(a.get(w, 0).as_object())),
    ("PromiseResolver", |st, w, a| st.resolver(a.get(w, 0))),
    ("PromiseRejecter", |st, w, a| st.rejecter(a.get(w, 0))),
    ("PromiseSettle", |st, w, a| {
        let how = if a.get(w, 2) == Value::TRUE { Settled::Rejected } else { Settled::Fulfilled };
        st.settle(a.get(w, 0), how, a.get(w, 1));
        Ok(Value::UNDEFINED)
    }),
    ("PromiseFollow", |st, w, a| {
        let (promise, thenable, then) = (a.get(w, 0), a.get(w, 1), a.get(w, 2));
        st.jobs.push_back(Job::Thenable { promise, thenable, then });
        Ok(Value::UNDEFINED)
    }),
    ("PromiseThen", |st, w, a| {
        let (promise, dependent) = (a.get(w, 0), a.get(w, 3));
        add_reaction(st, promise, a.get(w, 1), a.get(w, 2), dependent)
    }),
    ("CallExecutor", |st, w, a| {
        let functions = [a.get(w, 2), a.get(w, 3)];
        let (executor, this) = (a.get(w, 0), a.get(w, 1));
        st.call_above(w, executor, this, &functions, a.calling.dst, FrameFlags::EXECUTOR)
    }),
    ("AllRejected", all_rejected),
];

/// `promise.then(…)` of a plain promise with the realm's species.
fn then(st: &mut State, w: &mut Window, a: Args) -> Res {
    if !st.is_plain_promise(a.this) || !has_own_species(st) {
        return slow();
    }
    let dependent = st.new_promise()?;
    add_reaction(st, a.this, a.get(w, 0), a.get(w, 1), dependent)
}

/// Handlers that cannot be called do not count.
fn add_reaction(st: &mut State, promise: Value, fulfilled: Value, rejected: Value, dependent: Value) -> Res {
    st.burn(1)?;
    st.perform_then(promise, [fulfilled, rejected], dependent)?;
    Ok(dependent)
}

/// Whether `Promise[Symbol.species]` is what it was: a getter of the realm that answers its `this`.
fn has_own_species(st: &State) -> bool {
    let Some(constructor) = st.helper(Helper::PromiseConstructor).as_object() else { return false };
    matches!(st.heap.get_own(constructor, Key::symbol(symbols::SPECIES)),
        Own::Accessor { get, .. } if get == st.helper(Helper::PromiseSpecies))
}

/// `Promise.resolve(v)` on the realm's constructor, unless the value has a `then` to ask guest code for.
fn resolve(st: &mut State, w: &mut Window, a: Args) -> Res {
    let v = a.get(w, 0);
    if a.this != st.helper(Helper::PromiseConstructor) {
        return slow();
    }
    if st.is_plain_promise(v) {
        return Ok(v);
    }
    if st.is_promise(v) {
        // Its `constructor` may be a getter.
        return slow();
    }
    let promise = st.new_promise()?;
    match st.try_resolve(promise, v)? {
        Resolution::Done => Ok(promise),
        Resolution::AskThen => slow(),
    }
}

/// `Promise.reject(v)` on the realm's constructor.
fn reject(st: &mut State, w: &mut Window, a: Args) -> Res {
    if a.this != st.helper(Helper::PromiseConstructor) {
        return slow();
    }
    let promise = st.new_promise()?;
    st.settle(promise, Settled::Rejected, a.get(w, 0));
    Ok(promise)
}

/// `%AllRejected(errors)`: the error of `Promise.any`.
fn all_rejected(st: &mut State, w: &mut Window, a: Args) -> Res {
    let message = st.heap.new_string("All promises were rejected")?;
    let prototype = st.realm.proto(crate::exec::Proto::AggregateError);
    let error = st.make_error(prototype, Some(Value::string(message)))?;
    if let Some(object) = error.as_object() {
        let desc = Descriptor::data(a.get(w, 0), Attrs::HIDDEN);
        st.heap.define_own(object, Key::atom(atoms::ERRORS), &desc)?;
    }
    Ok(error)
}
