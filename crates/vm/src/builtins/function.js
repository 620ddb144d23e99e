// Function and its prototype. Code cannot be made from text: the constructor only exists to be named.
(function () {
  const proto = %Proto("Function");
  const HAS_INSTANCE = %Symbol("hasInstance");

  %Constructor(function Function(code) {
    %ThrowTypeError("Function constructor is unavailable in the supported surface");
  }, proto);

  function ordinaryHasInstance(c, v) {
    if (!%IsCallable(c)) return false;
    if (%Is("BoundFunction", c)) return v instanceof %Slot(c, 0);
    if (!%IsObject(v)) return false;
    const p = c.prototype;
    if (!%IsObject(p)) %ThrowTypeError("Function has non-object prototype '" + %Show(p) + "' in instanceof check");
    const quick = %HasPrototype(v, p);
    if (quick !== undefined) return quick;
    for (;;) {
      v = %GetProto(v);
      if (v === null) return false;
      if (v === p) return true;
    }
  }

  %Install(proto, {
    apply(receiver, list) {
      if (!%IsCallable(this)) %ThrowTypeError("Function.prototype.apply was called on " + %Show(this) + ", which is not a function");
      if (list === undefined || list === null) return %Call(this, receiver);
      return %Apply(this, receiver, %listFrom(list));
    },
    bind(receiver) {
      if (!%IsCallable(this)) %ThrowTypeError("Bind must be called on a function");
      const list = %Arguments();
      const f = %NewBound(this, %GetProto(this), list);
      let length = 0;
      if (%HasOwn(this, "length")) {
        const n = this.length;
        if (typeof n === "number") {
          const left = %toIntegerOrInfinity(n) - (list.length === 0 ? 0 : list.length - 1);
          if (left > 0) length = left;
        }
      }
      const name = this.name;
      %SetMeta(f, length, "bound " + (typeof name === "string" ? name : ""));
      return f;
    },
    call(receiver) {
      const list = %Arguments(), rest = %NewArray();
      for (let i = 1; i < list.length; i++) %Append(rest, list[i]);
      return %Apply(this, receiver, rest);
    },
    toString() {
      const text = %SourceOf(this);
      if (text === undefined) %ThrowTypeError("Function.prototype.toString requires that 'this' be a Function");
      return text;
    },
  }, "Function.prototype");

  const hasInstance = { [HAS_INSTANCE](v) { return ordinaryHasInstance(this, v); } }[HAS_INSTANCE];
  %Const(proto, HAS_INSTANCE, hasInstance);
  const thrower = (0, () => { %ThrowTypeError("'caller', 'callee', and 'arguments' properties may not be accessed on strict mode functions or the arguments objects for calls to them"); });
  %SetGuards(hasInstance, thrower);
  %Share("ordinaryHasInstance", ordinaryHasInstance);
})();
