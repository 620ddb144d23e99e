/*---
description: cases are compared strictly, in order, and default may stand anywhere
includes: [compareList.js]
---*/
function run(value) {
  const log = [];
  switch (value) {
    case 1: log.push("one");
    default: log.push("default");
    case 2: log.push("two"); break;
    case NaN: log.push("never");
  }
  return log;
}
assert.sameList(run(1), ["one", "default", "two"]);
assert.sameList(run(2), ["two"]);
assert.sameList(run("1"), ["default", "two"]);
assert.sameList(run(NaN), ["default", "two"]);
switch (0) {
  case 0:
    assert.throws(ReferenceError, () => later);
  case 1:
    let later;
}
