/*---
description: there is nothing to break out of
negative:
  phase: parse
  type: SyntaxError
---*/
label: {
  (() => { break label; })();
}
