/*---
description: whoever leaves a loop early closes the iterator, and an error on the way out wins over a quiet end
includes: [compareList.js]
---*/
const log = [];
const source = (closing) => ({
  [Symbol.iterator]: () => ({
    next: () => ({ value: 1, done: false }),
    return: () => { log.push("return"); return closing(); },
  }),
});
const quiet = source(() => ({}));
for (const x of quiet) break;
assert.sameList(log, ["return"]);
assert.throws(RangeError, () => { for (const x of quiet) throw new RangeError(); });
assert.throws(RangeError, () => { for (const x of source(() => { throw new TypeError(); })) throw new RangeError(); });
assert.throws(TypeError, () => { for (const x of source(() => 1)) break; });
assert.sameValue(log.length, 4);
assert.throws(TypeError, () => { for (const x of {}) ; });
