// A host call in a constructor, field initialisers, computed names, static blocks, private methods and accessors.
const log = [];
class A {
  static #count = ask(0);
  static { this.made = ask(1); log.push('static ' + A.#count); }
  #secret = ask(2);
  field = this.#secret + ask(3);
  ['computed' + ask(4)] = 4;
  constructor(x = ask(5)) { this.x = x; A.#count += 1; }
  #method(n) { return n + ask(6); }
  get #hidden() { return ask(7); }
  run() { return this.#method(this.#hidden); }
  static count() { return A.#count; }
}
class B extends A {
  own = ask(8);
  constructor() { log.push('before'); super(ask(9)); log.push(this.own); return this; }
  run() { return super.run() + ask(10); }
}
const b = new B();
log.push(JSON.stringify(b), b.run(), A.count(), A.made, b instanceof A);
log.push(Reflect.construct(A, [ask(11)], B) instanceof B);
try { new (class { f = fail('field'); })(); } catch (e) { log.push(e.message); }
log.join('\n');
