// A host call in proxy traps.
const log = [];
const p = new Proxy({ a: 1 }, {
  get: (t, k, r) => (typeof k === 'symbol' ? t[k] : k === 'toString' ? () => 'p' : ask(1)),
  set: (t, k, v) => { t[k] = v + ask(2); return true; },
  has: (t, k) => ask(3) > 0 && k in t,
  deleteProperty: (t, k) => { log.push('delete ' + ask(4)); return delete t[k]; },
  ownKeys: t => { log.push('keys ' + ask(5)); return Reflect.ownKeys(t); },
  getOwnPropertyDescriptor: (t, k) => { ask(6); return Reflect.getOwnPropertyDescriptor(t, k); },
  defineProperty: (t, k, d) => { ask(7); return Reflect.defineProperty(t, k, d); },
  getPrototypeOf: () => { ask(8); return Array.prototype; },
});
log.push(p.a, p.b);
p.c = 5;
log.push('a' in p, 'z' in p, Object.keys(p).join(), p instanceof Array, delete p.a, JSON.stringify(Object.entries(p)));
const f = new Proxy(function () {}, { apply: (t, self, args) => ask(args[0]), construct: (t, args) => ({ made: ask(args[0]) }) });
log.push(f(9), new f(10).made);
Object.defineProperty(p, 'd', { value: 1, configurable: true });
log.push(Reflect.get(p, 'x'), ({ __proto__: p }).inherited);
try { new Proxy({}, { get() { fail('trap'); } }).x; } catch (e) { log.push(e.message); }
log.join('\n');
