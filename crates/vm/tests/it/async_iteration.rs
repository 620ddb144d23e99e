//! Async generators, async iteration and promises, step by step: what each script logs is recorded from node 20, but
//! for the one case marked as newer.

use crate::eval::{eval_at, logged};
use outrigger_vm::heap::Pace;

#[test]
fn nothing_that_waits_is_lost_when_everything_else_is_collected() {
    let source = "let log = ''; async function* g() { try { log += await (yield { v: 1 }); yield* [{ v: 2 }] } finally { log += 'f' } } \
        const it = g(), all = [it.next(), it.next('x'), it.next(), it.return({ v: 9 })]; \
        for (const r of all) { const { value, done } = await r; log += (value ? value.v : '-') + done } log";
    assert_eq!(eval_at(source, Pace::Torture), "x2f-true10");
}

#[test]
fn an_async_generator_answers_in_order() {
    let source = r#"
  async function* g() { p('start'); const a = yield 1; p('a' + a); try { yield 2 } finally { p('cleanup') } return 3 }
  const it = g();
  const rs = [it.next('x'), it.next('y'), it.next('z'), it.next('w')];
  p('sync');
  for (const r of rs) { const v = await r; p(v.value + ':' + v.done) }"#;
    assert_eq!(logged(source), "start sync ay 1:false cleanup 2:false 3:true undefined:true");
}

#[test]
fn operands_of_yield_and_return_are_awaited() {
    let source = r#"
  async function* g() { const r = yield Promise.resolve(5); p('got ' + r); return Promise.resolve(6) }
  const it = g();
  p((await it.next()).value); const last = await it.next('in'); p(last.value + ':' + last.done);
  async function* h() { try { yield Promise.reject('no') } catch (e) { p('caught ' + e); yield 'after' } }
  for await (const v of h()) p(v);"#;
    assert_eq!(logged(source), "5 got in 6:true caught no after");
}

#[test]
fn return_and_throw_before_the_start() {
    let source = r#"
  async function* g() { p('never') ; yield 1 }
  let it = g(); let r = await it.return(Promise.resolve('early')); p(r.value + ':' + r.done); r = await it.next(); p(r.value + ':' + r.done);
  it = g(); try { await it.throw('bad') } catch (e) { p('threw ' + e) } r = await it.next(); p(r.value + ':' + r.done);
  it = g(); try { await it.return(Promise.reject('rej')) } catch (e) { p('rejected ' + e) } r = await it.next(); p(r.value + ':' + r.done);"#;
    assert_eq!(
        logged(source),
        "early:true undefined:true threw bad undefined:true rejected rej undefined:true"
    );
}

#[test]
fn return_in_the_middle_runs_finally_and_awaits() {
    let source = r#"
  async function* g() { try { yield 1; yield 2 } finally { p('f1'); await 0; p('f2'); } }
  const it = g(); await it.next(); const r = await it.return(Promise.resolve('v')); p(r.value + ':' + r.done);
  async function* h() { try { yield 1 } finally { yield 'from finally' } }
  const i2 = h(); await i2.next(); let q = await i2.return('x'); p(q.value + ':' + q.done); q = await i2.next(); p(q.value + ':' + q.done);
  async function* k() { try { yield 1 } catch (e) { p('caught ' + e); yield 2 } }
  const i3 = k(); await i3.next(); q = await i3.return(Promise.reject('r')); p(q.value + ':' + q.done);"#;
    assert_eq!(logged(source), "f1 f2 v:true from finally:false x:true caught r 2:false");
}

#[test]
fn throw_is_caught_inside() {
    let source = r#"
  async function* g() { while (true) { try { yield 1 } catch (e) { p('c' + e) } } }
  const it = g(); await it.next(); let r = await it.throw('A'); p(r.value + ':' + r.done); 
  async function* h() { yield 1; throw 'end' }
  const i2 = h(); await i2.next(); try { await i2.next() } catch (e) { p('threw ' + e) } r = await i2.next(); p(r.value + ':' + r.done);"#;
    assert_eq!(logged(source), "cA 1:false threw end undefined:true");
}

