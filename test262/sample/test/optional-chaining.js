/*---
description: a chain stops at the first nothing, with all that follows it
---*/
const o = { a: { f() { return this === o.a; } }, n: null };
assert.sameValue(o?.a?.f?.(), true);
assert.sameValue((o?.a.f)(), true);
assert.sameValue(o.n?.b.c.d(), undefined);
assert.sameValue(o.missing?.[1 / 0](), undefined);
assert.sameValue(delete o.n?.b, true);
let evaluated = false;
o.n?.[(evaluated = true)];
assert.sameValue(evaluated, false);
assert.throws(TypeError, () => o.n.b);
assert.sameValue(0 ?? 1, 0);
assert.sameValue(undefined ?? null ?? 1, 1);
let x = null;
x ??= 3;
x ||= 4;
x &&= 5;
assert.sameValue(x, 5);
