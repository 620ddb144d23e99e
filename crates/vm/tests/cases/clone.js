// A host call in a getter that is cloned, in Map and Set callbacks, in groupBy, and in a generator that for…of walks.
const log = [];
const source = { a: 1, get b() { return { asked: ask(1) }; }, m: new Map([[{ k: 1 }, new Set([ask(2)])]]), e: new TypeError('t', { cause: [ask(3)] }) };
source.self = source;
const copy = structuredClone(source);
ask(0);
log.push(copy.b.asked, copy.self === copy, [...[...copy.m.values()][0]].join(), copy.e.cause[0], copy.e.name);
const m = new Map([[1, 'a'], [2, 'b']]);
m.forEach((v, k) => { if (ask(k) < 103) m.set(k + 2, v + k); });
log.push([...m].join('|'));
const s = new Set([3, 1]);
s.forEach(v => { if (ask(v) === 103) s.delete(1); });
log.push([...s].join());
function* inner() { yield ask(5); return ask(6); }
function* outer() { try { const got = yield* inner(); yield got; yield* { [Symbol.iterator]: () => ({ next: () => ({ get done() { return ask(7) < 0; }, value: ask(8) }), return: () => ({ done: true, value: ask(9) }) }) }; } finally { log.push('left ' + ask(10)); } }
for (const v of outer()) { log.push(v); if (v === ask(8)) break; }
for (const [k, v] of new Map([[ask(11), ask(12)]])) log.push(k + v + ask(0));
log.push([...Array.from({ length: 3 }, (_, i) => ask(i)).entries()].join('|'));
try { structuredClone({ get x() { fail('in a getter'); } }); } catch (e) { log.push(e.message); }
log.join('\n');