#[test]
fn queued_requests_after_the_end() {
    let source = r#"
  async function* g() { yield 1 }
  const it = g();
  const all = [it.next(), it.next(), it.throw('t'), it.return('r'), it.next()];
  for (const r of all) { try { const v = await r; p(v.value + ':' + v.done) } catch (e) { p('threw ' + e) } }"#;
    assert_eq!(logged(source), "1:false undefined:true threw t r:true undefined:true");
}

#[test]
fn ticks_of_yield() {
    let source = r#"
  async function* g() { yield 1; yield 2; return 3 }
  const it = g(); let n = 0; let done = false;
  const tick = async () => { while (!done) { p('t' + n++); await 0 } };
  const run = async () => { p((await it.next()).value); p((await it.next()).value); p((await it.next()).value); done = true };
  await Promise.resolve(); const a = run(), b = tick(); await a; await b;"#;
    assert_eq!(logged(source), "t0 t1 1 t2 t3 2 t4 t5 3");
}

#[test]
fn ticks_of_for_await() {
    let source = r#"
  async function* g() { yield 'a'; yield 'b' }
  let n = 0, done = false;
  const tick = async () => { while (!done) { p('t' + n++); await 0 } };
  const run = async () => { for await (const v of g()) p(v); p('end'); done = true };
  const a = run(), b = tick(); await a; await b;"#;
    assert_eq!(logged(source), "t0 t1 a t2 t3 b t4 end");
}

#[test]
fn ticks_of_for_await_over_a_sync_iterable() {
    let source = r#"
  let n = 0, done = false;
  const tick = async () => { while (!done) { p('t' + n++); await 0 } };
  const run = async () => { for await (const v of [Promise.resolve('x'), 'y']) p(v); p('end'); done = true };
  const a = run(), b = tick(); await a; await b;"#;
    assert_eq!(logged(source), "t0 t1 x t2 t3 y t4 t5 end");
}

#[test]
fn ticks_of_async_delegation() {
    let source = r#"
  async function* inner() { yield 'i1'; return 'ir' }
  async function* outer() { const r = yield* inner(); p('r=' + r); yield* ['s1', Promise.resolve('s2')]; return 'or' }
  let n = 0, done = false;
  const tick = async () => { while (!done) { p('t' + n++); await 0 } };
  const run = async () => { const it = outer(); for (;;) { const r = await it.next(); p(r.value + ':' + r.done); if (r.done) break } done = true };
  const a = run(), b = tick(); await a; await b;"#;
    assert_eq!(
        logged(source),
        "t0 t1 t2 i1:false t3 t4 r=ir t5 t6 t7 s1:false t8 t9 t10 s2:false t11 t12 t13 t14 or:true"
    );
}

#[test]
fn delegation_passes_throw_and_return_on() {
    let source = r#"
  const inner = { [Symbol.asyncIterator]() { return this }, n: 0,
    next(v) { p('next ' + v); return { value: this.n++, done: false } },
    throw(v) { p('throw ' + v); return { value: 'T', done: true } },
    return(v) { p('return ' + v); return { value: 'R', done: true } } };
  async function* g() { const r = yield* inner; p('r=' + r); yield 'more' }
  let it = g(); await it.next('a'); await it.next('b'); let r = await it.throw('c'); p(r.value + ':' + r.done);
  it = g(); await it.next(); r = await it.return('d'); p(r.value + ':' + r.done);
  it = g(); await it.next(); try { r = await it.return(Promise.reject('e')); p(r.value + ':' + r.done) } catch (e) { p('threw ' + e) }
  delete inner.throw; it = g(); await it.next(); try { await it.throw('f') } catch (e) { p(e instanceof TypeError) }
  delete inner.return; it = g(); await it.next(); r = await it.return(Promise.resolve('g')); p(r.value + ':' + r.done);"#;
    assert_eq!(
        logged(source),
        "next undefined next b throw c r=T more:false next undefined return d R:true next undefined throw e r=T more:false next undefined return undefined true next undefined g:true"
    );
}

