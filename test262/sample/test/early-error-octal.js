/*---
description: scripts are always strict, so old octal numbers are refused
negative:
  phase: parse
  type: SyntaxError
---*/
let mode = 0755;
