// A host call in default parameters, destructuring, closures, tagged templates, spread arguments, call and apply.
const log = [];
function f(a = ask(1), { b = ask(2), c: [d = a + b] = [] } = {}, ...rest) { return [a, b, d, ...rest].join(); }
log.push(f(), f(ask(3), { b: ask(4) }, ...[ask(5), ask(6)]), f.length);
const counters = [];
for (let i = ask(-100); i < 3; i++) counters.push(() => i + ask(i));
log.push(counters.map(c => c()).join());
const tag = (parts, ...values) => parts.raw.join('|') + values.map(v => ask(v)).join();
log.push(tag`a${1}b\n${2}c`);
log.push(f.call(null, ask(7)), f.apply(null, [ask(8)]), f.bind(null, ask(9))());
const deep = n => (n === 0 ? ask(0) : deep(n - 1) + 1);
log.push(deep(50));
label: for (const i of [1, 2, 3]) { for (const j of [1, 2]) { if (ask(i) > 101 && j === 2) continue label; log.push(`${i}${j}`); } }
switch (ask(1)) { case ask(2): log.push('two'); break; case ask(1): log.push('one'); default: log.push('through'); }
log.push(ask(1) && ask(2) || ask(3), null ?? ask(4), undefined?.[ask(5)]);
log.join('\n');
