/*---
description: this exists after super, super finds the parent's methods, and new.target is what was asked for
---*/
class Animal {
  constructor(name) { this.name = name; this.made = new.target.name; }
  speak() { return this.name + " makes a sound"; }
  static create(name) { return new this(name); }
}
class Dog extends Animal {
  constructor(name) {
    const early = () => this;
    assert.throws(ReferenceError, early);
    super(name + "!");
    assert.sameValue(early(), this);
    assert.throws(ReferenceError, () => super("twice"));
  }
  speak() { return super.speak() + " (woof)"; }
}
const dog = Dog.create("Rex");
assert.sameValue(dog.speak(), "Rex! makes a sound (woof)");
assert.sameValue(dog.made, "Dog");
assert(dog instanceof Animal);
assert.throws(TypeError, () => { class Odd extends undefined {} });
assert.throws(ReferenceError, () => new (class extends Animal { constructor() {} })());
