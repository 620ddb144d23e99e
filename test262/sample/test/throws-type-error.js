/*---
description: an uncaught error ends the script
negative:
  phase: runtime
  type: TypeError
---*/
const nothing = undefined;
nothing.property;
