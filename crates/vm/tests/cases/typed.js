// A host call in the callbacks, conversions and constructors of typed arrays, buffers and data views.
const log = [];
const t = Uint8Array.from([1, 2, 3], (v) => ask(v));
log.push(t.join(), new Int16Array({ length: 2, get 0() { return ask(0); }, 1: 5 }).join());
log.push(t.map((v) => v - ask(0)).join(), t.filter((v) => ask(v) % 2).join(), t.reduce((a, v) => a + ask(v), 0));
log.push(new Float64Array([3, 1, 2]).sort((a, b) => ask(a) - ask(b)).join(), t.toSorted((a, b) => ask(b) - ask(a)).join());
log.push(t.findLast((v) => ask(v) < 203), t.some((v) => ask(v) > 900), t.with(1, { valueOf: () => ask(-100) }).join());
t[0] = { valueOf: () => ask(1) };
t.set([{ valueOf: () => ask(2) }], 2);
log.push(t.join(), t.fill({ valueOf: () => ask(-98) }, 1).join(), t.slice({ valueOf: () => ask(-99) }).join());
const b = new ArrayBuffer({ valueOf: () => ask(-92) }, { get maxByteLength() { return ask(-84); } });
const following = new Uint8Array(b);
b.resize(ask(-90));
log.push(b.byteLength, following.length, b.maxByteLength, b.slice({ valueOf: () => ask(-95) }).byteLength);
const v = new DataView(b);
v.setInt16({ valueOf: () => ask(-99) }, { valueOf: () => ask(200) });
log.push(v.getInt16(ask(-99)), v.getUint8(1), [...following.subarray(ask(-100), ask(-97))].join());
class Species extends Uint8Array { static get [Symbol.species]() { ask(1); return Uint16Array; } }
log.push(new Species([1, 2]).map((x) => x * ask(200)).join());
try { new Uint8Array([1]).forEach(() => fail('in forEach')); } catch (e) { log.push(e.message); }
try { t.indexOf(1, { valueOf() { fail('in valueOf'); } }); } catch (e) { log.push(e.message); }
log.join('\n');
