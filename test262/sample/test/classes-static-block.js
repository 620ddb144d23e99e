/*---
description: a static block runs once, with the class as this, and sees private names
---*/
let read;
class Keeper {
  static count = 1;
  #secret = 42;
  static {
    this.count += 1;
    read = (keeper) => keeper.#secret;
  }
  static {
    Keeper.count *= 10;
  }
}
assert.sameValue(Keeper.count, 20);
assert.sameValue(read(new Keeper()), 42);
