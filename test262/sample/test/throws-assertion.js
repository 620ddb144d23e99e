/*---
description: the assertion's own error is known by its constructor
negative:
  phase: runtime
  type: Test262Error
---*/
assert.sameValue(0, -0, "zeros differ");
