/*---
description: await gives way even to what is settled, and errors come out where they are awaited
flags: [async]
includes: [compareList.js]
---*/
const log = [];
async function work(name) {
  log.push(name + "1");
  await null;
  log.push(name + "2");
  try {
    await Promise.reject("refused");
  } catch (error) {
    log.push(name + error);
  } finally {
    await 0;
  }
  return name;
}
async function both() {
  const a = work("a");
  const b = work("b");
  log.push(await a, await b);
  assert.sameList(log, ["a1", "b1", "a2", "b2", "arefused", "brefused", "a", "b"]);
  await (async () => { throw new TypeError(); })().then(
    () => { throw "not refused"; },
    (error) => assert(error instanceof TypeError),
  );
}
both().then($DONE, $DONE);
