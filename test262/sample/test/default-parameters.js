/*---
description: defaults are evaluated from left to right, only when needed, in a scope of their own
---*/
let calls = 0;
const next = () => ++calls;
function f(a = next(), b = a + 1, c = () => a) {
  return a + ":" + b + ":" + c();
}
assert.sameValue(f(), "1:2:1");
assert.sameValue(f(5), "5:6:5");
assert.sameValue(f(undefined, 9), "2:9:2");
assert.sameValue(f(null), "null:1:null");
assert.sameValue(f.length, 0);
assert.sameValue(((a, b = 1, c) => 0).length, 1);
assert.throws(ReferenceError, (a = b, b = 1) => a);

function inner(a, read = () => a) {
  var a = "body";
  return read() + "," + a;
}
assert.sameValue(inner("parameter"), "parameter,body");
