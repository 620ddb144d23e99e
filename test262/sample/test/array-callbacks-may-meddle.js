/*---
description: what a callback does to the array is seen as far as the standard says
includes: [compareList.js]
---*/
const a = [1, 2, 3];
const seen = [];
a.forEach((x) => { seen.push(x); if (x === 1) { a.push(4); a[1] = "changed"; } });
assert.sameList(seen, [1, "changed", 3]);
const b = [1, 2, 3, 4].map((x, i, all) => { all.length = 2; return x; });
assert.sameValue(b.length, 4);
assert.sameValue(2 in b, false);
const sorted = [5, 1, 4].sort((x, y) => x - y);
assert.sameList(sorted, [1, 4, 5]);
const stable = [["b", 1], ["a", 1], ["c", 0]].sort((x, y) => x[1] - y[1]).map((x) => x[0]);
assert.sameList(stable, ["c", "b", "a"]);
assert.sameValue([1, 2, 3].reduce((sum, x) => sum + x), 6);
assert.throws(TypeError, () => [].reduce((sum, x) => sum + x));
