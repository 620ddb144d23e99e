/*---
description: frozen is frozen, sealed is sealed, and strict code hears about it
---*/
const frozen = Object.freeze({ a: 1, inner: {} });
assert.throws(TypeError, () => { frozen.a = 2; });
assert.throws(TypeError, () => { frozen.b = 2; });
assert.throws(TypeError, () => { delete frozen.a; });
frozen.inner.b = 1;
assert.sameValue(frozen.inner.b, 1);
const sealed = Object.seal({ a: 1 });
sealed.a = 2;
assert.sameValue(sealed.a, 2);
assert.throws(TypeError, () => { delete sealed.a; });
assert.sameValue(Object.isFrozen(frozen) && Object.isSealed(sealed) && !Object.isExtensible(sealed), true);
const hidden = Object.defineProperty({}, "x", { value: 1 });
assert.throws(TypeError, () => { hidden.x = 2; });
assert.throws(TypeError, () => Object.defineProperty(hidden, "x", { value: 2 }));
Object.defineProperty(hidden, "x", { value: 1 });
