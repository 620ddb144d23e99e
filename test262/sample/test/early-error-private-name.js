/*---
description: a private name must be declared by a class around it
negative:
  phase: parse
  type: SyntaxError
---*/
class Holder {
  #known;
  read(other) { return other.#unknown; }
}
