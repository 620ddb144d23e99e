// A host call wherever an operation on objects may run a guest's code.
const log = [];
const key = (name, n) => ({ toString() { log.push('key ' + ask(n)); return name; } });
const o = {};
Object.defineProperty(o, key('a', 1), { get value() { return ask(2); }, get enumerable() { return ask(3); }, get configurable() { return ask(4); } });
log.push(JSON.stringify(Object.getOwnPropertyDescriptor(o, key('a', 5))));
log.push(o[key('a', 6)], key('a', 7) in o, delete o[key('a', 8)], Object.keys(o).length);
log.push(JSON.stringify(Object.assign({ set x(v) { log.push('set ' + (v + ask(9))); } }, { get x() { return ask(10); }, y: 1 })));
log.push(JSON.stringify(Object.defineProperties({}, { get p() { return { value: ask(11), enumerable: true }; } })));
log.push(Object.entries({ get e() { return ask(12); } }).join(), JSON.stringify({ ...{ get s() { return ask(13); } } }));
log.push(JSON.stringify(Object.fromEntries({ *[Symbol.iterator]() { yield ['k' + ask(14), ask(15)]; } })));
log.push(Object.prototype.toString.call({ get [Symbol.toStringTag]() { return 'T' + ask(16); } }));

log.push({} instanceof { [Symbol.hasInstance]: () => ask(17) });
function Odd() {}
Odd.bound = Odd.bind();
log.push(Object.create(new Proxy({}, { getPrototypeOf() { ask(18); return Odd.prototype; } })) instanceof Odd.bound);
const parent = new Proxy(function () { this.from = ask(19); }, { get(t, k) { if (k === 'prototype') ask(20); return t[k]; } });
class Child extends parent { constructor() { super(); this.own = ask(21); } get both() { return super[key('missing', 22)] + this.own; } }
log.push(new Child().from, new Child().both, new Child() instanceof parent);
log.push(Reflect.construct(function () { return { t: new.target !== undefined, n: ask(23) }; }, [], parent).n);
const bound = function (...list) { return list.map(n => ask(n)).join(); }.bind(null, 24, 25);
log.push(bound(26), bound.call(null, 27), bound.apply(null, [28, 29]));
log.push(Reflect.apply(bound, null, { get length() { ask(30); return 1; }, get 0() { return 31; } }));

const e = new TypeError({ toString() { return 'm' + ask(32); } }, { get cause() { return ask(33); } });
log.push(e.message, e.cause, Error.prototype.toString.call({ get name() { return 'N' + ask(34); }, get message() { return 'M' + ask(35); } }));
log.push(new AggregateError({ *[Symbol.iterator]() { yield ask(36); yield ask(37); } }).errors.join());
try { new Error({ toString() { fail('no message'); } }); } catch (caught) { log.push(caught.message); }
log.push(Symbol({ toString: () => 'd' + ask(38) }).description, Symbol.keyFor(Symbol.for({ toString: () => 'f' + ask(39) })));

const list = [1, 2, 3];
list.length = { valueOf() { log.push('length ' + ask(40)); return 1; } };
log.push(list.length);
const bytes = new Uint8Array(1);
bytes[0] = { valueOf: () => ask(41) };
log.push(bytes[0], Reflect.set({}, 'x', 1, new Proxy({}, { defineProperty(t, k, d) { ask(42); return Reflect.defineProperty(t, k, d); } })));
log.push(Reflect.set({ set v(n) { log.push('setter ' + (n + ask(43))); } }, 'v', 1), Reflect.get({ get v() { return this + ask(44); } }, 'v', 1));
for (const k in Object.create(new Proxy({ inherited: 1 }, { ownKeys(t) { ask(45); return Reflect.ownKeys(t); } }))) log.push(k + ask(46));
const chain = new Proxy(new Proxy({}, { get: (t, k) => k + ask(47) }), {});
log.push(chain.deep, Object.create(chain).deeper);
log.push(Object.isFrozen(Object.freeze(new Proxy({ z: 1 }, { preventExtensions(t) { ask(48); return Reflect.preventExtensions(t); } }))));
log.join('\n');
