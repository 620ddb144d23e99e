/*---
description: collections keep the order of insertion, also while they are changed under a loop
includes: [compareList.js]
---*/
const map = new Map([["a", 1], [NaN, 2], [0, 3]]);
assert.sameValue(map.get(NaN), 2);
assert.sameValue(map.get(-0), 3);
map.delete("a");
map.set("a", 4);
assert.sameList([...map.keys()], [NaN, 0, "a"]);
const set = new Set([1, 2, 3]);
const seen = [];
for (const x of set) {
  seen.push(x);
  if (x === 1) { set.delete(2); set.add(4); }
  if (x === 4) set.add(1);
}
assert.sameList(seen, [1, 3, 4]);
assert.sameValue(set.size, 3);
assert.throws(TypeError, () => Map());
assert.throws(TypeError, () => Set.prototype.add.call(new Map(), 1));
