/*---
description: a tag sees cooked and raw text, and the same frozen object each time
---*/
function tag(strings, ...values) {
  return { strings, values };
}
const again = () => tag`one ${1} \n ${2}`;
const first = again();
assert.sameValue(first.strings, again().strings);
assert.sameValue(first.strings.length, 3);
assert.sameValue(first.strings[1], " \n ");
assert.sameValue(first.strings.raw[1], " \\n ");
assert.sameValue(first.values[1], 2);
assert.sameValue(tag`\unicode`.strings[0], undefined);
assert.sameValue(tag`\unicode`.strings.raw[0], "\\unicode");
assert.throws(TypeError, () => { first.strings[0] = ""; });
assert.sameValue(`${1}${"b"}${null}`, "1bnull");
