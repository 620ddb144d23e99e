// A host call in a generator, between its yields, in yield*, in finally, and while it is spread or destructured.
const log = [];
function* inner(n) { try { const got = yield ask(n); log.push('got ' + got); return got + ask(n + 1); } finally { log.push('finally ' + ask(9)); } }
function* outer() { const r = yield* inner(1); yield r; yield* [ask(3), ask(4)]; return 'end'; }
const it = outer();
log.push(JSON.stringify([it.next(), it.next('x'), it.next(), it.next(), it.next(), it.next()]));
log.push([...outer()].join());
const [first, second = ask(5), ...others] = outer();
log.push(first, second, others.length);
const early = inner(7);
early.next();
log.push(JSON.stringify(early.return(ask(8))), JSON.stringify(early.next()));
const thrown = inner(11);
thrown.next();
try { thrown.throw(new Error('t' + ask(12))); } catch (e) { log.push(e.message); }
for (const v of outer()) { if (v > ask(0)) break; log.push(v); }
log.join('\n');
