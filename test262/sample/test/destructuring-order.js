/*---
description: targets are evaluated before values are taken, defaults last, and the iterator is closed
includes: [compareList.js]
---*/
const log = [];
const note = (word, value) => (log.push(word), value);
const target = {};
const source = { get a() { return note("get a"); }, get b() { return note("get b", 2); } };
({ [note("key a", "a")]: note("target a", target).x = note("default", 7), b: target.y } = source);
assert.sameList(log, ["key a", "target a", "get a", "default", "get b"]);
assert.sameValue(target.x, 7);
assert.sameValue(target.y, 2);

let closed = 0;
const endless = {
  [Symbol.iterator]() { return this; },
  next() { return { value: 1, done: false }; },
  return() { closed++; return {}; },
};
const [p, , q] = endless;
assert.sameValue(p + q, 2);
assert.sameValue(closed, 1);

const { a, ...others } = { a: 1, b: 2, c: 3 };
assert.sameValue(a, 1);
assert.sameValue(others.b + others.c, 5);
assert.sameValue("a" in others, false);
assert.throws(TypeError, () => { const {} = null; });
