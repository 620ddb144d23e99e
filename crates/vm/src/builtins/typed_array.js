// %TypedArray% and its eleven constructors. Elements are numbered as `heap::Element` does.
(function () {
  const ITERATOR = %Symbol("iterator"), SPECIES = %Symbol("species"), TAG = %Symbol("toStringTag");
  const NAMES = ["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array",
    "BigInt64Array", "BigUint64Array", "Float32Array", "Float64Array"];
  const BufferPrototype = %Proto("ArrayBuffer"), TypedArrayPrototype = %Proto("TypedArray");
  const CONSTRUCTORS = [], PROTOTYPES = [];

  function isBig(element) { return element === 7 || element === 8; }
  function convert(element, v) { return isBig(element) ? %toBigInt(v) : +v; }

  // AllocateTypedArrayBuffer and the view on it.
  function allocate(element, prototype, n) {
    const bytes = n * %ElementSize(element);
    if (bytes > 2147483647) %ThrowRangeError("Invalid typed array length: " + n);
    return %NewTyped(prototype, %NewBuffer(BufferPrototype, bytes, undefined), element, 0, n);
  }
  function fromBuffer(element, prototype, buffer, byteOffset, length) {
    const size = %ElementSize(element), name = NAMES[element];
    const offset = %indexOr(byteOffset, "Start offset is too large");
    if (offset % size !== 0) %ThrowRangeError(`start offset of ${name} should be a multiple of ${size}`);
    const n = length === undefined ? undefined : %indexOr(length, "Invalid typed array length");
    if (%IsDetached(buffer)) %ThrowTypeError("Cannot perform Construct on a detached ArrayBuffer");
    const bytes = %BufferLength(buffer);
    if (n !== undefined) {
      if (offset + n * size > bytes) %ThrowRangeError("Invalid typed array length: " + n);
      return %NewTyped(prototype, buffer, element, offset, n);
    }
    if (%BufferMax(buffer) !== undefined) {
      if (offset > bytes) %ThrowRangeError(`Start offset ${offset} is outside the bounds of the buffer`);
      return %NewTyped(prototype, buffer, element, offset, undefined);
    }
    if (bytes % size !== 0) %ThrowRangeError(`byte length of ${name} should be a multiple of ${size}`);
    if (offset > bytes) %ThrowRangeError(`Start offset ${offset} is outside the bounds of the buffer`);
    return %NewTyped(prototype, buffer, element, offset, (bytes - offset) / size);
  }
  // IteratorToList(GetIteratorFromMethod(…)).
  function listOf(items, method) {
    const plain = %PlainElements(items);
    if (plain !== undefined) return plain;
    const list = %NewArray(), iterator = %Call(method, items);
    if (!%IsObject(iterator)) %ThrowTypeError("Result of the Symbol.iterator method is not an object");
    const next = iterator.next;
    for (;;) {
      const result = %Call(next, iterator);
      if (!%IsObject(result)) %ThrowTypeError("Iterator result is not an object");
      if (result.done) return list;
      %Append(list, result.value);
    }
  }
  function construct(target, element, first, byteOffset, length) {
    if (target === undefined) %ThrowTypeError(`Constructor ${NAMES[element]} requires 'new'`);
    if (!%IsObject(first)) {
      const n = %indexOr(first, "Invalid typed array length: " + (typeof first === "symbol" ? "" : first));
      return allocate(element, %protoFrom(target, PROTOTYPES[element]), n);
    }
    const prototype = %protoFrom(target, PROTOTYPES[element]);
    if (%Is("TypedArray", first)) {
      const n = %ViewLength(first);
      if (n < 0) %ThrowTypeError("Cannot perform Construct on a detached ArrayBuffer");
      const a = allocate(element, prototype, n);
      if (isBig(element) !== isBig(%ViewElement(first))) %ThrowTypeError("Cannot mix BigInt and other types, use explicit conversions");
      %CopyElements(a, 0, first, 0, n);
      return a;
    }
    if (%Is("ArrayBuffer", first)) return fromBuffer(element, prototype, first, byteOffset, length);
    const method = %getMethod(first, ITERATOR);
    if (method !== undefined) {
      const list = listOf(first, method), n = list.length, a = allocate(element, prototype, n);
      for (let k = 0; k < n; k++) %ViewSet(a, k, convert(element, list[k]));
      return a;
    }
    const n = %lengthOf(first), a = allocate(element, prototype, n);
    for (let k = 0; k < n; k++) %ViewSet(a, k, convert(element, first[k]));
    return a;
  }

  const TypedArray = %Class(function TypedArray() {
    %ThrowTypeError("Abstract class TypedArray not directly constructable");
  }, TypedArrayPrototype);
  function add(f, name, size) {
    const prototype = %Proto(name);
    const made = %Constructor(f, prototype, TypedArray);
    %Append(CONSTRUCTORS, made);
    %Append(PROTOTYPES, prototype);
    %Const(made, "BYTES_PER_ELEMENT", size);
    %Const(prototype, "BYTES_PER_ELEMENT", size);
  }
  add(function Int8Array(a, b, c) { return construct(new.target, 0, a, b, c); }, "Int8Array", 1);
  add(function Uint8Array(a, b, c) { return construct(new.target, 1, a, b, c); }, "Uint8Array", 1);
  add(function Uint8ClampedArray(a, b, c) { return construct(new.target, 2, a, b, c); }, "Uint8ClampedArray", 1);
  add(function Int16Array(a, b, c) { return construct(new.target, 3, a, b, c); }, "Int16Array", 2);
  add(function Uint16Array(a, b, c) { return construct(new.target, 4, a, b, c); }, "Uint16Array", 2);
  add(function Int32Array(a, b, c) { return construct(new.target, 5, a, b, c); }, "Int32Array", 4);
  add(function Uint32Array(a, b, c) { return construct(new.target, 6, a, b, c); }, "Uint32Array", 4);
  add(function BigInt64Array(a, b, c) { return construct(new.target, 7, a, b, c); }, "BigInt64Array", 8);
  add(function BigUint64Array(a, b, c) { return construct(new.target, 8, a, b, c); }, "BigUint64Array", 8);
  add(function Float32Array(a, b, c) { return construct(new.target, 9, a, b, c); }, "Float32Array", 4);
  add(function Float64Array(a, b, c) { return construct(new.target, 10, a, b, c); }, "Float64Array", 8);

  // ValidateTypedArray; answers the length.
  function validate(o) {
    if (!%Is("TypedArray", o)) %ThrowTypeError("this is not a typed array.");
    const n = %ViewLength(o);
    if (n < 0) %ThrowTypeError("Cannot perform the operation on a detached or out-of-bounds ArrayBuffer");
    return n;
  }
  // TypedArrayCreateFromCtor with a length.
  function create(C, n) {
    const a = new C(n);
    if (validate(a) < n) %ThrowTypeError("Derived TypedArray constructor created an array which was too small");
    return a;
  }
  function sameContent(o, a) {
    if (isBig(%ViewElement(o)) !== isBig(%ViewElement(a))) %ThrowTypeError("Content type of the species does not fit");
    return a;
  }
  function species(o) { return %speciesConstructor(o, CONSTRUCTORS[%ViewElement(o)]); }
  // Set on a typed array: the value is converted even if there is no such element any more.
  function put(a, k, v) {
    v = convert(%ViewElement(a), v);
    %ViewSet(a, k, v);
  }
  %Share("typedValidate", validate);
  %Share("typedPut", put);
  %Share("typedConvert", convert);
  %Share("typedSpeciesCreate", (o, n) => sameContent(o, create(species(o), n)));
  %Share("typedSame", (o, n) => allocate(%ViewElement(o), PROTOTYPES[%ViewElement(o)], n));
  %Share("typedSubarray", (o, buffer, offset, n) => {
    const C = species(o);
    const a = n === undefined ? new C(buffer, offset) : new C(buffer, offset, n);
    validate(a);
    return sameContent(o, a);
  });
  function place(x, n) {
    x = %toIntegerOrInfinity(x);
    return x < 0 ? x + n > 0 ? x + n : 0 : x < n ? x : n;
  }

  %Install(TypedArray, {
    from(source, mapper = undefined, thisArg = undefined) {
      if (!%IsConstructor(this)) %ThrowTypeError("this is not a constructor");
      if (mapper !== undefined && !%IsCallable(mapper)) %notCallable(mapper);
      const method = %getMethod(source, ITERATOR);
      const list = method === undefined ? %ToObject(source) : listOf(source, method);
      const n = method === undefined ? %lengthOf(list) : list.length;
      const a = create(this, n);
      for (let k = 0; k < n; k++) put(a, k, mapper === undefined ? list[k] : %Call(mapper, thisArg, list[k], k));
      return a;
    },
    of() {
      const items = %Arguments(), n = items.length;
      if (!%IsConstructor(this)) %ThrowTypeError("this is not a constructor");
      const a = create(this, n);
      for (let k = 0; k < n; k++) put(a, k, items[k]);
      return a;
    },
    get [SPECIES]() { return this; },
  }, "TypedArray");
  function typed(o) {
    if (!%Is("TypedArray", o)) %ThrowTypeError("this is not a typed array.");
    return o;
  }
  %Install(TypedArrayPrototype, {
    get [TAG]() { return %Is("TypedArray", this) ? NAMES[%ViewElement(this)] : undefined; },
    get buffer() { return %ViewBuffer(typed(this)); },
    get byteLength() {
      const n = %ViewLength(typed(this));
      return n < 0 ? 0 : n * %ElementSize(%ViewElement(this));
    },
    get byteOffset() { return %ViewLength(typed(this)) < 0 ? 0 : %ViewOffset(this); },
    get length() {
      const n = %ViewLength(typed(this));
      return n < 0 ? 0 : n;
    },
    set(source, offset = undefined) {
      typed(this);
      const to = %toIntegerOrInfinity(offset);
      if (to < 0) %ThrowRangeError("offset is out of bounds");
      const n = validate(this);
      if (%Is("TypedArray", source)) {
        const m = validate(source);
        sameContent(this, source);
        if (to + m > n) %ThrowRangeError("offset is out of bounds");
        %CopyElements(this, to, source, 0, m);
        return;
      }
      const o = %ToObject(source), m = %lengthOf(o);
      if (to + m > n) %ThrowRangeError("offset is out of bounds");
      for (let k = 0; k < m; k++) put(this, to + k, o[k]);
    },
    slice(start, end) {
      const n = validate(this);
      const first = place(start, n);
      let last = end === undefined ? n : place(end, n);
      const count = last > first ? last - first : 0;
      const a = %typedSpeciesCreate(this, count);
      if (count > 0) {
        const now = validate(this);
        if (last > now) last = now;
        if (%ViewElement(a) === %ViewElement(this)) { if (last > first) %CopyForward(a, this, first, last - first); }
        else for (let k = first, i = 0; k < last; k++, i++) put(a, i, %ViewGet(this, k));
      }
      return a;
    },
    subarray(start, end) {
      const o = typed(this), buffer = %ViewBuffer(o);
      let n = %ViewLength(o);
      if (n < 0) n = 0;
      const size = %ElementSize(%ViewElement(o));
      const offset = %ViewOffset(o);
      const first = place(start, n);
      let count = undefined;
      if (end !== undefined || !%ViewTracks(o)) {
        const last = end === undefined ? n : place(end, n);
        count = last > first ? last - first : 0;
      }
      return %typedSubarray(o, buffer, offset + first * size, count);
    },
  }, "TypedArray.prototype");
})();
