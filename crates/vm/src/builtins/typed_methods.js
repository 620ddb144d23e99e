// %TypedArray%.prototype: the methods that arrays have too.
(function () {
  const ITERATOR = %Symbol("iterator");
  const TypedArrayPrototype = %Proto("TypedArray"), ArrayIteratorPrototype = %Proto("ArrayIterator");
  function place(x, n) {
    x = %toIntegerOrInfinity(x);
    return x < 0 ? x + n > 0 ? x + n : 0 : x < n ? x : n;
  }
  function callable(f) { if (!%IsCallable(f)) %notCallable(f); }
  function iterator(o, kind) {
    %typedValidate(o);
    return %NewSlots("ArrayIterator", ArrayIteratorPrototype, o, 0, kind);
  }
  function listOf(o, n) {
    const list = %NewArray();
    for (let k = 0; k < n; k++) %Append(list, %ViewGet(o, k));
    return list;
  }
  function checkCompare(compare) {
    if (compare !== undefined && !%IsCallable(compare)) {
      %ThrowTypeError("The comparison function must be either a function or undefined");
    }
  }

  %Install(TypedArrayPrototype, {
    at(index) {
      const n = %typedValidate(this), k = %toIntegerOrInfinity(index), at = k < 0 ? n + k : k;
      return at < 0 || at >= n ? undefined : %ViewGet(this, at);
    },
    copyWithin(target, start, end = undefined) {
      const n = %typedValidate(this);
      const to = place(target, n), from = place(start, n), last = end === undefined ? n : place(end, n);
      const count = last - from < n - to ? last - from : n - to;
      if (count > 0) {
        const now = %typedValidate(this);
        let most = now - (from > to ? from : to);
        if (count < most) most = count;
        if (most > 0) %MoveElements(this, to, from, most);
      }
      return this;
    },
    entries() { return iterator(this, 2); },
    every(callback, thisArg = undefined) {
      const n = %typedValidate(this);
      callable(callback);
      for (let k = 0; k < n; k++) if (!%Call(callback, thisArg, %ViewGet(this, k), k, this)) return false;
      return true;
    },
    fill(value, start = undefined, end = undefined) {
      const n = %typedValidate(this);
      value = %typedConvert(%ViewElement(this), value);
      const from = place(start, n);
      let to = end === undefined ? n : place(end, n);
      const now = %typedValidate(this);
      if (to > now) to = now;
      if (from < to) %FillElements(this, from, to, value);
      return this;
    },
    filter(callback, thisArg = undefined) {
      const n = %typedValidate(this);
      callable(callback);
      const kept = %NewArray();
      for (let k = 0; k < n; k++) {
        const v = %ViewGet(this, k);
        if (%Call(callback, thisArg, v, k, this)) %Append(kept, v);
      }
      const a = %typedSpeciesCreate(this, kept.length);
      for (let k = 0; k < kept.length; k++) %typedPut(a, k, kept[k]);
      return a;
    },
    find(callback, thisArg = undefined) {
      const n = %typedValidate(this);
      callable(callback);
      for (let k = 0; k < n; k++) {
        const v = %ViewGet(this, k);
        if (%Call(callback, thisArg, v, k, this)) return v;
      }
    },
    findIndex(callback, thisArg = undefined) {
      const n = %typedValidate(this);
      callable(callback);
      for (let k = 0; k < n; k++) if (%Call(callback, thisArg, %ViewGet(this, k), k, this)) return k;
      return -1;
    },
    findLast(callback, thisArg = undefined) {
      const n = %typedValidate(this);
      callable(callback);
      for (let k = n - 1; k >= 0; k--) {
        const v = %ViewGet(this, k);
        if (%Call(callback, thisArg, v, k, this)) return v;
      }
    },
    findLastIndex(callback, thisArg = undefined) {
      const n = %typedValidate(this);
      callable(callback);
      for (let k = n - 1; k >= 0; k--) if (%Call(callback, thisArg, %ViewGet(this, k), k, this)) return k;
      return -1;
    },
    forEach(callback, thisArg = undefined) {
      const n = %typedValidate(this);
      callable(callback);
      for (let k = 0; k < n; k++) %Call(callback, thisArg, %ViewGet(this, k), k, this);
    },
    includes(wanted, start = undefined) {
      const n = %typedValidate(this);
      if (n === 0) return false;
      for (let k = place(start, n); k < n; k++) if (%SameValueZero(%ViewGet(this, k), wanted)) return true;
      return false;
    },
    indexOf(wanted, start = undefined) {
      const n = %typedValidate(this);
      if (n === 0) return -1;
      const from = place(start, n), now = %ViewLength(this), end = now < n ? now : n;
      for (let k = from; k < end; k++) if (%ViewGet(this, k) === wanted) return k;
      return -1;
    },
    join(separator) {
      const n = %typedValidate(this), between = separator === undefined ? "," : `${separator}`;
      let text = "";
      for (let k = 0; k < n; k++) {
        if (k > 0) text += between;
        const v = %ViewGet(this, k);
        if (v !== undefined) text += v;
      }
      return text;
    },
    keys() { return iterator(this, 1); },
    lastIndexOf(wanted, start = undefined) {
      const n = %typedValidate(this);
      if (n === 0) return -1;
      let k = n - 1;
      if (%ArgCount() > 1) {
        const from = %toIntegerOrInfinity(start);
        k = from < 0 ? n + from : from < k ? from : k;
      }
      const now = %ViewLength(this);
      if (k >= now) k = now - 1;
      for (; k >= 0; k--) if (%ViewGet(this, k) === wanted) return k;
      return -1;
    },
    map(callback, thisArg = undefined) {
      const n = %typedValidate(this);
      callable(callback);
      const a = %typedSpeciesCreate(this, n);
      for (let k = 0; k < n; k++) %typedPut(a, k, %Call(callback, thisArg, %ViewGet(this, k), k, this));
      return a;
    },
    reduce(callback, initial = undefined) {
      const n = %typedValidate(this);
      callable(callback);
      let k = 0, result = initial;
      if (%ArgCount() < 2) {
        if (n === 0) %ThrowTypeError("Reduce of empty array with no initial value");
        result = %ViewGet(this, k++);
      }
      for (; k < n; k++) result = %Call(callback, undefined, result, %ViewGet(this, k), k, this);
      return result;
    },
    reduceRight(callback, initial = undefined) {
      const n = %typedValidate(this);
      callable(callback);
      let k = n - 1, result = initial;
      if (%ArgCount() < 2) {
        if (n === 0) %ThrowTypeError("Reduce of empty array with no initial value");
        result = %ViewGet(this, k--);
      }
      for (; k >= 0; k--) result = %Call(callback, undefined, result, %ViewGet(this, k), k, this);
      return result;
    },
    reverse() {
      %typedValidate(this);
      %ReverseElements(this);
      return this;
    },
    some(callback, thisArg = undefined) {
      const n = %typedValidate(this);
      callable(callback);
      for (let k = 0; k < n; k++) if (%Call(callback, thisArg, %ViewGet(this, k), k, this)) return true;
      return false;
    },
    sort(compare) {
      checkCompare(compare);
      const n = %typedValidate(this);
      if (compare === undefined) { %SortElements(this); return this; }
      const sorted = %mergeSort(listOf(this, n), compare);
      for (let k = 0; k < n; k++) %ViewSet(this, k, sorted[k]);
      return this;
    },
    toLocaleString() { return %joinElements(this, %typedValidate(this), ",", true); },
    toReversed() {
      const n = %typedValidate(this), a = %typedSame(this, n);
      %CopyElements(a, 0, this, 0, n);
      %ReverseElements(a);
      return a;
    },
    toSorted(compare) {
      checkCompare(compare);
      const n = %typedValidate(this), a = %typedSame(this, n);
      if (compare === undefined) {
        %CopyElements(a, 0, this, 0, n);
        %SortElements(a);
        return a;
      }
      const sorted = %mergeSort(listOf(this, n), compare);
      for (let k = 0; k < n; k++) %ViewSet(a, k, sorted[k]);
      return a;
    },
    values() { return iterator(this, 0); },
    with(index, value) {
      const n = %typedValidate(this), k = %toIntegerOrInfinity(index), at = k < 0 ? n + k : k;
      value = %typedConvert(%ViewElement(this), value);
      if (at < 0 || at >= %ViewLength(this)) %ThrowRangeError("Invalid typed array index");
      const a = %typedSame(this, n), element = %ViewElement(this);
      for (let i = 0; i < n; i++) {
        const v = i === at ? value : %ViewGet(this, i);
        %ViewSet(a, i, v === undefined ? %typedConvert(element, v) : v);
      }
      return a;
    },
  }, "TypedArray.prototype");
  %Hidden(TypedArrayPrototype, "toString", %Proto("Array").toString);
  %Hidden(TypedArrayPrototype, ITERATOR, TypedArrayPrototype.values);
})();
