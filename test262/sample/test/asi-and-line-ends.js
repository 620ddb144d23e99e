/*---
description: a statement ends at a line end only where it could not go on
---*/
let a = 1
let b = a
++b
assert.sameValue(a, 1);
assert.sameValue(b, 2);

function nothing() {
  return
  42;
}
assert.sameValue(nothing(), undefined);

const f = () => 7
;[a, b] = [b, a]
assert.sameValue(a, 2);
assert.sameValue(f(), 7);
