/*---
description: arguments is a copy, with a length and an iterator, and no callee
includes: [compareList.js]
---*/
function f(a) {
  a = "changed";
  arguments[1] = "own";
  return arguments;
}
const got = f(1, 2, 3);
assert.sameList(got, [1, "own", 3]);
assert.sameValue(got.length, 3);
assert.sameList([...got], [1, "own", 3]);
assert.throws(TypeError, () => got.callee);
const arrow = function () { return (() => arguments[0])("arrow"); };
assert.sameValue(arrow("outer"), "outer");
