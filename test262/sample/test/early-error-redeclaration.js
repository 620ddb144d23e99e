/*---
description: one block cannot declare a name twice
negative:
  phase: parse
  type: SyntaxError
---*/
{
  let twice;
  function twice() {}
}
