/*---
description: length follows the elements and cuts them, and a hole is not undefined
includes: [compareList.js]
---*/
const a = [1, , 3];
assert.sameValue(a.length, 3);
assert.sameValue(1 in a, false);
a[5] = 6;
assert.sameValue(a.length, 6);
a.length = 1;
assert.sameList(a, [1]);
assert.throws(RangeError, () => { a.length = -1; });
assert.throws(RangeError, () => { a.length = 1.5; });
a[4294967295] = "not an element";
assert.sameValue(a.length, 1);
const seen = [];
[1, , 3].forEach((x, i) => seen.push(i));
assert.sameList(seen, [0, 2]);
assert.sameList([3, , 1].toSorted(), [1, 3, undefined]);
assert.sameValue([1, [2, [3, [4]]]].flat(Infinity).length, 4);
