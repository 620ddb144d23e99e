/*---
description: a generator stops at each yield and can be sent values, errors and an end
includes: [compareList.js]
---*/
const log = [];
function* talk() {
  try {
    const heard = yield 1;
    log.push(heard);
    try {
      yield 2;
    } catch (error) {
      log.push(error);
    }
    yield* [3, 4];
  } finally {
    log.push("closed");
    yield "last";
  }
}
const t = talk();
assert.sameValue(t.next("ignored").value, 1);
assert.sameValue(t.next("hello").value, 2);
assert.sameValue(t.throw("oops").value, 3);
const ending = t.return("end");
assert.sameValue(ending.value, "last");
assert.sameValue(ending.done, false);
const end = t.next();
assert.sameValue(end.value, "end");
assert.sameValue(end.done, true);
assert.sameList(log, ["hello", "oops", "closed"]);
assert.throws(TypeError, () => { const g = (function* () { g.next(); })(); g.next(); });
assert.throws(TypeError, () => new talk());
