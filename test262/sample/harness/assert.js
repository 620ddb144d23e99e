// Assertions for the tests beside this folder: the same names as in tc39/test262, in our own words.
function assert(condition, message) {
  if (condition !== true) throw new Test262Error(message || "expected true");
}

assert.sameValue = function (actual, expected, message) {
  const same = actual === expected ? actual !== 0 || 1 / actual === 1 / expected : actual !== actual && expected !== expected;
  if (!same) throw new Test262Error((message || "") + " got " + show(actual) + ", expected " + show(expected));
};

assert.throws = function (constructor, action, message) {
  try {
    action();
  } catch (error) {
    if (error.constructor === constructor) return;
    throw new Test262Error((message || "") + " threw " + error + " and not a " + constructor.name);
  }
  throw new Test262Error((message || "") + " did not throw a " + constructor.name);
};

function show(value) {
  return typeof value === "symbol" || (typeof value === "object" && value !== null) ? typeof value : "" + value;
}
