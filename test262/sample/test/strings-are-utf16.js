/*---
description: strings count code units; iteration walks code points
includes: [compareList.js]
---*/
const word = "a\u00e9\u4e2d\u{1f600}";
assert.sameValue(word.length, 5);
assert.sameValue(word[1], "é");
assert.sameValue(word[3], "\ud83d");
const points = [...word];
assert.sameValue(points.length, 4);
assert.sameValue(points[3], "😀");
assert.sameValue("\ud83d" + "\ude00", "😀");
assert.sameValue("a" < "B", false);
assert.sameValue("\uffff" > "\u{1f600}", true);
assert.throws(TypeError, () => { word[0] = "b"; });
assert.throws(TypeError, () => { word.length = 1; });
