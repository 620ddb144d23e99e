/*---
description: own keys are integers in order, then names as they came; deleting and adding puts a name last
includes: [compareList.js]
---*/
const o = { b: 1, 10: 1, a: 1, 2: 1, "-1": 1 };
assert.sameList(Object.keys(o), ["2", "10", "b", "a", "-1"]);
delete o.b;
o.b = 1;
o[5] = 1;
assert.sameList(Object.keys(o), ["2", "5", "10", "a", "-1", "b"]);
const child = { __proto__: { shadowed: 1, inherited: 1 }, own: 1, gone: 2, shadowed: 3 };
const seen = [];
for (const name in child) {
  seen.push(name);
  delete child.gone;
}
assert.sameList(seen, ["own", "shadowed", "inherited"]);
