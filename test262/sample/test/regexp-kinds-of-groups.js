/*---
description: groups, names, lookbehind, sticky and the last index
includes: [compareList.js]
---*/
const date = /(?<year>\d{4})-(?<month>\d\d)/.exec("on 2024-05-06");
assert.sameValue(date.index, 3);
assert.sameValue(date.groups.month, "05");
assert.sameValue("price: $42".match(/(?<=\$)\d+/)[0], "42");
assert.sameList("a1b22".match(/\d+/g), ["1", "22"]);
assert.sameValue("aBc".replace(/b/i, (m) => `[${m}]`), "a[B]c");
assert.sameValue("2024-05".replace(/(?<y>\d+)-(?<m>\d+)/, "$<m>/$<y>"), "05/2024");
const sticky = /a/y;
sticky.lastIndex = 1;
assert.sameValue(sticky.test("ba"), true);
assert.sameValue(sticky.lastIndex, 2);
assert.sameValue(sticky.test("ba"), false);
assert.sameValue(sticky.lastIndex, 0);
assert.sameValue(/^.$/u.test("😀"), true);
assert.sameValue(/^.$/.test("😀"), false);
assert.sameList("a,b,,c".split(/,/), ["a", "b", "", "c"]);
assert.throws(SyntaxError, () => new RegExp("("));
