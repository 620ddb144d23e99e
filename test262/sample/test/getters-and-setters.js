/*---
description: accessors run with the receiver as this, also through a prototype
---*/
const proto = {
  get twice() { return this.n * 2; },
  set twice(value) { this.n = value / 2; },
  get readOnly() { return "fixed"; },
};
const child = { __proto__: proto, n: 4 };
assert.sameValue(child.twice, 8);
child.twice = 20;
assert.sameValue(child.n, 10);
assert.sameValue(proto.n, undefined);
assert.throws(TypeError, () => { child.readOnly = 1; });
child.twice++;
assert.sameValue(child.n, 10.5);
