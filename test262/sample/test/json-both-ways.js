/*---
description: JSON asks toJSON, replacer and reviver in the order of the standard
---*/
const text = JSON.stringify({ a: [1, undefined, () => 1], b: undefined, c: { toJSON: (key) => key + "!" }, d: -0 });
assert.sameValue(text, '{"a":[1,null,null],"c":"c!","d":0}');
assert.sameValue(JSON.stringify("\ud800\n\u2028"), '"\\ud800\\n\u2028"');
assert.sameValue(JSON.stringify([1, { a: 2 }], null, 2), '[\n  1,\n  {\n    "a": 2\n  }\n]');
assert.sameValue(JSON.stringify({ a: 1, b: 2 }, ["b"]), '{"b":2}');
const parsed = JSON.parse('{"a":[1,2],"__proto__":3}', (key, value) => (typeof value === "number" ? value * 2 : value));
assert.sameValue(parsed.a[1], 4);
assert.sameValue(parsed.__proto__, 6);
assert.throws(SyntaxError, () => JSON.parse("{a:1}"));
assert.throws(SyntaxError, () => JSON.parse("01"));
const loop = {};
loop.self = loop;
assert.throws(TypeError, () => JSON.stringify(loop));
