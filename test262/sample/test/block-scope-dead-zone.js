/*---
description: a name cannot be read before its declaration has run, not even by typeof
---*/
assert.throws(ReferenceError, () => early);
assert.throws(ReferenceError, () => typeof early);
assert.throws(ReferenceError, () => { early = 1; });
let early = 1;
assert.sameValue(early, 1);
assert.sameValue(typeof nobody, "undefined");

let x = "outer";
{
  assert.throws(ReferenceError, () => x);
  let x = "inner";
  assert.sameValue(x, "inner");
}
assert.sameValue(x, "outer");

const fixed = 1;
assert.throws(TypeError, () => { fixed = 2; });
assert.throws(TypeError, () => { fixed++; });
assert.sameValue(fixed, 1);
