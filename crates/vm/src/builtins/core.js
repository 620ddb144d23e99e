// The helpers that instructions fall back to. Each is an ordinary function: a guest's `valueOf`, getter or iterator
// called from here may throw, suspend or run out of budget like any other call. `%Name(…)` are the engine's own.
(function () {
  const ITERATOR = %Symbol("iterator"), TO_PRIMITIVE = %Symbol("toPrimitive");
  const HAS_INSTANCE = %Symbol("hasInstance"), SPECIES = %Symbol("species");
  function toPrimitive(x, hint) {
    if (!%IsObject(x)) return x;
    const exotic = x[TO_PRIMITIVE];
    if (exotic !== undefined && exotic !== null) {
      if (!%IsCallable(exotic)) %ThrowTypeError("Symbol.toPrimitive is not a function");
      const result = %Call(exotic, x, hint);
      if (%IsObject(result)) %ThrowTypeError("Cannot convert object to primitive value");
      return result;
    }
    if (hint === "string") {
      const toString = x.toString;
      if (%IsCallable(toString)) { const r = %Call(toString, x); if (!%IsObject(r)) return r; }
      const valueOf = x.valueOf;
      if (%IsCallable(valueOf)) { const r = %Call(valueOf, x); if (!%IsObject(r)) return r; }
    } else {
      const valueOf = x.valueOf;
      if (%IsCallable(valueOf)) { const r = %Call(valueOf, x); if (!%IsObject(r)) return r; }
      const toString = x.toString;
      if (%IsCallable(toString)) { const r = %Call(toString, x); if (!%IsObject(r)) return r; }
    }
    %ThrowTypeError("Cannot convert object to primitive value");
  }
  function toNumeric(x) { const p = toPrimitive(x, "number"); return typeof p === "bigint" ? p : +p; }
  function slowAdd(a, b) {
    a = toPrimitive(a, "default");
    b = toPrimitive(b, "default");
    return a + b;
  }
  function slowArith(a, b, op) {
    a = toNumeric(a);
    b = toNumeric(b);
    switch (op) {
      case 0: return a - b;
      case 1: return a * b;
      case 2: return a / b;
      case 3: return a % b;
      case 4: return a ** b;
      case 5: return a & b;
      case 6: return a | b;
      case 7: return a ^ b;
      case 8: return a << b;
      case 9: return a >> b;
      case 10: return a >>> b;
    }
  }
  function slowCompare(a, b, op) {
    a = toPrimitive(a, "number");
    b = toPrimitive(b, "number");
    switch (op) {
      case 0: return a < b;
      case 1: return a <= b;
      case 2: return a > b;
      case 3: return a >= b;
    }
  }
  function slowEqual(a, b) {
    if (typeof a === "boolean") a = +a;
    if (typeof b === "boolean") b = +b;
    return toPrimitive(a, "default") == toPrimitive(b, "default");
  }
  function slowUnary(a, op) {
    a = toPrimitive(a, "number");
    switch (op) {
      case 0: return -a;
      case 1: return +a;
      case 2: return ~a;
      case 3: return ++a;
      case 4: return --a;
      case 5: return typeof a === "bigint" ? a : +a;
    }
  }
  function slowToString(a) { return `${toPrimitive(a, "string")}`; }
  function slowToKey(a) { const p = toPrimitive(a, "string"); return typeof p === "symbol" ? p : `${p}`; }
  function slowInstanceOf(v, c) {
    const handler = c[HAS_INSTANCE];
    if (handler !== undefined && handler !== null) return !!%Call(handler, c, v);
    if (!%IsCallable(c)) %ThrowTypeError("Right-hand side of 'instanceof' is not callable");
    return %ordinaryHasInstance(c, v);
  }
  function slowGetElem(o, k) { return o[slowToKey(k)]; }
  function slowSetElem(o, k, v) { o[slowToKey(k)] = v; }
  function getIterator(iterable) {
    const method = iterable[ITERATOR];
    if (!%IsCallable(method)) %ThrowTypeError("object is not iterable");
    const iterator = %Call(method, iterable);
    if (!%IsObject(iterator)) %ThrowTypeError("Result of the Symbol.iterator method is not an object");
    return [iterator, iterator.next];
  }
  function iteratorStep(iterator, next) {
    const result = %Call(next, iterator);
    if (!%IsObject(result)) %ThrowTypeError("Iterator result is not an object");
    if (result.done) return %Done();
    return result.value;
  }
  function iteratorClose(iterator) {
    const method = iterator.return;
    if (method === undefined || method === null) return;
    if (!%IsObject(%Call(method, iterator))) %ThrowTypeError("Iterator result is not an object");
  }
  function iteratorAbort(iterator) {
    try {
      const method = iterator.return;
      if (method !== undefined && method !== null) %Call(method, iterator);
    } catch {}
  }
  function spreadInto(array, iterable) {
    for (const v of iterable) %Append(array, v);
  }
  function copyProps(target, source, except) {
    const keys = %OwnKeys(source);
    outer: for (let i = 0; i < keys.length; i++) {
      const key = keys[i];
      if (except !== undefined) {
        for (let j = 0; j < except.length; j++) if (except[j] === key) continue outer;
      }
      const own = %GetOwn(source, key);
      if (own !== undefined && own.enumerable) %Define(target, key, source[key]);
    }
    return target;
  }
  function toIntegerOrInfinity(x) {
    x = +x;
    if (x !== x || x === 0) return 0;
    return x < 0 ? x === -Infinity ? x : -(-x - -x % 1) : x === Infinity ? x : x - x % 1;
  }
  function toLength(x) {
    x = toIntegerOrInfinity(x);
    return x <= 0 ? 0 : x > 9007199254740991 ? 9007199254740991 : x;
  }
  function toIndex(x) {
    x = toIntegerOrInfinity(x);
    if (x < 0 || x > 9007199254740991) %ThrowRangeError("Invalid index");
    return x;
  }
  function lengthOf(o) { return toLength(o.length); }
  function getMethod(o, key) {
    const f = o[key];
    if (f === undefined || f === null) return undefined;
    if (!%IsCallable(f)) %ThrowTypeError("value is not a function");
    return f;
  }
  // GetPrototypeFromConstructor.
  function protoFrom(newTarget, fallback) {
    const p = newTarget.prototype;
    if (%IsObject(p)) return p;
    %CheckRealm(newTarget);
    return fallback;
  }
  function speciesConstructor(o, fallback) {
    const c = o.constructor;
    if (c === undefined) return fallback;
    if (!%IsObject(c)) %ThrowTypeError("The .constructor property is not an object");
    const s = c[SPECIES];
    if (s === undefined || s === null) return fallback;
    if (!%IsConstructor(s)) %ThrowTypeError("object.constructor[Symbol.species] is not a constructor");
    return s;
  }
  // CreateListFromArrayLike.
  function listFrom(o) {
    if (!%IsObject(o)) %ThrowTypeError("CreateListFromArrayLike called on non-object");
    const n = lengthOf(o), list = %NewArray();
    for (let i = 0; i < n; i++) %Append(list, o[i]);
    return list;
  }
  %Share("slowAdd", slowAdd);
  %Share("slowArith", slowArith);
  %Share("slowCompare", slowCompare);
  %Share("slowEqual", slowEqual);
  %Share("slowUnary", slowUnary);
  %Share("slowToString", slowToString);
  %Share("slowToKey", slowToKey);
  %Share("slowInstanceOf", slowInstanceOf);
  %Share("slowGetElem", slowGetElem);
  %Share("slowSetElem", slowSetElem);
  %Share("getIterator", getIterator);
  %Share("iteratorStep", iteratorStep);
  %Share("iteratorClose", iteratorClose);
  %Share("iteratorAbort", iteratorAbort);
  %Share("spreadInto", spreadInto);
  %Share("copyProps", copyProps);
  %Share("toPrimitive", toPrimitive);
  %Share("toNumeric", toNumeric);
  %Share("toIntegerOrInfinity", toIntegerOrInfinity);
  %Share("toLength", toLength);
  %Share("toIndex", toIndex);
  %Share("lengthOf", lengthOf);
  %Share("getMethod", getMethod);
  %Share("protoFrom", protoFrom);
  %Share("speciesConstructor", speciesConstructor);
  %Share("listFrom", listFrom);
})();
