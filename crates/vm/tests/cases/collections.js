// Maps, Sets, weak tables, symbols, bigints, buffers and dates that live across host calls.
const log = [];
const m = new Map(), s = new Set(), w = new WeakMap(), keys = [];
for (let i = 0; i < 20; i++) { const k = { i }; keys.push(k); m.set(i % 3 ? k : i, i); s.add(i % 5); w.set(k, ask(i)); }
for (let i = 0; i < 20; i += 2) m.delete(keys[i]);
const it = m.entries();
it.next();
ask(0);
log.push(m.size, s.size, w.get(keys[7]), [...it].length, [...m.keys()].filter(k => typeof k === 'number').join());
const sym = Symbol('mine'), shared = Symbol.for('shared');
const o = { [sym]: ask(1), [shared]: 2, 5: 'five', b: 1 };
ask(2);
log.push(o[sym], o[Symbol.for('shared')], Symbol.keyFor(shared), Object.keys(o).join(), sym.toString());
const big = 2n ** 70n + BigInt(ask(3));
ask(4);
log.push(big % 1000n, -big, big > 1);
const buffer = new ArrayBuffer(16), view = new DataView(buffer), bytes = new Uint8Array(buffer, 4, 8);
view.setFloat64(4, Math.PI);
ask(5);
log.push(bytes.join(), new Float32Array([1.5, ask(6)]).map(x => x + ask(0)).join(), view.getInt16(6));
const d = new Date(Date.UTC(2024, 1, 29, ask(-88)));
ask(7);
log.push(d.toISOString(), JSON.stringify({ d }));
const frozen = Object.freeze({ a: [1] });
ask(8);
try { frozen.b = 1; } catch (e) { log.push(e.constructor.name); }
log.push(structuredClone(new Map([[1, { a: [ask(9)] }]])).get(1).a[0]);
const ref = new WeakRef(o);
ask(10);
log.push(ref.deref() === o);
log.join('\n');
