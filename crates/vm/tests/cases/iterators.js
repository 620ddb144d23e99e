// A host call in every part of the iterator protocol, and iterator helpers.
const log = [];
const make = (n, extra = {}) => ({
  [Symbol.iterator]() {
    let i = ask(-100);
    return { next: () => ({ get done() { return i >= n + ask(0) - 100; }, get value() { return i++ + ask(0); } }), return: () => { log.push('closed ' + ask(1)); return {}; }, ...extra };
  },
});
log.push([...make(3)].join());
for (const v of make(5)) { if (v > 101) break; log.push(v); }
const [a, b] = make(9);
log.push(a, b, Math.max(...make(3)), Array.from(make(2), v => v + ask(0)).join(), new Set(make(2)).size);
const m = new Map([[1, ask(1)], [2, ask(2)]]);
for (const [k, v] of m) { if (k === 1) m.set(3, ask(3)); log.push(`${k}:${v}`); }
m.forEach((v, k) => log.push(v + ask(k)));
log.push(Object.fromEntries([['x', ask(4)]]).x);
try { for (const v of make(3)) fail('in the body'); } catch (e) { log.push(e.message); }
log.join('\n');
