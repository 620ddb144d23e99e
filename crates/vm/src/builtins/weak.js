// WeakMap, WeakSet, WeakRef and FinalizationRegistry. When garbage is collected must not show, so a WeakRef keeps its
// target for as long as it lives itself, and a registry never calls back; the language permits both.
(function () {
  const MapProto = %Proto("WeakMap"), SetProto = %Proto("WeakSet");
  const RefProto = %Proto("WeakRef"), RegistryProto = %Proto("FinalizationRegistry");
  %Constructor(function WeakMap(iterable = undefined) {
    if (new.target === undefined) %ThrowTypeError("Constructor WeakMap requires 'new'");
    const map = %WeakMapNew(%protoFrom(new.target, MapProto));
    if (iterable === undefined || iterable === null) return map;
    const adder = map.set;
    if (!%IsCallable(adder)) %ThrowTypeError("'set' returned for property 'set' of object '#<WeakMap>' is not a function");
    for (const item of iterable) {
      if (!%IsObject(item)) %ThrowTypeError("Iterator value is not an entry object");
      const key = item[0], value = item[1];
      %Call(adder, map, key, value);
    }
    return map;
  }, MapProto);
  %Constructor(function WeakSet(iterable = undefined) {
    if (new.target === undefined) %ThrowTypeError("Constructor WeakSet requires 'new'");
    const set = %WeakSetNew(%protoFrom(new.target, SetProto));
    if (iterable === undefined || iterable === null) return set;
    const adder = set.add;
    if (!%IsCallable(adder)) %ThrowTypeError("'add' returned for property 'add' of object '#<WeakSet>' is not a function");
    for (const item of iterable) %Call(adder, set, item);
    return set;
  }, SetProto);
  function not(name, that) { %ThrowTypeError("Method " + name + " called on incompatible receiver " + %Describe(that)); }
  %Install(MapProto, {
    delete(key) { not("WeakMap.prototype.delete", this); },
    get(key) { not("WeakMap.prototype.get", this); },
    set(key, value) {
      if (!%Is("WeakMap", this)) not("WeakMap.prototype.set", this);
      %ThrowTypeError("Invalid value used as weak map key");
    },
    has(key) { not("WeakMap.prototype.has", this); },
  }, "WeakMap.prototype");
  %Tag(MapProto, "WeakMap");
  %Install(SetProto, {
    delete(value) { not("WeakSet.prototype.delete", this); },
    has(value) { not("WeakSet.prototype.has", this); },
    add(value) {
      if (!%Is("WeakSet", this)) not("WeakSet.prototype.add", this);
      %ThrowTypeError("Invalid value used in weak set");
    },
  }, "WeakSet.prototype");
  %Tag(SetProto, "WeakSet");
  %Constructor(function WeakRef(target) {
    if (new.target === undefined) %ThrowTypeError("Constructor WeakRef requires 'new'");
    if (!%CanBeHeldWeakly(target)) %ThrowTypeError("WeakRef: target must be an object");
    return %NewCell("WeakRef", %protoFrom(new.target, RefProto), target);
  }, RefProto);
  %Install(RefProto, {
    deref() {
      if (!%Is("WeakRef", this)) not("WeakRef.prototype.deref", this);
      return %CellOf(this);
    },
  }, "WeakRef.prototype");
  %Tag(RefProto, "WeakRef");
  // Fields: the callback, and a weak table that knows which tokens are registered.
  %Constructor(function FinalizationRegistry(cleanupCallback) {
    if (new.target === undefined) %ThrowTypeError("Constructor FinalizationRegistry requires 'new'");
    if (!%IsCallable(cleanupCallback)) %ThrowTypeError("FinalizationRegistry: cleanup must be callable");
    const proto = %protoFrom(new.target, RegistryProto);
    return %NewSlots("FinalizationRegistry", proto, cleanupCallback, %WeakSetNew(null));
  }, RegistryProto);
  %Install(RegistryProto, {
    register(target, heldValue, token = undefined) {
      if (!%Is("FinalizationRegistry", this)) not("FinalizationRegistry.prototype.register", this);
      if (!%CanBeHeldWeakly(target)) %ThrowTypeError("FinalizationRegistry.prototype.register: invalid target");
      if (%SameValue(target, heldValue)) %ThrowTypeError("FinalizationRegistry.prototype.register: target and holdings must not be same");
      if (%CanBeHeldWeakly(token)) %WeakAdd(%Slot(this, 1), token);
      else if (token !== undefined) %ThrowTypeError("Invalid unregister token ('" + %Describe(token) + "')");
    },
    unregister(token) {
      if (!%Is("FinalizationRegistry", this)) not("FinalizationRegistry.prototype.unregister", this);
      if (!%CanBeHeldWeakly(token)) %ThrowTypeError("Invalid unregister token ('" + %Describe(token) + "')");
      return %WeakDelete(%Slot(this, 1), token);
    },
  }, "FinalizationRegistry.prototype");
  %Tag(RegistryProto, "FinalizationRegistry");
})();
