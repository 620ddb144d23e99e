// Map. The natives in map.rs do everything that has a Map for `this`; what is left here is the loops that call back, and
// the errors.
(function () {
  const ITERATOR = %Symbol("iterator"), SPECIES = %Symbol("species");
  const MapProto = %Proto("Map"), IteratorProto = %Proto("MapIterator");
  let plainSet;
  const Map = %Constructor(function Map(iterable = undefined) {
    if (new.target === undefined) %ThrowTypeError("Constructor Map requires 'new'");
    const map = %MapNew(%protoFrom(new.target, MapProto));
    if (iterable === undefined || iterable === null) return map;
    const adder = map.set;
    if (!%IsCallable(adder)) %ThrowTypeError("'set' returned for property 'set' of object '#<Map>' is not a function");
    if (adder === plainSet) {
      for (const item of iterable) {
        if (!%IsObject(item)) %ThrowTypeError("Iterator value is not an entry object");
        const key = item[0];
        %MapSet(map, key, item[1]);
      }
    } else {
      for (const item of iterable) {
        if (!%IsObject(item)) %ThrowTypeError("Iterator value is not an entry object");
        const key = item[0], value = item[1];
        %Call(adder, map, key, value);
      }
    }
    return map;
  }, MapProto);
  function not(name, that) { %ThrowTypeError("Method Map.prototype." + name + " called on incompatible receiver " + %Describe(that)); }
  %Install(Map, {
    groupBy(items, callback) {
      if (items === undefined || items === null) %ThrowTypeError("Map.groupBy called on null or undefined");
      if (!%IsCallable(callback)) %ThrowTypeError(%Describe(callback) + " is not a function");
      const map = %MapNew(MapProto);
      let k = 0;
      for (const value of items) {
        const key = callback(value, k);
        const group = %MapGet(map, key);
        if (group === undefined) {
          const fresh = %NewArray();
          %Append(fresh, value);
          %MapSet(map, key, fresh);
        } else %Append(group, value);
        k++;
      }
      return map;
    },
    get [SPECIES]() { return this; },
  }, "Map");
  function iterator(kind, name, that) {
    if (!%Is("Map", that)) not(name, that);
    return %NewSlots("MapIterator", IteratorProto, that, 0, kind);
  }
  %Install(MapProto, {
    get(key) { not("get", this); },
    set(key, value) { not("set", this); },
    has(key) { not("has", this); },
    delete(key) { not("delete", this); },
    clear() { not("clear", this); },
    entries() { return iterator(2, "entries", this); },
    forEach(callback, thisArg = undefined) {
      if (!%Is("Map", this)) not("forEach", this);
      if (!%IsCallable(callback)) %ThrowTypeError(%Describe(callback) + " is not a function");
      const walk = %NewSlots("MapIterator", null, this, 0, 2, undefined, undefined);
      while (%TableWalk(walk)) %Call(callback, thisArg, %Slot(walk, 4), %Slot(walk, 3), this);
    },
    keys() { return iterator(0, "keys", this); },
    get size() { not("size", this); },
    values() { return iterator(1, "values", this); },
  }, "Map.prototype");
  plainSet = MapProto.set;
  %Share("mapSet", plainSet);
  %Hidden(MapProto, ITERATOR, MapProto.entries);
  %Tag(MapProto, "Map");
  %Install(IteratorProto, {
    next() { %ThrowTypeError("next method called on incompatible receiver " + %Describe(this)); },
  }, "%MapIteratorPrototype%");
  %Tag(IteratorProto, "Map Iterator");
})();
