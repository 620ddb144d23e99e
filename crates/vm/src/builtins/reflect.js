// Reflect: the internal methods by name.
(function () {
  const Reflect = {};
  %Hidden(%Global(), "Reflect", Reflect);
  %Tag(Reflect, "Reflect");
  function check(o, name) {
    if (!%IsObject(o)) %ThrowTypeError("Reflect." + name + " called on non-object");
  }
  function prototypeOrNull(p) {
    if (!%IsObject(p) && p !== null) %ThrowTypeError("Object prototype may only be an Object or null: " + %Show(p));
  }
  %Install(Reflect, {
    apply(f, receiver, list) {
      if (!%IsCallable(f)) %ThrowTypeError("Function.prototype.apply was called on " + %Show(f) + ", which is not a function");
      return %Apply(f, receiver, %listFrom(list));
    },
    construct(f, list) {
      if (!%IsConstructor(f)) %ThrowTypeError(%Show(f) + " is not a constructor");
      const newTarget = %ArgCount() > 2 ? %Arguments()[2] : f;
      if (!%IsConstructor(newTarget)) %ThrowTypeError(%Show(newTarget) + " is not a constructor");
      return %Construct(f, %listFrom(list), newTarget);
    },
    defineProperty(o, key, attributes) {
      check(o, "defineProperty");
      key = %ToKey(key);
      return %DefineOwn(o, key, %toDescriptor(attributes));
    },
    deleteProperty(o, key) {
      check(o, "deleteProperty");
      return %DeleteOwn(o, %ToKey(key));
    },
    get(o, key) {
      check(o, "get");
      key = %ToKey(key);
      return %GetFrom(o, key, %ArgCount() > 2 ? %Arguments()[2] : o);
    },
    getOwnPropertyDescriptor(o, key) {
      check(o, "getOwnPropertyDescriptor");
      return %PublicDescriptor(%GetOwn(o, %ToKey(key)));
    },
    getPrototypeOf(o) {
      check(o, "getPrototypeOf");
      return %GetProto(o);
    },
    has(o, key) {
      check(o, "has");
      return key in o;
    },
    isExtensible(o) {
      check(o, "isExtensible");
      return %IsExtensible(o);
    },
    ownKeys(o) {
      check(o, "ownKeys");
      return %OwnKeys(o);
    },
    preventExtensions(o) {
      check(o, "preventExtensions");
      return %PreventExtensions(o);
    },
    set(o, key, value) {
      check(o, "set");
      key = %ToKey(key);
      return %SetOn(o, key, value, %ArgCount() > 3 ? %Arguments()[3] : o);
    },
    setPrototypeOf(o, prototype) {
      check(o, "setPrototypeOf");
      prototypeOrNull(prototype);
      return %SetProto(o, prototype);
    },
  }, "Reflect");
})();
