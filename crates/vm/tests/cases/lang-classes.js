// Language: classes with fields, accessors, private names, static blocks, inheritance and super.
const log = [];
class Base {
  a = ask(1); #p = this.a + 1; static count = ask(2); static #made = 0; ['computed' + ask(3)] = 'c';
  static { Base.started = Base.count + 1; }
  constructor(x = 0) { this.x = x; Base.#made++; }
  get p() { return this.#p; } set p(v) { this.#p = v + ask(4); }
  #secret() { return 'secret ' + this.#p; } reveal() { return this.#secret(); }
  static made() { return Base.#made; } static is(o) { return #p in o; }
  toString() { return `Base(${this.x})`; } *[Symbol.iterator]() { yield this.a; yield this.x; }
  static get made2() { return this.#made * 2; } async later() { return this.x; }
}
class Derived extends Base {
  b = this.a * 2; #q = super.toString();
  constructor(...args) { super(...args); this.y = ask(5); }
  toString() { return `Derived:${super.toString()}:${this.#q}`; }
  get p() { return super.p + 1000; } set p(v) { super.p = v; }
  static made() { return super.made() + '!'; }
}
const b = new Base(5), d = new Derived(6);
log.push(b.a, b.p, b.computed103, Base.started, String(b), String(d), d.b, d.y, Derived.made(), Base.made2);
b.p = 1; d.p = 2; log.push(b.p, d.p, b.reveal(), Base.is(d), Base.is({}), [...d].join());
const attempt = f => { try { return f(); } catch (e) { return e.name; } };
log.push(attempt(() => Base()), attempt(() => Base.prototype.reveal.call({})), attempt(() => { class A extends null {} new A(); }));
log.push(attempt(() => { class A extends Base { constructor() {} } new A(); }), attempt(() => { class A extends Base { constructor() { super(); super(); } } new A(); }));
log.push(d instanceof Base, Object.getPrototypeOf(Derived) === Base, Derived.name, Derived.length, typeof Base);
log.push(Object.keys(b).join(), Object.getOwnPropertyNames(Base.prototype).join());
class List extends Array { sum() { return this.reduce((a, x) => a + x, 0); } } const l = List.from([1, 2, ask(6)]);
log.push(l.sum(), l.map(x => x + 1) instanceof List, l.length, l.filter(Boolean).sum());
class E extends TypeError { constructor(m) { super(m); this.name = 'E'; } } log.push(String(new E('oops')), new E() instanceof Error);
const Mixin = S => class extends S { mixed() { return ask(7); } }; log.push(new (Mixin(Base))().mixed());
class S { static m() { return this.n; } static n = 8; static ['k' + 1] = S.m() + ask(8); } log.push(S.k1);
const o = { __proto__: { hi() { return 'proto'; } }, hi() { return super.hi() + ask(9); } }; log.push(o.hi());
log.push((class { static x = this.name; static name = 'n'; }).x, new (class { constructor() { return { r: 1 }; } })().r);
log.join('\n');
