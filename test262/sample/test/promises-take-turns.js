/*---
description: reactions run after the script, in the order they became due
flags: [async]
includes: [compareList.js]
---*/
const log = [];
const p = Promise.resolve();
p.then(() => log.push("a1")).then(() => log.push("a2"));
p.then(() => { log.push("b1"); return Promise.resolve(); }).then(() => log.push("b2"));
new Promise((resolve) => { log.push("executor"); resolve({ then(done) { log.push("then"); done(); } }); })
  .then(() => log.push("c"));
log.push("script");
let turns = p;
for (let i = 0; i < 10; i++) turns = turns.then(() => {});
turns
  .then(() => assert.sameList(log, ["executor", "script", "a1", "b1", "then", "a2", "c", "b2"]))
  .then($DONE, $DONE);
