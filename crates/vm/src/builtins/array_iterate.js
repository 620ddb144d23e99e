// Array: the methods that call back, and iterators. A real array without proxies behind it is read first and asked about
// holes only where it answers undefined; anything else is asked before it is read, as the specification says.
(function () {
  const ITERATOR = %Symbol("iterator");
  const MAX_SAFE = 9007199254740991;
  const ArrayPrototype = %Proto("Array"), ArrayIteratorPrototype = %Proto("ArrayIterator");

  function iterator(array, kind) { return %NewSlots("ArrayIterator", ArrayIteratorPrototype, array, 0, kind); }

  // FlattenIntoArray: the levels are a list, not frames of their own.
  function flatten(a, own, source, n, depth) {
    const stack = [source, n, 0];
    let target = 0, top = 0;
    while (top >= 0) {
      const o = stack[top], end = stack[top + 1], k = stack[top + 2];
      if (k >= end) { top -= 3; continue; }
      stack[top + 2] = k + 1;
      if (!(k in o)) continue;
      const v = o[k];
      if (top / 3 < depth && %IsArray(v)) {
        const m = %lengthOf(v);
        top += 3;
        %Put(stack, top, v); %Put(stack, top + 1, m); %Put(stack, top + 2, 0);
        continue;
      }
      if (target >= MAX_SAFE) %ThrowTypeError("Invalid array length");
      if (own) %Put(a, target, v); else %CreateData(a, target, v);
      target++;
    }
  }

  %Install(ArrayPrototype, {
    entries() { return iterator(%ToObject(this), 2); },
    every(callback, thisArg = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      if (!%IsCallable(callback)) %notCallable(callback);
      if (%IsSimple(o)) {
        for (let k = 0; k < n; k++) {
          const v = o[k];
          if ((v !== undefined || k in o) && !%Call(callback, thisArg, v, k, o)) return false;
        }
      } else for (let k = 0; k < n; k++) if (k in o && !%Call(callback, thisArg, o[k], k, o)) return false;
      return true;
    },
    filter(callback, thisArg = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      if (!%IsCallable(callback)) %notCallable(callback);
      const c = %arraySpecies(o), a = %arrayCreate(c, 0);
      if (c === undefined && %IsSimple(o)) {
        for (let k = 0; k < n; k++) {
          const v = o[k];
          if ((v !== undefined || k in o) && %Call(callback, thisArg, v, k, o)) %Append(a, v);
        }
        return a;
      }
      let to = 0;
      for (let k = 0; k < n; k++) {
        if (k in o) {
          const v = o[k];
          if (%Call(callback, thisArg, v, k, o)) %CreateData(a, to++, v);
        }
      }
      return a;
    },
    find(callback, thisArg = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      if (!%IsCallable(callback)) %notCallable(callback);
      for (let k = 0; k < n; k++) {
        const v = o[k];
        if (%Call(callback, thisArg, v, k, o)) return v;
      }
    },
    findIndex(callback, thisArg = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      if (!%IsCallable(callback)) %notCallable(callback);
      for (let k = 0; k < n; k++) if (%Call(callback, thisArg, o[k], k, o)) return k;
      return -1;
    },
    findLast(callback, thisArg = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      if (!%IsCallable(callback)) %notCallable(callback);
      for (let k = n - 1; k >= 0; k--) {
        const v = o[k];
        if (%Call(callback, thisArg, v, k, o)) return v;
      }
    },
    findLastIndex(callback, thisArg = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      if (!%IsCallable(callback)) %notCallable(callback);
      for (let k = n - 1; k >= 0; k--) if (%Call(callback, thisArg, o[k], k, o)) return k;
      return -1;
    },
    flat(depth = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      const levels = depth === undefined ? 1 : %toIntegerOrInfinity(depth);
      const c = %arraySpecies(o), a = %arrayCreate(c, 0);
      flatten(a, c === undefined, o, n, levels);
      return a;
    },
    flatMap(callback, thisArg = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      if (!%IsCallable(callback)) %notCallable(callback);
      const c = %arraySpecies(o), a = %arrayCreate(c, 0);
      let to = 0;
      for (let k = 0; k < n; k++) {
        if (!(k in o)) continue;
        const v = %Call(callback, thisArg, o[k], k, o);
        if (%IsArray(v)) {
          const m = %lengthOf(v);
          for (let i = 0; i < m; i++) {
            if (!(i in v)) continue;
            if (to >= MAX_SAFE) %ThrowTypeError("Invalid array length");
            if (c === undefined) %Put(a, to, v[i]); else %CreateData(a, to, v[i]);
            to++;
          }
        } else {
          if (to >= MAX_SAFE) %ThrowTypeError("Invalid array length");
          if (c === undefined) %Put(a, to, v); else %CreateData(a, to, v);
          to++;
        }
      }
      return a;
    },
    forEach(callback, thisArg = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      if (!%IsCallable(callback)) %notCallable(callback);
      if (%IsSimple(o)) {
        for (let k = 0; k < n; k++) {
          const v = o[k];
          if (v !== undefined || k in o) %Call(callback, thisArg, v, k, o);
        }
      } else for (let k = 0; k < n; k++) if (k in o) %Call(callback, thisArg, o[k], k, o);
    },
    keys() { return iterator(%ToObject(this), 1); },
    map(callback, thisArg = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      if (!%IsCallable(callback)) %notCallable(callback);
      const c = %arraySpecies(o), a = %arrayCreate(c, n);
      if (c === undefined) {
        if (%IsSimple(o)) {
          for (let k = 0; k < n; k++) {
            const v = o[k];
            if (v !== undefined || k in o) %Put(a, k, %Call(callback, thisArg, v, k, o));
          }
        } else for (let k = 0; k < n; k++) if (k in o) %Put(a, k, %Call(callback, thisArg, o[k], k, o));
        %SetLength(a, n);
        return a;
      }
      for (let k = 0; k < n; k++) if (k in o) %CreateData(a, k, %Call(callback, thisArg, o[k], k, o));
      return a;
    },
    reduce(callback, initial = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      if (!%IsCallable(callback)) %notCallable(callback);
      let k = 0, result = initial;
      if (%ArgCount() < 2) {
        while (k < n && !(k in o)) k++;
        if (k >= n) %ThrowTypeError("Reduce of empty array with no initial value");
        result = o[k++];
      }
      if (%IsSimple(o)) {
        for (; k < n; k++) {
          const v = o[k];
          if (v !== undefined || k in o) result = %Call(callback, undefined, result, v, k, o);
        }
      } else for (; k < n; k++) if (k in o) result = %Call(callback, undefined, result, o[k], k, o);
      return result;
    },
    reduceRight(callback, initial = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      if (!%IsCallable(callback)) %notCallable(callback);
      let k = n - 1, result = initial;
      if (%ArgCount() < 2) {
        while (k >= 0 && !(k in o)) k--;
        if (k < 0) %ThrowTypeError("Reduce of empty array with no initial value");
        result = o[k--];
      }
      for (; k >= 0; k--) if (k in o) result = %Call(callback, undefined, result, o[k], k, o);
      return result;
    },
    some(callback, thisArg = undefined) {
      const o = %ToObject(this), n = %lengthOf(o);
      if (!%IsCallable(callback)) %notCallable(callback);
      if (%IsSimple(o)) {
        for (let k = 0; k < n; k++) {
          const v = o[k];
          if ((v !== undefined || k in o) && %Call(callback, thisArg, v, k, o)) return true;
        }
      } else for (let k = 0; k < n; k++) if (k in o && %Call(callback, thisArg, o[k], k, o)) return true;
      return false;
    },
    values() { return iterator(%ToObject(this), 0); },
  }, "Array.prototype");
  %Hidden(ArrayPrototype, ITERATOR, ArrayPrototype.values);

  %Install(ArrayIteratorPrototype, {
    next() {
      if (!%Is("ArrayIterator", this)) %ThrowTypeError("next method called on incompatible receiver");
      const o = %Slot(this, 0);
      if (o === undefined) return %IterResult(undefined, true);
      const k = %Slot(this, 1), kind = %Slot(this, 2);
      let n;
      if (%Is("TypedArray", o)) {
        n = %ViewLength(o);
        if (n < 0) %ThrowTypeError("Cannot perform %ArrayIteratorPrototype%.next on a detached ArrayBuffer");
      } else n = %lengthOf(o);
      if (k >= n) {
        %SetSlot(this, 0, undefined);
        return %IterResult(undefined, true);
      }
      %SetSlot(this, 1, k + 1);
      if (kind === 1) return %IterResult(k, false);
      const v = o[k];
      if (kind === 0) return %IterResult(v, false);
      const pair = %NewArray();
      %Append(pair, k);
      %Append(pair, v);
      return %IterResult(pair, false);
    },
  }, "%ArrayIteratorPrototype%");
  %Tag(ArrayIteratorPrototype, "Array Iterator");
  %IterationIntrinsics(ArrayPrototype.values, ArrayIteratorPrototype.next);
})();
