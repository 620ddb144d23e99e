/*---
description: requests to an async generator wait in a queue, and for await takes promises from plain iterables too
flags: [async]
includes: [compareList.js]
---*/
async function* count(n) {
  for (let i = 1; i <= n; i++) yield Promise.resolve(i);
}
async function main() {
  const c = count(3);
  const asked = [c.next(), c.next(), c.next(), c.next()];
  const got = [];
  for (const one of asked) got.push((await one).value);
  assert.sameList(got, [1, 2, 3, undefined]);

  const sum = [];
  for await (const x of [1, Promise.resolve(2), count(0)]) sum.push(typeof x);
  assert.sameList(sum, ["number", "number", "object"]);

  let closed = false;
  async function* guarded() { try { yield 1; yield 2; } finally { closed = true; } }
  for await (const x of guarded()) break;
  assert.sameValue(closed, true);
}
main().then($DONE, $DONE);
