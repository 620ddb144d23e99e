/*---
description: rest takes what is left, spread takes what an iterable gives
includes: [compareList.js]
---*/
function rest(first, ...others) {
  return others;
}
assert.sameList(rest(1), []);
assert.sameList(rest(1, 2, 3), [2, 3]);
assert.sameValue(rest.length, 1);

function* three() {
  yield 1;
  yield 2;
  yield 3;
}
assert.sameList(rest(0, ...three(), 4), [1, 2, 3, 4]);
assert.sameList([0, ...three(), ..."ab"], [0, 1, 2, 3, "a", "b"]);

const merged = { a: 1, b: 1, ...{ b: 2, c: 2 }, ...null };
assert.sameValue(merged.a + merged.b + merged.c, 5);
assert.throws(TypeError, () => [...{}]);
