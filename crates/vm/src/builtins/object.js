// Object: everything in terms of the internal methods, so that proxies need no special case.
(function () {
  const proto = %Proto("Object");
  const TO_STRING_TAG = %Symbol("toStringTag");

  // ToPropertyDescriptor: an object without a prototype that has the given fields.
  function toDescriptor(o) {
    if (!%IsObject(o)) %ThrowTypeError("Property description must be an object: " + %Show(o));
    const d = { __proto__: null };
    if ("enumerable" in o) d.enumerable = !!o.enumerable;
    if ("configurable" in o) d.configurable = !!o.configurable;
    if ("value" in o) d.value = o.value;
    if ("writable" in o) d.writable = !!o.writable;
    if ("get" in o) {
      const get = o.get;
      if (get !== undefined && !%IsCallable(get)) %ThrowTypeError("Getter must be a function: " + %Show(get));
      d.get = get;
    }
    if ("set" in o) {
      const set = o.set;
      if (set !== undefined && !%IsCallable(set)) %ThrowTypeError("Setter must be a function: " + %Show(set));
      d.set = set;
    }
    if (("get" in d || "set" in d) && ("value" in d || "writable" in d)) {
      %ThrowTypeError("Invalid property descriptor. Cannot both specify accessors and a value or writable attribute");
    }
    return d;
  }
  function defineOrThrow(o, key, d) {
    if (!%DefineOwn(o, key, d)) %ThrowTypeError("Cannot redefine property: " + %Show(key));
  }
  function defineProperties(o, properties) {
    const props = %ToObject(properties);
    const keys = %OwnKeys(props);
    const names = %NewArray(), list = %NewArray();
    for (let i = 0; i < keys.length; i++) {
      const own = %GetOwn(props, keys[i]);
      if (own === undefined || !own.enumerable) continue;
      %Append(names, keys[i]);
      %Append(list, toDescriptor(props[keys[i]]));
    }
    for (let i = 0; i < names.length; i++) defineOrThrow(o, names[i], list[i]);
    return o;
  }
  function enumerableOwn(o, kind) {
    const keys = %OwnKeys(o), out = %NewArray();
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i];
      if (typeof key !== "string") continue;
      const d = %GetOwn(o, key);
      if (d === undefined || !d.enumerable) continue;
      if (kind === 0) %Append(out, key);
      else if (kind === 1) %Append(out, o[key]);
      else %Append(out, [key, o[key]]);
    }
    return out;
  }
  function ownOfKind(o, symbols) {
    const keys = %OwnKeys(%ToObject(o)), out = %NewArray();
    for (let i = 0; i < keys.length; i++) if ((typeof keys[i] === "symbol") === symbols) %Append(out, keys[i]);
    return out;
  }
  // SetIntegrityLevel.
  function harden(o, frozen) {
    if (!%PreventExtensions(o)) return false;
    const keys = %OwnKeys(o);
    for (let i = 0; i < keys.length; i++) {
      if (!frozen) {
        defineOrThrow(o, keys[i], { __proto__: null, configurable: false });
        continue;
      }
      const current = %GetOwn(o, keys[i]);
      if (current === undefined) continue;
      const fixed = "get" in current ? { __proto__: null, configurable: false } : { __proto__: null, configurable: false, writable: false };
      defineOrThrow(o, keys[i], fixed);
    }
    return true;
  }
  // TestIntegrityLevel.
  function isHardened(o, frozen) {
    if (%IsExtensible(o)) return false;
    const keys = %OwnKeys(o);
    for (let i = 0; i < keys.length; i++) {
      const current = %GetOwn(o, keys[i]);
      if (current === undefined) continue;
      if (current.configurable || frozen && current.writable) return false;
    }
    return true;
  }
  function needsCoercible(o) {
    if (o === undefined || o === null) %ThrowTypeError("Cannot convert undefined or null to object");
  }

  const ObjectC = %Constructor(function Object(value) {
    if (new.target !== undefined && new.target !== ObjectC) return %NewObject(%protoFrom(new.target, proto));
    if (value === undefined || value === null) return {};
    return %ToObject(value);
  }, proto);

  %Install(ObjectC, {
    assign(target, source) {
      const to = %ToObject(target), list = %Arguments();
      for (let i = 1; i < list.length; i++) {
        const given = list[i];
        if (given === undefined || given === null) continue;
        const from = %ToObject(given), keys = %OwnKeys(from);
        for (let j = 0; j < keys.length; j++) {
          const d = %GetOwn(from, keys[j]);
          if (d !== undefined && d.enumerable) to[keys[j]] = from[keys[j]];
        }
      }
      return to;
    },
    create(prototype, properties) {
      if (!%IsObject(prototype) && prototype !== null) %ThrowTypeError("Object prototype may only be an Object or null: " + %Show(prototype));
      const o = %NewObject(prototype);
      return properties === undefined ? o : defineProperties(o, properties);
    },
    defineProperties(o, properties) {
      if (!%IsObject(o)) %ThrowTypeError("Object.defineProperties called on non-object");
      return defineProperties(o, properties);
    },
    defineProperty(o, key, attributes) {
      if (!%IsObject(o)) %ThrowTypeError("Object.defineProperty called on non-object");
      key = %ToKey(key);
      defineOrThrow(o, key, toDescriptor(attributes));
      return o;
    },
    entries(o) { return %EnumerableOwn(%ToObject(o), 2); },
    freeze(o) {
      if (%IsObject(o) && !harden(o, true)) %ThrowTypeError("Cannot freeze");
      return o;
    },
    fromEntries(iterable) {
      needsCoercible(iterable);
      const o = {};
      for (const entry of iterable) {
        if (!%IsObject(entry)) %ThrowTypeError("Iterator value " + %Show(entry) + " is not an entry object");
        const key = entry[0], value = entry[1];
        %CreateData(o, %ToKey(key), value);
      }
      return o;
    },
    getOwnPropertyDescriptor(o, key) {
      o = %ToObject(o);
      return %PublicDescriptor(%GetOwn(o, %ToKey(key)));
    },
    getOwnPropertyDescriptors(o) {
      o = %ToObject(o);
      const keys = %OwnKeys(o), out = {};
      for (let i = 0; i < keys.length; i++) {
        const d = %PublicDescriptor(%GetOwn(o, keys[i]));
        if (d !== undefined) %CreateData(out, keys[i], d);
      }
      return out;
    },
    getOwnPropertyNames(o) { return ownOfKind(o, false); },
    getOwnPropertySymbols(o) { return ownOfKind(o, true); },
    getPrototypeOf(o) { return %GetProto(%ToObject(o)); },
    groupBy(items, callback) {
      needsCoercible(items);
      if (!%IsCallable(callback)) %ThrowTypeError(%Show(callback) + " is not a function");
      const groups = { __proto__: null };
      let i = 0;
      for (const item of items) {
        const key = %ToKey(%Call(callback, undefined, item, i++));
        const group = groups[key];
        if (group === undefined) groups[key] = [item];
        else %Append(group, item);
      }
      return groups;
    },
    hasOwn(o, key) {
      o = %ToObject(o);
      return %HasOwn(o, %ToKey(key));
    },
    is(a, b) { return %SameValue(a, b); },
    isExtensible(o) { return %IsObject(o) && %IsExtensible(o); },
    isFrozen(o) { return !%IsObject(o) || isHardened(o, true); },
    isSealed(o) { return !%IsObject(o) || isHardened(o, false); },
    keys(o) { return %EnumerableOwn(%ToObject(o), 0); },
    preventExtensions(o) {
      if (%IsObject(o) && !%PreventExtensions(o)) %ThrowTypeError("Cannot prevent extensions");
      return o;
    },
    seal(o) {
      if (%IsObject(o) && !harden(o, false)) %ThrowTypeError("Cannot seal");
      return o;
    },
    setPrototypeOf(o, prototype) {
      needsCoercible(o);
      if (!%IsObject(prototype) && prototype !== null) %ThrowTypeError("Object prototype may only be an Object or null: " + %Show(prototype));
      if (%IsObject(o) && !%SetProto(o, prototype)) %ThrowTypeError("Cannot set prototype: the object is not extensible, its prototype is immutable, or it would become its own ancestor");
      return o;
    },
    values(o) { return %EnumerableOwn(%ToObject(o), 1); },
  }, "Object");

  %Install(proto, {
    hasOwnProperty(key) {
      key = %ToKey(key);
      return %HasOwn(%ToObject(this), key);
    },
    isPrototypeOf(v) {
      if (!%IsObject(v)) return false;
      const o = %ToObject(this);
      for (;;) {
        v = %GetProto(v);
        if (v === null) return false;
        if (v === o) return true;
      }
    },
    propertyIsEnumerable(key) {
      key = %ToKey(key);
      const d = %GetOwn(%ToObject(this), key);
      return d !== undefined && d.enumerable;
    },
    toLocaleString() { return this.toString(); },
    toString() {
      if (this === undefined) return "[object Undefined]";
      if (this === null) return "[object Null]";
      const o = %ToObject(this);
      const builtin = %IsArray(o) ? "Array" : %BuiltinTag(o);
      const tag = o[TO_STRING_TAG];
      return "[object " + (typeof tag === "string" ? tag : builtin) + "]";
    },
    valueOf() { return %ToObject(this); },
  }, "Object.prototype");

  // Annex B.
  function accessorOf(o, key, name) {
    o = %ToObject(o);
    key = %ToKey(key);
    for (; o !== null; o = %GetProto(o)) {
      const own = %GetOwn(o, key);
      if (own !== undefined) return own[name];
    }
  }
  function defineAccessor(o, key, name, f) {
    o = %ToObject(o);
    if (!%IsCallable(f)) %ThrowTypeError("Object.prototype.__define" + (name === "get" ? "Getter__" : "Setter__") + ": Expecting function");
    defineOrThrow(o, %ToKey(key), { __proto__: null, [name]: f, enumerable: true, configurable: true });
  }
  %Install(proto, {
    __defineGetter__(key, getter) { defineAccessor(this, key, "get", getter); },
    __defineSetter__(key, setter) { defineAccessor(this, key, "set", setter); },
    __lookupGetter__(key) { return accessorOf(this, key, "get"); },
    __lookupSetter__(key) { return accessorOf(this, key, "set"); },
    get __proto__() { return %GetProto(%ToObject(this)); },
    set __proto__(prototype) {
      needsCoercible(this);
      if (!%IsObject(prototype) && prototype !== null || !%IsObject(this)) return;
      if (!%SetProto(this, prototype)) %ThrowTypeError("Cannot set prototype: the object is not extensible, its prototype is immutable, or it would become its own ancestor");
    },
  }, "Object.prototype");

  %Share("toDescriptor", toDescriptor);
  %Share("enumerableOwn", enumerableOwn);
})();
