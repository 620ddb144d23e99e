/*---
description: fields are made in order, before the constructor's body, on the new object; private ones are nobody else's
includes: [compareList.js]
---*/
const log = [];
const note = (word) => (log.push(word), word);
class Base {
  a = note("a");
  #hidden = note("hidden");
  static [note("computed")] = note("static");
  constructor() { note("body"); }
  static holds(value) { return #hidden in value; }
  get hidden() { return this.#hidden; }
  set hidden(value) { this.#hidden = value; }
  #method() { return "method of " + this.#hidden; }
  call() { return this.#method(); }
}
assert.sameList(log, ["computed", "static"]);
const base = new Base();
assert.sameList(log, ["computed", "static", "a", "hidden", "body"]);
assert.sameValue(Base.computed, "static");
base.hidden = "treasure";
assert.sameValue(base.call(), "method of treasure");
assert.sameValue(Base.holds(base), true);
assert.sameValue(Base.holds({}), false);
assert.throws(TypeError, () => Base.prototype.call.call({}));
assert.throws(TypeError, () => Base());
