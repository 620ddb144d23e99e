// Proxies: the thirteen traps with their invariants, and the ends of property operations that must ask a proxy. The
// interpreter enters these functions wherever an ordinary operation meets a proxy, so a trap may do whatever a function may.
(function () {
  // The trap, or undefined when the operation goes to the target.
  function trapOf(proxy, name) {
    const handler = %Slot(proxy, 1);
    if (handler === null) %ThrowTypeError("Cannot perform '" + name + "' on a proxy that has been revoked");
    const trap = handler[name];
    if (trap === undefined || trap === null) return undefined;
    if (!%IsCallable(trap)) %ThrowTypeError("proxy handler's '" + name + "' is not a function");
    return trap;
  }
  function broken(name, reason) { %ThrowTypeError("'" + name + "' on proxy: " + reason); }
  function isAccessor(d) { return "get" in d; }

  function proxyGetProto(proxy) {
    const trap = trapOf(proxy, "getPrototypeOf"), target = %Slot(proxy, 0);
    if (trap === undefined) return %GetProto(target);
    const result = %Call(trap, %Slot(proxy, 1), target);
    if (!%IsObject(result) && result !== null) broken("getPrototypeOf", "trap returned neither object nor null");
    if (%IsExtensible(target)) return result;
    if (result !== %GetProto(target)) broken("getPrototypeOf", "proxy target is non-extensible but the trap did not return its actual prototype");
    return result;
  }
  function proxySetProto(proxy, prototype) {
    const trap = trapOf(proxy, "setPrototypeOf"), target = %Slot(proxy, 0);
    if (trap === undefined) return %SetProto(target, prototype);
    if (!%Call(trap, %Slot(proxy, 1), target, prototype)) return false;
    if (%IsExtensible(target)) return true;
    if (prototype !== %GetProto(target)) broken("setPrototypeOf", "trap returned truish for setting a new prototype on the non-extensible proxy target");
    return true;
  }
  function proxyIsExtensible(proxy) {
    const trap = trapOf(proxy, "isExtensible"), target = %Slot(proxy, 0);
    if (trap === undefined) return %IsExtensible(target);
    const result = !!%Call(trap, %Slot(proxy, 1), target);
    if (result !== %IsExtensible(target)) broken("isExtensible", "trap result does not reflect extensibility of proxy target");
    return result;
  }
  function proxyPreventExtensions(proxy) {
    const trap = trapOf(proxy, "preventExtensions"), target = %Slot(proxy, 0);
    if (trap === undefined) return %PreventExtensions(target);
    const result = !!%Call(trap, %Slot(proxy, 1), target);
    if (result && %IsExtensible(target)) broken("preventExtensions", "the proxy target is extensible");
    return result;
  }
  function proxyGetOwn(proxy, key) {
    const trap = trapOf(proxy, "getOwnPropertyDescriptor"), target = %Slot(proxy, 0);
    if (trap === undefined) return %GetOwn(target, key);
    const result = %Call(trap, %Slot(proxy, 1), target, key);
    if (!%IsObject(result) && result !== undefined) broken("getOwnPropertyDescriptor", "trap returned neither object nor undefined");
    const current = %GetOwn(target, key);
    if (result === undefined) {
      if (current === undefined) return undefined;
      if (!current.configurable) broken("getOwnPropertyDescriptor", "trap returned undefined for a property which is non-configurable in the proxy target");
      if (!%IsExtensible(target)) broken("getOwnPropertyDescriptor", "trap returned undefined for a property which exists in the non-extensible proxy target");
      return undefined;
    }
    const extensible = %IsExtensible(target);
    const desc = complete(%toDescriptor(result));
    if (!isCompatible(extensible, desc, current)) broken("getOwnPropertyDescriptor", "trap returned a descriptor that is incompatible with the existing property in the proxy target");
    if (!desc.configurable) {
      if (current === undefined || current.configurable) broken("getOwnPropertyDescriptor", "trap reported non-configurability for a property which is either non-existent or configurable in the proxy target");
      if ("writable" in desc && !desc.writable && current.writable) broken("getOwnPropertyDescriptor", "trap reported non-configurable and writable for a property which is non-configurable, non-writable in the proxy target");
    }
    return desc;
  }
  // CompletePropertyDescriptor, in the order in which a descriptor is shown.
  function complete(d) {
    const full = { __proto__: null };
    if ("get" in d || "set" in d) {
      full.get = d.get;
      full.set = d.set;
    } else {
      full.value = d.value;
      full.writable = d.writable === true;
    }
    full.enumerable = d.enumerable === true;
    full.configurable = d.configurable === true;
    return full;
  }
  // IsCompatiblePropertyDescriptor; `current` is complete.
  function isCompatible(extensible, d, current) {
    if (current === undefined) return extensible;
    if (current.configurable) return true;
    if (d.configurable) return false;
    if ("enumerable" in d && d.enumerable !== current.enumerable) return false;
    const accessor = "get" in d || "set" in d;
    if (!accessor && !("value" in d) && !("writable" in d)) return true;
    if (accessor !== isAccessor(current)) return false;
    if (accessor) return !("get" in d && d.get !== current.get || "set" in d && d.set !== current.set);
    if (current.writable) return true;
    if (d.writable) return false;
    return !("value" in d) || %SameValue(d.value, current.value);
  }
  function proxyHasOwn(proxy, key) { return proxyGetOwn(proxy, key) !== undefined; }
  function proxyDefine(proxy, key, desc) {
    const trap = trapOf(proxy, "defineProperty"), target = %Slot(proxy, 0);
    if (trap === undefined) return %DefineOwn(target, key, desc);
    if (!%Call(trap, %Slot(proxy, 1), target, key, %PublicDescriptor(desc))) return false;
    const current = %GetOwn(target, key);
    const extensible = %IsExtensible(target);
    const fixed = desc.configurable === false;
    if (current === undefined) {
      if (!extensible) broken("defineProperty", "trap returned truish for adding property to the non-extensible proxy target");
      if (fixed) broken("defineProperty", "trap returned truish for defining non-configurable property which is either non-existent or configurable in the proxy target");
      return true;
    }
    if (!isCompatible(extensible, desc, current)) broken("defineProperty", "trap returned truish for adding property that is incompatible with the existing property in the proxy target");
    if (fixed && current.configurable) broken("defineProperty", "trap returned truish for defining non-configurable property which is either non-existent or configurable in the proxy target");
    if (!isAccessor(current) && !current.configurable && current.writable && desc.writable === false) broken("defineProperty", "trap returned truish for defining non-configurable property which cannot be non-writable");
    return true;
  }
  function proxyHas(proxy, key) {
    const handler = %Slot(proxy, 1);
    if (handler === null) return trapOf(proxy, "has");
    const trap = handler.has, target = %Slot(proxy, 0);
    if (trap === undefined || trap === null) return key in target;
    const result = !!%Call(trap, handler, target, key);
    if (result) return true;
    if (%Promised(target, key) === 0) return false;
    const current = %GetOwn(target, key);
    if (current === undefined) return false;
    if (!current.configurable) broken("has", "trap returned falsish for a property which exists in the proxy target as non-configurable");
    if (!%IsExtensible(target)) broken("has", "trap returned falsish for a property but the proxy target is not extensible");
    return false;
  }
  function proxyGet(proxy, key, receiver) {
    // The commonest traps look themselves up: a frame less.
    const handler = %Slot(proxy, 1);
    if (handler === null) return trapOf(proxy, "get");
    const trap = handler.get, target = %Slot(proxy, 0);
    if (trap === undefined || trap === null) return %GetFrom(target, key, receiver);
    const value = %Call(trap, handler, target, key, receiver);
    if (%Promised(target, key) !== 2) return value;
    const current = %GetOwn(target, key);
    if (current === undefined || current.configurable) return value;
    if (isAccessor(current)) {
      if (current.get === undefined && value !== undefined) broken("get", "property is a non-configurable accessor property on the proxy target and does not have a getter function, but the trap did not return 'undefined'");
    } else if (!current.writable && !%SameValue(value, current.value)) broken("get", "property is a read-only and non-configurable data property on the proxy target but the proxy did not return its actual value");
    return value;
  }
  function proxySet(proxy, key, value, receiver) {
    const handler = %Slot(proxy, 1);
    if (handler === null) return trapOf(proxy, "set");
    const trap = handler.set, target = %Slot(proxy, 0);
    if (trap === undefined || trap === null) return %SetOn(target, key, value, receiver);
    if (!%Call(trap, handler, target, key, value, receiver)) return false;
    if (%Promised(target, key) !== 2) return true;
    const current = %GetOwn(target, key);
    if (current === undefined || current.configurable) return true;
    if (isAccessor(current)) {
      if (current.set === undefined) broken("set", "trap returned truish for a property which exists in the proxy target as a non-configurable accessor property without a setter");
    } else if (!current.writable && !%SameValue(value, current.value)) broken("set", "trap returned truish for a property which exists in the proxy target as a non-configurable and non-writable data property with a different value");
    return true;
  }
  function proxyDelete(proxy, key) {
    const trap = trapOf(proxy, "deleteProperty"), target = %Slot(proxy, 0);
    if (trap === undefined) return %DeleteOwn(target, key);
    if (!%Call(trap, %Slot(proxy, 1), target, key)) return false;
    if (%Promised(target, key) === 0) return true;
    const current = %GetOwn(target, key);
    if (current === undefined) return true;
    if (!current.configurable) broken("deleteProperty", "trap returned truish for a property which is non-configurable in the proxy target");
    if (!%IsExtensible(target)) broken("deleteProperty", "trap returned truish for a property but the proxy target is non-extensible");
    return true;
  }
  function proxyOwnKeys(proxy) {
    const trap = trapOf(proxy, "ownKeys"), target = %Slot(proxy, 0);
    if (trap === undefined) return %OwnKeys(target);
    const keys = namesFrom(%Call(trap, %Slot(proxy, 1), target));
    const extensible = %IsExtensible(target);
    const actual = %OwnKeys(target);
    const fixed = %NewArray(), loose = %NewArray();
    for (let i = 0; i < actual.length; i++) {
      const d = %GetOwn(target, actual[i]);
      %Append(d !== undefined && !d.configurable ? fixed : loose, actual[i]);
    }
    // What is left of the trap's keys as the target's are found among them.
    const left = { __proto__: null };
    let count = keys.length;
    for (let i = 0; i < keys.length; i++) left[keys[i]] = true;
    if (extensible && fixed.length === 0) return keys;
    for (let i = 0; i < fixed.length; i++) {
      if (left[fixed[i]] !== true) broken("ownKeys", "trap result did not include a non-configurable key");
      left[fixed[i]] = false;
      count--;
    }
    if (extensible) return keys;
    for (let i = 0; i < loose.length; i++) {
      if (left[loose[i]] !== true) broken("ownKeys", "trap result did not include a key of the non-extensible proxy target");
      left[loose[i]] = false;
      count--;
    }
    if (count !== 0) broken("ownKeys", "trap returned extra keys but proxy target is non-extensible");
    return keys;
  }
  // CreateListFromArrayLike of property keys, without duplicates.
  function namesFrom(o) {
    if (!%IsObject(o)) %ThrowTypeError("CreateListFromArrayLike called on non-object");
    const n = %lengthOf(o), list = %NewArray(), seen = { __proto__: null };
    for (let i = 0; i < n; i++) {
      const key = o[i];
      if (typeof key !== "string" && typeof key !== "symbol") broken("ownKeys", "trap returned a key that is neither a string nor a symbol");
      %Append(list, key);
    }
    for (let i = 0; i < n; i++) {
      const key = list[i];
      if (seen[key] === true) broken("ownKeys", "trap returned duplicate entries");
      seen[key] = true;
    }
    return list;
  }
  function proxyCall(proxy, receiver, list) {
    const trap = trapOf(proxy, "apply"), target = %Slot(proxy, 0);
    if (trap === undefined) return %Apply(target, receiver, list);
    return %Call(trap, %Slot(proxy, 1), target, receiver, list);
  }
  function proxyConstruct(proxy, list, newTarget) {
    const trap = trapOf(proxy, "construct"), target = %Slot(proxy, 0);
    if (trap === undefined) return %Construct(target, list, newTarget);
    const made = %Call(trap, %Slot(proxy, 1), target, list, newTarget);
    if (!%IsObject(made)) %ThrowTypeError("proxy [[Construct]] must return an object");
    return made;
  }
  function nameOf(key) { return typeof key === "symbol" ? "Symbol()" : key; }
  function proxyAssign(proxy, key, value, receiver) {
    if (!proxySet(proxy, key, value, receiver)) broken("set", "trap returned falsish for property '" + nameOf(key) + "'");
  }
  function proxyDeleteStrict(proxy, key) {
    if (!proxyDelete(proxy, key)) broken("deleteProperty", "trap returned falsish for property '" + nameOf(key) + "'");
    return true;
  }
  function slowDelete(o, key) { key = %ToKey(key); return delete o[key]; }
  function slowIn(key, o) { key = %ToKey(key); return key in o; }
  function slowGetSuper(base, key, receiver) { return %GetFrom(base, %ToKey(key), receiver); }
  function slowSetSuper(base, key, value, receiver) {
    key = %ToKey(key);
    if (!%SetOn(base, key, value, receiver)) %ThrowTypeError("Cannot assign to read only property '" + nameOf(key) + "' of object");
  }
  // The keys that for-in visits, after the subject itself, and the position to begin at.
  function forInKeys(subject) {
    const list = [subject], seen = { __proto__: null };
    for (let o = subject; o !== null; o = %GetProto(o)) {
      const keys = %OwnKeys(o);
      for (let i = 0; i < keys.length; i++) {
        const key = keys[i];
        if (typeof key === "symbol" || key in seen) continue;
        const own = %GetOwn(o, key);
        if (own === undefined) continue;
        seen[key] = true;
        if (own.enumerable) %Append(list, key);
      }
    }
    return [list, 1];
  }
  const objectProto = %Proto("Object");
  function constructSlow(f, list, newTarget) {
    return %ConstructOn(f, list, newTarget, %protoFrom(newTarget, objectProto));
  }
  // The `prototype` that a class inherits from.
  function classHeritage(c) {
    if (c === null) return null;
    if (!%IsConstructor(c)) %ThrowTypeError("Class extends value " + %Show(c) + " is not a constructor or null");
    const p = c.prototype;
    if (!%IsObject(p) && p !== null) %ThrowTypeError("Class extends value does not have valid prototype property " + %Show(p));
    return p;
  }
  function callSetter(setter, receiver, value) { %Call(setter, receiver, value); return true; }
  // OrdinarySet, from where the property was found to be writable data or absent.
  function setOnReceiver(_, key, value, receiver) {
    if (!%IsObject(receiver)) return false;
    const current = %GetOwn(receiver, key);
    if (current === undefined) return %DefineOwn(receiver, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
    if (isAccessor(current) || !current.writable) return false;
    return %DefineOwn(receiver, key, { __proto__: null, value });
  }
  function assignOnReceiver(_, key, value, receiver) {
    if (!setOnReceiver(_, key, value, receiver)) %ThrowTypeError("Cannot assign to read only property '" + nameOf(key) + "' of object");
  }
  function toElement(view, value) { return %HasBigElements(view) ? %toBigInt(value) : +value; }
  function setViewElement(view, key, value) {
    value = toElement(view, value);
    %SetElement(view, key, value);
    return true;
  }
  function defineSpecial(o, key, desc) {
    let value = desc.value;
    if (%Is("TypedArray", o)) {
      value = toElement(o, value);
      %SetElement(o, key, value);
      return true;
    }
    // ArraySetLength converts twice.
    const length = value >>> 0;
    if (length !== +value) %ThrowRangeError("Invalid array length");
    const given = { __proto__: null };
    const names = ["enumerable", "configurable", "writable", "get", "set"];
    for (let i = 0; i < names.length; i++) if (names[i] in desc) given[names[i]] = desc[names[i]];
    given.value = length;
    return %DefineOwn(o, key, given);
  }
  function createDataSlow(o, key, value) {
    const done = %DefineOwn(o, key, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
    if (!done) %ThrowTypeError("Cannot add property " + nameOf(key) + ", object is not extensible");
  }

  const Proxy = %Constructor(function Proxy(target, handler) {
    if (new.target === undefined) %ThrowTypeError("Constructor Proxy requires 'new'");
    return %NewProxy(target, handler);
  });
  %Install(Proxy, {
    revocable(target, handler) {
      const proxy = %NewProxy(target, handler);
      let mine = proxy;
      return {
        proxy,
        revoke: (0, () => {
          if (mine === null) return;
          %SetSlot(mine, 0, null);
          %SetSlot(mine, 1, null);
          mine = null;
        }),
      };
    },
  }, "Proxy");

  %Share("slowDelete", slowDelete);
  %Share("slowIn", slowIn);
  %Share("slowGetSuper", slowGetSuper);
  %Share("slowSetSuper", slowSetSuper);
  %Share("forInKeys", forInKeys);
  %Share("constructSlow", constructSlow);
  %Share("classHeritage", classHeritage);
  %Share("proxyGet", proxyGet);
  %Share("proxySet", proxySet);
  %Share("proxyAssign", proxyAssign);
  %Share("proxyHas", proxyHas);
  %Share("proxyDelete", proxyDelete);
  %Share("proxyDeleteStrict", proxyDeleteStrict);
  %Share("proxyGetOwn", proxyGetOwn);
  %Share("proxyHasOwn", proxyHasOwn);
  %Share("proxyDefine", proxyDefine);
  %Share("proxyOwnKeys", proxyOwnKeys);
  %Share("proxyGetProto", proxyGetProto);
  %Share("proxySetProto", proxySetProto);
  %Share("proxyIsExtensible", proxyIsExtensible);
  %Share("proxyPreventExtensions", proxyPreventExtensions);
  %Share("proxyCall", proxyCall);
  %Share("proxyConstruct", proxyConstruct);
  %Share("callSetter", callSetter);
  %Share("setOnReceiver", setOnReceiver);
  %Share("assignOnReceiver", assignOnReceiver);
  %Share("setViewElement", setViewElement);
  %Share("defineSpecial", defineSpecial);
  %Share("createDataSlow", createDataSlow);
})();
