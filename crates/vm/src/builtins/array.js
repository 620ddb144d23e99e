// Array: the constructor, its functions, and the methods that move elements without calling back. Natives in `array.rs` do
// the plain cases; what is left here follows the specification step by step.
(function () {
  const ITERATOR = %Symbol("iterator"), SPECIES = %Symbol("species"), ASYNC_ITERATOR = %Symbol("asyncIterator");
  const SPREADABLE = %Symbol("isConcatSpreadable");
  const MAX_LENGTH = 4294967295, MAX_SAFE = 9007199254740991;
  const ArrayPrototype = %Proto("Array"), FromSync = %Proto("AsyncFromSyncIterator");
  const Array = %Constructor(function Array(length) {
    const prototype = new.target === undefined ? ArrayPrototype : %protoFrom(new.target, ArrayPrototype);
    const items = %Arguments();
    const array = %ArrayWithPrototype(prototype);
    if (items.length === 1 && typeof length === "number") {
      if (length >>> 0 !== length) %ThrowRangeError("Invalid array length");
      %SetLength(array, length);
    } else {
      for (let i = 0; i < items.length; i++) %Append(array, items[i]);
    }
    return array;
  }, ArrayPrototype);

  // ArraySpeciesCreate in two steps: undefined stands for an array of our own, which nobody else sees before we are done.
  function species(o) {
    if (!%IsArray(o)) return undefined;
    let c = o.constructor;
    if (%IsObject(c)) {
      c = c[SPECIES];
      if (c === null) return undefined;
    }
    if (c === undefined || c === Array) return undefined;
    if (!%IsConstructor(c)) %ThrowTypeError("object.constructor[Symbol.species] is not a constructor");
    return c;
  }
  function create(c, length) {
    if (c !== undefined) return new c(length);
    if (length > MAX_LENGTH) %ThrowRangeError("Invalid array length");
    return %NewArray();
  }
  %Share("arraySpecies", species);
  %Share("arrayCreate", create);
  // A position counted from the end if negative, inside 0..=n.
  function place(x, n) {
    x = %toIntegerOrInfinity(x);
    return x < 0 ? x + n > 0 ? x + n : 0 : x < n ? x : n;
  }
  %Share("arrayPlace", place);

  function from(C, items, method, mapper, thisArg) {
    const own = C === Array || !%IsConstructor(C);
    const a = own ? %NewArray() : new C();
    const iterator = %Call(method, items);
    if (!%IsObject(iterator)) %ThrowTypeError("Result of the Symbol.iterator method is not an object");
    const next = iterator.next;
    let k = 0;
    for (;;) {
      const result = %Call(next, iterator);
      if (!%IsObject(result)) %ThrowTypeError("Iterator result is not an object");
      if (result.done) break;
      let v = result.value;
      try {
        if (mapper !== undefined) v = %Call(mapper, thisArg, v, k);
        if (own) %Append(a, v); else %CreateData(a, k, v);
      } catch (e) {
        %iteratorAbort(iterator);
        throw e;
      }
      k++;
    }
    if (!own) a.length = k;
    return a;
  }
  async function fromAsync(C, items, mapper, thisArg) {
    if (mapper !== undefined && !%IsCallable(mapper)) notCallable(mapper);
    const asyncMethod = %getMethod(items, ASYNC_ITERATOR);
    const method = asyncMethod === undefined ? %getMethod(items, ITERATOR) : undefined;
    if (asyncMethod === undefined && method === undefined) {
      const o = %ToObject(items), n = %lengthOf(o);
      const a = %IsConstructor(C) ? new C(n) : create(undefined, n);
      for (let k = 0; k < n; k++) {
        let v = await o[k];
        if (mapper !== undefined) v = await %Call(mapper, thisArg, v, k);
        %CreateData(a, k, v);
      }
      a.length = n;
      return a;
    }
    const a = %IsConstructor(C) ? new C() : %NewArray();
    let iterator = %Call(asyncMethod === undefined ? method : asyncMethod, items);
    if (!%IsObject(iterator)) %ThrowTypeError("Result of the Symbol.asyncIterator method is not an object");
    let next = iterator.next;
    if (asyncMethod === undefined) {
      iterator = %NewSlots("AsyncFromSyncIterator", FromSync, iterator, next);
      next = iterator.next;
    }
    let k = 0;
    for (;;) {
      const result = await %Call(next, iterator);
      if (!%IsObject(result)) %ThrowTypeError("Iterator result is not an object");
      if (result.done) break;
      let v = result.value;
      try {
        if (mapper !== undefined) v = await %Call(mapper, thisArg, v, k);
        %CreateData(a, k, v);
      } catch (e) {
        try {
          const method = iterator.return;
          if (method !== undefined && method !== null) await %Call(method, iterator);
        } catch {}
        throw e;
      }
      k++;
    }
    a.length = k;
    return a;
  }
  function notCallable(f) {
    const text = %IsObject(f) ? "#<Object>" : typeof f === "symbol" ? "Symbol()" : typeof f === "string" ? `"${f}"` : `${f}`;
    %ThrowTypeError(`${text} is not a function`);
  }
  %Share("notCallable", notCallable);

  %Install(Array, {
    from(items, mapper = undefined, thisArg = undefined) {
      if (mapper !== undefined && !%IsCallable(mapper)) notCallable(mapper);
      const method = %getMethod(items, ITERATOR);
      if (method !== undefined) return from(this, items, method, mapper, thisArg);
      const o = %ToObject(items), n = %lengthOf(o);
      const own = this === Array || !%IsConstructor(this);
      const a = own ? create(undefined, n) : new this(n);
      for (let k = 0; k < n; k++) {
        const v = mapper === undefined ? o[k] : %Call(mapper, thisArg, o[k], k);
        if (own) %Append(a, v); else %CreateData(a, k, v);
      }
      if (!own) a.length = n;
      return a;
    },
    fromAsync(items, mapper = undefined, thisArg = undefined) { return fromAsync(this, items, mapper, thisArg); },
    isArray(x) { return %IsArray(x); },
    of() {
      const items = %Arguments(), n = items.length;
      if (!%IsConstructor(this)) return items;
      const a = new this(n);
      for (let k = 0; k < n; k++) %CreateData(a, k, items[k]);
      a.length = n;
      return a;
    },
    get [SPECIES]() { return this; },
  }, "Array");

  %Install(ArrayPrototype, {
    at(index) {
      const o = %ToObject(this), n = %lengthOf(o);
      const k = %toIntegerOrInfinity(index);
      const at = k < 0 ? n + k : k;
      return at < 0 || at >= n ? undefined : o[at];
    },
    concat(item) {
      const o = %ToObject(this), items = %Arguments();
      const c = species(o), a = create(c, 0);
      let n = 0;
      for (let j = -1; j < items.length; j++) {
        const e = j < 0 ? o : items[j];
        let spread = false;
        if (%IsObject(e)) {
          const choice = e[SPREADABLE];
          spread = choice === undefined ? %IsArray(e) : !!choice;
        }
        if (spread) {
          const m = %lengthOf(e);
          if (n + m > MAX_SAFE) %ThrowTypeError("Invalid array length");
          for (let i = 0; i < m; i++, n++) {
            if (i in e) { if (c === undefined) %Put(a, n, e[i]); else %CreateData(a, n, e[i]); }
          }
        } else {
          if (n >= MAX_SAFE) %ThrowTypeError("Invalid array length");
          if (c === undefined) %Put(a, n, e); else %CreateData(a, n, e);
          n++;
        }
      }
      a.length = n;
      return a;
    },
    copyWithin(target, start, end = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      let to = place(target, n), from = place(start, n);
      const last = end === undefined ? n : place(end, n);
      let count = last - from < n - to ? last - from : n - to, step = 1;
      if (from < to && to < from + count) {
        step = -1;
        from += count - 1;
        to += count - 1;
      }
      for (; count > 0; count--, from += step, to += step) {
        if (from in o) o[to] = o[from]; else delete o[to];
      }
      return o;
    },
    fill(value, start = undefined, end = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      const from = place(start, n), to = end === undefined ? n : place(end, n);
      for (let k = from; k < to; k++) o[k] = value;
      return o;
    },
    includes(wanted, start = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      if (n === 0) return false;
      for (let k = place(start, n); k < n; k++) if (%SameValueZero(o[k], wanted)) return true;
      return false;
    },
    indexOf(wanted, start = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      if (n === 0) return -1;
      for (let k = place(start, n); k < n; k++) if (k in o && o[k] === wanted) return k;
      return -1;
    },
    lastIndexOf(wanted, start = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      if (n === 0) return -1;
      let k = n - 1;
      if (%ArgCount() > 1) {
        const from = %toIntegerOrInfinity(start);
        k = from < 0 ? n + from : from < k ? from : k;
      }
      for (; k >= 0; k--) if (k in o && o[k] === wanted) return k;
      return -1;
    },
    pop() {
      const o = %ToObject(this), n = %lengthOf(o);
      if (n === 0) { o.length = 0; return undefined; }
      const v = o[n - 1];
      delete o[n - 1];
      o.length = n - 1;
      return v;
    },
    push(item) {
      const o = %ToObject(this), items = %Arguments();
      let n = %lengthOf(o);
      if (n + items.length > MAX_SAFE) %ThrowTypeError("Pushing elements past the largest length of an array");
      for (let i = 0; i < items.length; i++) o[n++] = items[i];
      o.length = n;
      return n;
    },
    reverse() {
      const o = %ToObject(this), n = %lengthOf(o), middle = n / 2 - n / 2 % 1;
      for (let low = 0; low < middle; low++) {
        const high = n - 1 - low;
        const hasLow = low in o, first = hasLow ? o[low] : undefined;
        const hasHigh = high in o, second = hasHigh ? o[high] : undefined;
        if (hasHigh) o[low] = second; else if (hasLow) delete o[low];
        if (hasLow) o[high] = first; else if (hasHigh) delete o[high];
      }
      return o;
    },
    shift() {
      const o = %ToObject(this), n = %lengthOf(o);
      if (n === 0) { o.length = 0; return undefined; }
      const first = o[0];
      for (let k = 1; k < n; k++) if (k in o) o[k - 1] = o[k]; else delete o[k - 1];
      delete o[n - 1];
      o.length = n - 1;
      return first;
    },
    slice(start, end) {
      const o = %ToObject(this), n = %lengthOf(o);
      let k = place(start, n);
      const last = end === undefined ? n : place(end, n);
      const count = last > k ? last - k : 0;
      const c = species(o), a = create(c, count);
      let to = 0;
      for (; k < last; k++, to++) {
        if (k in o) { if (c === undefined) %Put(a, to, o[k]); else %CreateData(a, to, o[k]); }
      }
      a.length = to;
      return a;
    },
    splice(start, deleteCount) {
      const o = %ToObject(this), n = %lengthOf(o), items = %Arguments();
      const from = place(start, n);
      const added = items.length > 2 ? items.length - 2 : 0;
      let gone = 0;
      if (items.length === 1) gone = n - from;
      else if (items.length > 1) {
        gone = %toIntegerOrInfinity(deleteCount);
        gone = gone < 0 ? 0 : gone < n - from ? gone : n - from;
      }
      if (n + added - gone > MAX_SAFE) %ThrowTypeError("Invalid array length");
      const c = species(o), a = create(c, gone);
      for (let k = 0; k < gone; k++) {
        if (from + k in o) { if (c === undefined) %Put(a, k, o[from + k]); else %CreateData(a, k, o[from + k]); }
      }
      a.length = gone;
      if (added < gone) {
        for (let k = from; k < n - gone; k++) {
          if (k + gone in o) o[k + added] = o[k + gone]; else delete o[k + added];
        }
        for (let k = n; k > n - gone + added; k--) delete o[k - 1];
      } else if (added > gone) {
        for (let k = n - gone; k > from; k--) {
          if (k + gone - 1 in o) o[k + added - 1] = o[k + gone - 1]; else delete o[k + added - 1];
        }
      }
      for (let k = 0; k < added; k++) o[from + k] = items[k + 2];
      o.length = n - gone + added;
      return a;
    },
    toReversed() {
      const o = %ToObject(this), n = %lengthOf(o), a = create(undefined, n);
      for (let k = n - 1; k >= 0; k--) %Append(a, o[k]);
      return a;
    },
    toSpliced(start, skipCount) {
      const o = %ToObject(this), n = %lengthOf(o), items = %Arguments();
      const from = place(start, n);
      let gone = 0;
      if (items.length === 1) gone = n - from;
      else if (items.length > 1) {
        gone = %toIntegerOrInfinity(skipCount);
        gone = gone < 0 ? 0 : gone < n - from ? gone : n - from;
      }
      const added = items.length > 2 ? items.length - 2 : 0;
      if (n + added - gone > MAX_SAFE) %ThrowTypeError("Invalid array length");
      const a = create(undefined, n + added - gone);
      for (let k = 0; k < from; k++) %Append(a, o[k]);
      for (let k = 2; k < items.length; k++) %Append(a, items[k]);
      for (let k = from + gone; k < n; k++) %Append(a, o[k]);
      return a;
    },
    unshift(item) {
      const o = %ToObject(this), n = %lengthOf(o), items = %Arguments(), added = items.length;
      if (added > 0) {
        if (n + added > MAX_SAFE) %ThrowTypeError("Invalid array length");
        for (let k = n; k > 0; k--) {
          if (k - 1 in o) o[k + added - 1] = o[k - 1]; else delete o[k + added - 1];
        }
        for (let k = 0; k < added; k++) o[k] = items[k];
      }
      o.length = n + added;
      return n + added;
    },
    with(index, value) {
      const o = %ToObject(this), n = %lengthOf(o);
      const k = %toIntegerOrInfinity(index);
      const at = k < 0 ? n + k : k;
      if (at >= n || at < 0) %ThrowRangeError("Invalid index : " + k);
      const a = create(undefined, n);
      for (let i = 0; i < n; i++) %Append(a, i === at ? value : o[i]);
      return a;
    },
  }, "Array.prototype");
  const unscopable = %NewObject(null);
  const names = ["at", "copyWithin", "entries", "fill", "find", "findIndex", "findLast", "findLastIndex", "flat", "flatMap",
    "includes", "keys", "toReversed", "toSorted", "toSpliced", "values"];
  for (let i = 0; i < names.length; i++) unscopable[names[i]] = true;
  %Unscopables(ArrayPrototype, unscopable);
  %ArrayIntrinsics(Array);
})();
