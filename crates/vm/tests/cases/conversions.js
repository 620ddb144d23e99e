// A host call in valueOf, toString, Symbol.toPrimitive and as a property key.
const log = [];
const n = { valueOf() { return ask(1); } };
const s = { toString() { return 's' + ask(2); } };
const p = { [Symbol.toPrimitive](hint) { return hint === 'number' ? ask(3) : hint + ask(4); } };
log.push(n + 1, n * 2, -n, n < 200, n == 101, `${s}`, s + s, +p, `${p}`, p + '', [n, s].join('-'));
const o = {};
o[s] = ask(5);
log.push(Object.keys(o)[0], o[s], s in o, Number(n), String(s), Math.max(n, 3), [1, 2, 3].at({ valueOf() { return ask(-99); } }));
log.push('abc'.repeat({ valueOf() { return ask(-98); } }), parseInt({ toString() { return '0x' + ask(0); } }));
try { log.push(1 + { valueOf() { fail('not a number'); } }); } catch (e) { log.push(e.message); }
log.join('\n');
