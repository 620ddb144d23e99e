/*---
description: functions without a name take that of the place they are put
includes: [compareList.js]
---*/
const plain = function () {};
const arrow = () => {};
const key = Symbol("sym");
const o = { method() {}, get g() { return 1; }, [key]: () => {}, ["com" + "puted"]: class {}, named: function own() {} };
assert.sameValue(plain.name, "plain");
assert.sameValue(arrow.name, "arrow");
assert.sameValue(o.method.name, "method");
assert.sameValue(o[key].name, "[sym]");
assert.sameValue(o.computed.name, "computed");
assert.sameValue(o.named.name, "own");
assert.sameValue(Object.getOwnPropertyDescriptor(o, "g").get.name, "get g");
assert.sameValue(plain.bind(null).name, "bound plain");
const { d = () => {} } = {};
assert.sameValue(d.name, "d");
assert.sameValue((() => {}).name, "");
assert.sameValue(((a, b) => a).bind(null, 1).length, 1);
