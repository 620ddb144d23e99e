// A host call in a getter, a setter, on the prototype chain and through super.
const log = [];
const o = {
  get x() { return ask(1); },
  set x(v) { log.push('set ' + (v + ask(2))); },
};
log.push(o.x + o.x);
o.x = 5;
o.x += 1;
const heir = Object.create(o);
log.push(heir.x);
heir.x = 7;
class A { get v() { return ask(3); } set v(n) { this.w = n + ask(4); } static get s() { return ask(5); } }
class B extends A { get v() { return super.v + 1; } set v(n) { super.v = n; } }
const b = new B();
b.v = 10;
log.push(b.v, b.w, B.s);
const { x, ...rest } = { get x() { return ask(6); }, get y() { return ask(7); }, z: 8 };
log.push(x, JSON.stringify(rest));
log.join('\n');
