/*---
description: errors inherit, keep a cause, and say where they come from
---*/
class Special extends TypeError {
  constructor(message, options) { super(message, options); this.name = "Special"; }
}
const cause = new Error("inner");
const error = new Special("outer", { cause });
assert.sameValue(error.cause, cause);
assert.sameValue("" + error, "Special: outer");
assert(error instanceof TypeError && error instanceof Error);
assert.sameValue("cause" in new Error("none"), false);
assert.sameValue(typeof error.stack, "string");
const many = new AggregateError([1, 2], "many");
assert.sameValue(many.errors.length, 2);
assert.sameValue(Object.prototype.hasOwnProperty.call(error, "message"), true);
