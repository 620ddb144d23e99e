// Language: generators, yield*, return and throw, lazy pipelines, iterators that close.
const log = [];
function* count(n) { for (let i = 0; i < n; i++) { const sent = yield i + ask(i); if (sent) log.push('sent ' + sent); } return 'end'; }
const it = count(3); log.push(JSON.stringify(it.next()), JSON.stringify(it.next('a')), JSON.stringify(it.next('b')), JSON.stringify(it.next()), JSON.stringify(it.next()));
function* outer() { const r = yield* count(2); yield r; try { yield 'body'; } finally { log.push('cleanup', ask(9)); } }
log.push([...outer()].join());
const o = outer(); o.next(); o.next(); o.next(); o.next(); log.push(JSON.stringify(o.return(5)), JSON.stringify(o.next()));
function* guarded() { for (;;) { try { yield 1; } catch (e) { log.push('caught ' + e); yield ask(e); } } }
const g = guarded(); g.next(); log.push(g.throw(3).value, g.next().value);
const fresh = guarded(); try { fresh.throw('early'); } catch (e) { log.push(e); } log.push(fresh.next().done);
function* take(n, xs) { let i = 0; for (const x of xs) { if (i++ >= n) return; yield x; } }
function* naturals() { let n = 0; try { for (;;) yield n++; } finally { log.push('closed'); } }
function* map(f, xs) { for (const x of xs) yield f(x); }
log.push([...take(4, map(x => x * ask(0), naturals()))].join());
const [a, , b] = naturals(); log.push(a + ',' + b);
const spread = Math.max(...take(3, naturals())); log.push(spread);
const iterable = { *[Symbol.iterator]() { yield* [1, ask(1)]; yield* 'xy'; } }; log.push(Array.from(iterable).join());
function* fib() { let [x, y] = [0, 1]; for (;;) { yield x; [x, y] = [y, x + y]; } } const f = []; for (const v of fib()) { if (v > 50) break; f.push(v); } log.push(f.join());
function* deleg() { try { yield* { [Symbol.iterator]() { return { next: v => ({ value: v, done: false }), return: v => (log.push('inner return'), { value: v, done: true }) }; } }; } finally { log.push('outer finally'); } }
const dg = deleg(); dg.next(); log.push(dg.next(ask(2)).value, JSON.stringify(dg.return(7)));
log.push(Object.prototype.toString.call(it), typeof it[Symbol.iterator], it[Symbol.iterator]() === it);
class Tree { constructor(v, l, r) { Object.assign(this, { v, l, r }); } *[Symbol.iterator]() { if (this.l) yield* this.l; yield this.v + ask(0); if (this.r) yield* this.r; } }
log.push([...new Tree(2, new Tree(1), new Tree(3))].join());
try { const h = (function* () { h.next(); yield 1; })(); h.next(); } catch (e) { log.push(e.name); }
log.join('\n');