#[test]
fn sync_delegation_passes_undefined_results_on() {
    let source = r#"
  const inner = { [Symbol.iterator]() { return this }, next() { return { value: 1, done: false } }, return() { return undefined } };
  function* g() { yield* inner }
  const it = g(); it.next(); try { it.return(1) } catch (e) { p(e instanceof TypeError) }
  const two = { [Symbol.iterator]() { return this }, next() { return { value: 1, done: false } }, return() { p('closed'); return {} } };
  function* h() { yield* two } const j = h(); j.next(); try { j.throw(1) } catch (e) { p(e instanceof TypeError) }"#;
    assert_eq!(logged(source), "true closed true");
}

#[test]
fn for_await_closes_on_break_return_and_throw() {
    let source = r#"
  const src = () => ({ [Symbol.asyncIterator]() { return this }, n: 0, next() { return Promise.resolve({ value: this.n++, done: this.n > 3 }) }, return() { p('closed'); return Promise.resolve({}) } });
  for await (const v of src()) { p(v); break }
  await (async () => { for await (const v of src()) return v })();
  try { for await (const v of src()) throw 'x' } catch (e) { p('caught ' + e) }
  for await (const v of src()) p(v);
  outer: for (const i of [1, 2]) { for await (const v of src()) { p(i + '-' + v); continue outer } }
  const bad = src(); bad.return = () => 5; try { for await (const v of bad) break } catch (e) { p(e instanceof TypeError) }
  bad.return = () => { throw 'R' }; try { for await (const v of bad) throw 'body' } catch (e) { p(e) }
  try { for await (const v of bad) break } catch (e) { p(e) }"#;
    assert_eq!(logged(source), "0 closed closed closed caught x 0 1 2 1-0 closed 2-0 closed true body R");
}

#[test]
fn a_sync_iterator_is_closed_when_its_value_rejects() {
    // ECMAScript 2025; node 20 does not close it yet.
    let source = r#"
  const src = { [Symbol.iterator]() { return this }, next() { return { value: Promise.reject('boom'), done: false } }, return() { p('closed'); return {} } };
  try { for await (const v of src) p('never') } catch (e) { p('caught ' + e) }"#;
    assert_eq!(logged(source), "closed caught boom");
}

#[test]
fn requests_made_while_running_wait() {
    let source = r#"
  let it; async function* g() { p('in'); const inner = it.next(); inner.then(r => p('inner ' + r.value + ':' + r.done)); yield 1; p('between'); yield 2 }
  it = g(); const r = await it.next(); p(r.value); await 0; await 0; await 0; await 0; await 0; await 0;"#;
    assert_eq!(logged(source), "in between 1 inner 2:false");
}

#[test]
fn methods_of_something_else_reject() {
    let source = r#"
  async function* g() {} const proto = g.prototype;
  try { await proto.next.call({}) } catch (e) { p(e instanceof TypeError) }
  const q = proto.return.call(undefined, 1); try { await q } catch (e) { p(e instanceof TypeError) }"#;
    assert_eq!(logged(source), "true true");
}

#[test]
fn a_then_that_is_a_getter_is_read_once_and_may_throw() {
    let source = r#"
  const thenable = { get then() { p('read'); return f => f('value') } };
  p(await thenable);
  try { await { get then() { throw 'getter' } } } catch (e) { p('caught ' + e) }
  p(await new Promise(r => r(thenable)));
  p(await (async () => thenable)());
  p(await Promise.resolve(1).then(() => thenable));
  p(await Promise.resolve(thenable));
  const odd = Promise.resolve('odd'); Object.defineProperty(odd, 'constructor', { get() { p('ctor'); return Promise } }); p(await odd);"#;
    assert_eq!(
        logged(source),
        "read value caught getter read value read value read value read value ctor odd"
    );
}

#[test]
fn an_async_function_as_a_handler() {
    let source = r#"
  const r = Promise.resolve(1).then(async v => { await 0; await 0; return v + 1 }); p(await r);
  const s = Promise.resolve(1).then(async v => { await 0; throw 'late' }); try { await s } catch (e) { p('caught ' + e) }
  function* gen() { yield 'g1'; yield 'g2' } const it = gen();
  p((await Promise.resolve().then(() => it.next())).value);
  p((await Promise.resolve(it).then(function* (x) { }) ).toString === undefined);
  p(await Promise.resolve('through').then(it));"#;
    assert_eq!(logged(source), "2 caught late g1 false through");
}
