/*---
description: finally runs on every way out, and its own way out wins
includes: [compareList.js]
---*/
const log = [];
function leave(how) {
  outer: for (let i = 0; i < 2; i++) {
    try {
      if (how === "return") return "returned";
      if (how === "break") break outer;
      if (how === "continue") continue outer;
      if (how === "throw") throw "thrown";
    } catch (error) {
      return error;
    } finally {
      log.push(how);
    }
  }
  return "fell";
}
assert.sameValue(leave("return"), "returned");
assert.sameValue(leave("break"), "fell");
assert.sameValue(leave("continue"), "fell");
assert.sameValue(leave("throw"), "thrown");
assert.sameList(log, ["return", "break", "continue", "continue", "throw"]);

function wins() {
  try { throw 1; } finally { return 2; }
}
assert.sameValue(wins(), 2);
const value = (() => { let x = 1; try { return x; } finally { x = 2; } })();
assert.sameValue(value, 1);
