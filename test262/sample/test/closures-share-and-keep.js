/*---
description: closures of one call share its variables, and those of two calls do not
---*/
function counter() {
  let n = 0;
  return { up: () => ++n, read: () => n };
}
const one = counter();
const two = counter();
one.up();
one.up();
two.up();
assert.sameValue(one.read(), 2);
assert.sameValue(two.read(), 1);

const recursive = function self(n) {
  return n === 0 ? typeof self : self(n - 1);
};
assert.sameValue(recursive(3), "function");
assert.throws(TypeError, function own() { own = 1; });
