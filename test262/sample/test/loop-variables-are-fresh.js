/*---
description: each turn of a for loop has variables of its own, and a closure in the head sees the first
includes: [compareList.js]
---*/
const made = [];
for (let i = 0; i < 3; i++) made.push(() => i);
assert.sameList([made[0](), made[1](), made[2]()], [0, 1, 2]);

let head;
for (let i = 0, read = () => i; i < 2; i++) head = read;
assert.sameValue(head(), 0);

const shared = [];
for (var j = 0; j < 3; j++) shared.push(() => j);
assert.sameList([shared[0](), shared[2]()], [3, 3]);

const named = [];
for (const key in { a: 1, b: 2 }) named.push(() => key);
assert.sameList([named[0](), named[1]()], ["a", "b"]);
