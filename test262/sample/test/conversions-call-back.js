/*---
description: operators ask objects for a primitive, in the order the hint demands
includes: [compareList.js]
---*/
const log = [];
const o = {
  valueOf() { log.push("valueOf"); return 7; },
  toString() { log.push("toString"); return "text"; },
};
assert.sameValue(o * 2, 14);
assert.sameValue(o + "", "7");
assert.sameValue(`${o}`, "text");
assert.sameValue(o > 6, true);
assert.sameValue(o == 7, true);
assert.sameValue({ text: "found" }[o], "found");
assert.sameList(log, ["valueOf", "valueOf", "toString", "valueOf", "valueOf", "toString"]);
const hinted = { [Symbol.toPrimitive]: (hint) => hint };
assert.sameValue(hinted + "", "default");
assert.sameValue(`${hinted}`, "string");
assert.sameValue(+hinted, NaN);
assert.throws(TypeError, () => +{ [Symbol.toPrimitive]: () => ({}) });
assert.throws(TypeError, () => `${Symbol()}`);
