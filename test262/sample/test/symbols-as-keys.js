/*---
description: symbols are keys that no loop and no text ever shows
includes: [compareList.js]
---*/
const key = Symbol("key");
const o = { [key]: 1, plain: 2 };
assert.sameValue(o[key], 1);
assert.sameValue(Symbol("key") === key, false);
assert.sameValue(Symbol.for("shared"), Symbol.for("shared"));
assert.sameValue(key.description, "key");
const seen = [];
for (const name in o) seen.push(name);
assert.sameList(seen, ["plain"]);
assert.throws(TypeError, () => key + "");
assert.throws(TypeError, () => new Symbol());
