// Set, with the set algebra of ECMAScript 2025. The natives in map.rs do everything that has a Set for `this`.
(function () {
  const ITERATOR = %Symbol("iterator"), SPECIES = %Symbol("species");
  const SetProto = %Proto("Set"), IteratorProto = %Proto("SetIterator");
  let plainAdd;
  const Set = %Constructor(function Set(iterable = undefined) {
    if (new.target === undefined) %ThrowTypeError("Constructor Set requires 'new'");
    const set = %SetNew(%protoFrom(new.target, SetProto));
    if (iterable === undefined || iterable === null) return set;
    const adder = set.add;
    if (!%IsCallable(adder)) %ThrowTypeError("'add' returned for property 'add' of object '#<Set>' is not a function");
    if (adder === plainAdd) {
      for (const item of iterable) %SetAdd(set, item);
    } else {
      for (const item of iterable) %Call(adder, set, item);
    }
    return set;
  }, SetProto);
  function not(name, that) { %ThrowTypeError("Method Set.prototype." + name + " called on incompatible receiver " + %Describe(that)); }
  %Install(Set, { get [SPECIES]() { return this; } }, "Set");
  function iterator(kind, name, that) {
    if (!%Is("Set", that)) not(name, that);
    return %NewSlots("SetIterator", IteratorProto, that, 0, kind);
  }
  // GetSetRecord: what another set-like object can do.
  function record(other) {
    if (!%IsObject(other)) %ThrowTypeError(%Describe(other) + " is not an object");
    const rawSize = other.size, number = +rawSize;
    if (number !== number) %ThrowTypeError("The 'size' property must be a number");
    const size = %toIntegerOrInfinity(number);
    if (size < 0) %ThrowRangeError("'" + size + "' is an invalid size");
    const has = other.has;
    if (!%IsCallable(has)) %ThrowTypeError("The 'has' property must be a function");
    const keys = other.keys;
    if (!%IsCallable(keys)) %ThrowTypeError("The 'keys' property must be a function");
    return { __proto__: null, set: other, size, has, keys };
  }
  function keysOf(other) {
    const iterator = %Call(other.keys, other.set);
    if (!%IsObject(iterator)) %ThrowTypeError("The 'keys' method must return an object");
    return { __proto__: null, iterator, next: iterator.next };
  }
  function walk(set) { return %NewSlots("SetIterator", null, set, 0, 0, undefined, undefined); }
  function copy(set) {
    const result = %SetNew(SetProto), from = walk(set);
    while (%TableWalk(from)) %SetAdd(result, %Slot(from, 3));
    return result;
  }
  function check(that, name) { if (!%Is("Set", that)) not(name, that); }
  %Install(SetProto, {
    has(value) { not("has", this); },
    add(value) { not("add", this); },
    delete(value) { not("delete", this); },
    clear() { not("clear", this); },
    entries() { return iterator(2, "entries", this); },
    forEach(callback, thisArg = undefined) {
      check(this, "forEach");
      if (!%IsCallable(callback)) %ThrowTypeError(%Describe(callback) + " is not a function");
      const from = walk(this);
      while (%TableWalk(from)) { const v = %Slot(from, 3); %Call(callback, thisArg, v, v, this); }
    },
    get size() { not("size", this); },
    values() { return iterator(0, "values", this); },
    union(other) {
      check(this, "union");
      const rec = record(other), keys = keysOf(rec), result = copy(this);
      for (;;) {
        const v = %iteratorStep(keys.iterator, keys.next);
        if (%IsDone(v)) return result;
        %SetAdd(result, v);
      }
    },
    intersection(other) {
      check(this, "intersection");
      const rec = record(other), result = %SetNew(SetProto);
      if (%TableSize(this) <= rec.size) {
        const from = walk(this);
        while (%TableWalk(from)) {
          const v = %Slot(from, 3);
          if (%Call(rec.has, rec.set, v)) %SetAdd(result, v);
        }
        return result;
      }
      const keys = keysOf(rec);
      for (;;) {
        const v = %iteratorStep(keys.iterator, keys.next);
        if (%IsDone(v)) return result;
        if (%TableHas(this, v)) %SetAdd(result, v);
      }
    },
    difference(other) {
      check(this, "difference");
      const rec = record(other), result = copy(this);
      if (%TableSize(this) <= rec.size) {
        const from = walk(this);
        while (%TableWalk(from)) {
          const v = %Slot(from, 3);
          if (%Call(rec.has, rec.set, v)) %TableDelete(result, v);
        }
        return result;
      }
      const keys = keysOf(rec);
      for (;;) {
        const v = %iteratorStep(keys.iterator, keys.next);
        if (%IsDone(v)) return result;
        %TableDelete(result, v);
      }
    },
    symmetricDifference(other) {
      check(this, "symmetricDifference");
      const rec = record(other), keys = keysOf(rec), result = copy(this);
      for (;;) {
        const v = %iteratorStep(keys.iterator, keys.next);
        if (%IsDone(v)) return result;
        if (%TableHas(this, v)) %TableDelete(result, v);
        else %SetAdd(result, v);
      }
    },
    isSubsetOf(other) {
      check(this, "isSubsetOf");
      const rec = record(other);
      if (%TableSize(this) > rec.size) return false;
      const from = walk(this);
      while (%TableWalk(from)) if (!%Call(rec.has, rec.set, %Slot(from, 3))) return false;
      return true;
    },
    isSupersetOf(other) {
      check(this, "isSupersetOf");
      const rec = record(other);
      if (%TableSize(this) < rec.size) return false;
      const keys = keysOf(rec);
      for (;;) {
        const v = %iteratorStep(keys.iterator, keys.next);
        if (%IsDone(v)) return true;
        if (!%TableHas(this, v)) { %iteratorClose(keys.iterator); return false; }
      }
    },
    isDisjointFrom(other) {
      check(this, "isDisjointFrom");
      const rec = record(other);
      if (%TableSize(this) <= rec.size) {
        const from = walk(this);
        while (%TableWalk(from)) if (%Call(rec.has, rec.set, %Slot(from, 3))) return false;
        return true;
      }
      const keys = keysOf(rec);
      for (;;) {
        const v = %iteratorStep(keys.iterator, keys.next);
        if (%IsDone(v)) return true;
        if (%TableHas(this, v)) { %iteratorClose(keys.iterator); return false; }
      }
    },
  }, "Set.prototype");
  plainAdd = SetProto.add;
  %Share("setAdd", plainAdd);
  %Hidden(SetProto, "keys", SetProto.values);
  %Hidden(SetProto, ITERATOR, SetProto.values);
  %Tag(SetProto, "Set");
  %Install(IteratorProto, {
    next() { %ThrowTypeError("next method called on incompatible receiver " + %Describe(this)); },
  }, "%SetIteratorPrototype%");
  %Tag(IteratorProto, "Set Iterator");
})();
