// ArrayBuffer and DataView.
(function () {
  const SPECIES = %Symbol("species");
  const BufferPrototype = %Proto("ArrayBuffer"), DataViewPrototype = %Proto("DataView");
  const MAX_SAFE = 9007199254740991;

  function index(x, message) {
    if (x === undefined) return 0;
    x = %toIntegerOrInfinity(x);
    if (x < 0 || x > MAX_SAFE) %ThrowRangeError(message);
    return x;
  }
  %Share("indexOr", index);
  function place(x, n) {
    x = %toIntegerOrInfinity(x);
    return x < 0 ? x + n > 0 ? x + n : 0 : x < n ? x : n;
  }
  function buffer(b, name) {
    if (!%Is("ArrayBuffer", b)) %ThrowTypeError(`Method ArrayBuffer.prototype.${name} called on incompatible receiver`);
    return b;
  }
  function attached(b, name) {
    if (%IsDetached(b)) %ThrowTypeError(`Cannot perform ArrayBuffer.prototype.${name} on a detached ArrayBuffer`);
  }

  const ArrayBuffer = %Constructor(function ArrayBuffer(length, options = undefined) {
    if (new.target === undefined) %ThrowTypeError("Constructor ArrayBuffer requires 'new'");
    const n = index(length, "Array buffer allocation failed");
    let max = undefined;
    if (%IsObject(options)) {
      max = options.maxByteLength;
      if (max !== undefined) max = index(max, "Invalid array buffer max length");
    }
    if (max !== undefined && n > max) %ThrowRangeError("Invalid array buffer max length");
    return %NewBuffer(%protoFrom(new.target, BufferPrototype), n, max);
  }, BufferPrototype);
  %Install(ArrayBuffer, {
    isView(x) { return %Is("TypedArray", x) || %Is("DataView", x); },
    get [SPECIES]() { return this; },
  }, "ArrayBuffer");

  function first(list) { return list.length > 0 ? list[0] : undefined; }
  function transfer(b, newLength, name, fixed) {
    buffer(b, name);
    const n = newLength === undefined ? %BufferLength(b) : index(newLength, "Invalid array buffer length");
    attached(b, name);
    const max = fixed ? undefined : %BufferMax(b);
    if (max !== undefined && n > max) %ThrowRangeError("Invalid array buffer length");
    const made = %NewBuffer(BufferPrototype, n, max);
    const old = %BufferLength(b);
    %CopyBytes(made, 0, b, 0, n < old ? n : old);
    %DetachBuffer(b);
    return made;
  }
  %Install(BufferPrototype, {
    get byteLength() { return %BufferLength(buffer(this, "byteLength")); },
    get detached() { return %IsDetached(buffer(this, "detached")); },
    get maxByteLength() {
      const max = %BufferMax(buffer(this, "maxByteLength"));
      return max === undefined ? %BufferLength(this) : %IsDetached(this) ? 0 : max;
    },
    get resizable() { return %BufferMax(buffer(this, "resizable")) !== undefined; },
    resize(newLength) {
      const max = %BufferMax(buffer(this, "resize"));
      if (max === undefined) %ThrowTypeError("Method ArrayBuffer.prototype.resize called on a fixed-length ArrayBuffer");
      const n = index(newLength, "ArrayBuffer.prototype.resize: Invalid length parameter");
      attached(this, "resize");
      if (n > max) %ThrowRangeError("ArrayBuffer.prototype.resize: Invalid length parameter");
      %ResizeBuffer(this, n);
    },
    slice(start, end) {
      attached(buffer(this, "slice"), "slice");
      const n = %BufferLength(this);
      const first = place(start, n), last = end === undefined ? n : place(end, n);
      const count = last > first ? last - first : 0;
      const C = %speciesConstructor(this, ArrayBuffer);
      const made = new C(count);
      attached(buffer(made, "slice"), "slice");
      if (made === this) %ThrowTypeError("ArrayBuffer subclass returned this from species constructor");
      if (%BufferLength(made) < count) %ThrowTypeError("Species constructor returned a too small ArrayBuffer");
      attached(this, "slice");
      const now = %BufferLength(this);
      if (first < now) %CopyBytes(made, 0, this, first, count < now - first ? count : now - first);
      return made;
    },
    transfer() { return transfer(this, first(%Arguments()), "transfer", false); },
    transferToFixedLength() { return transfer(this, first(%Arguments()), "transferToFixedLength", true); },
  }, "ArrayBuffer.prototype");
  %Tag(BufferPrototype, "ArrayBuffer");

  const DataView = %Constructor(function DataView(data, byteOffset = undefined, byteLength = undefined) {
    if (new.target === undefined) %ThrowTypeError("Constructor DataView requires 'new'");
    if (!%Is("ArrayBuffer", data)) %ThrowTypeError("First argument to DataView constructor must be an ArrayBuffer");
    const offset = index(byteOffset, "Start offset is outside the bounds of the buffer");
    if (%IsDetached(data)) %ThrowTypeError("Cannot perform DataView on a detached ArrayBuffer");
    let n = %BufferLength(data);
    if (offset > n) %ThrowRangeError("Start offset " + offset + " is outside the bounds of the buffer");
    let length = undefined;
    if (byteLength !== undefined) {
      length = index(byteLength, "Invalid DataView length");
      if (offset + length > n) %ThrowRangeError("Invalid DataView length " + length);
    } else if (%BufferMax(data) === undefined) length = n - offset;
    const prototype = %protoFrom(new.target, DataViewPrototype);
    if (%IsDetached(data)) %ThrowTypeError("Cannot perform DataView on a detached ArrayBuffer");
    n = %BufferLength(data);
    if (offset > n || length !== undefined && offset + length > n) %ThrowRangeError("Invalid DataView length");
    return %NewDataView(prototype, data, offset, length);
  }, DataViewPrototype);

  function view(v, name) {
    if (!%Is("DataView", v)) %ThrowTypeError(`Method DataView.prototype.${name} called on incompatible receiver`);
    return v;
  }
  function inBounds(v, name) {
    const n = %ViewLength(view(v, name));
    if (n < 0) %ThrowTypeError(`Cannot perform DataView.prototype.${name} on a detached or out-of-bounds ArrayBuffer`);
    return n;
  }
  function get(v, position, little, element, name) {
    view(v, name);
    const at = index(position, "Offset is outside the bounds of the DataView");
    little = !!little;
    const n = inBounds(v, name);
    if (at + %ElementSize(element) > n) %ThrowRangeError("Offset is outside the bounds of the DataView");
    return %DataViewRead(v, at, element, little);
  }
  function set(v, position, value, little, element, name) {
    view(v, name);
    const at = index(position, "Offset is outside the bounds of the DataView");
    value = element === 7 || element === 8 ? %toBigInt(value) : +value;
    little = !!little;
    const n = inBounds(v, name);
    if (at + %ElementSize(element) > n) %ThrowRangeError("Offset is outside the bounds of the DataView");
    %DataViewWrite(v, at, element, little, value);
  }
  %Install(DataViewPrototype, {
    get buffer() { return %ViewBuffer(view(this, "buffer")); },
    get byteLength() { return inBounds(this, "byteLength"); },
    get byteOffset() { inBounds(this, "byteOffset"); return %ViewOffset(this); },
    getInt8(at) { return get(this, at, true, 0, "getInt8"); },
    getUint8(at) { return get(this, at, true, 1, "getUint8"); },
    getInt16(at, little = undefined) { return get(this, at, little, 3, "getInt16"); },
    getUint16(at, little = undefined) { return get(this, at, little, 4, "getUint16"); },
    getInt32(at, little = undefined) { return get(this, at, little, 5, "getInt32"); },
    getUint32(at, little = undefined) { return get(this, at, little, 6, "getUint32"); },
    getBigInt64(at, little = undefined) { return get(this, at, little, 7, "getBigInt64"); },
    getBigUint64(at, little = undefined) { return get(this, at, little, 8, "getBigUint64"); },
    getFloat32(at, little = undefined) { return get(this, at, little, 9, "getFloat32"); },
    getFloat64(at, little = undefined) { return get(this, at, little, 10, "getFloat64"); },
    setInt8(at, value) { set(this, at, value, true, 0, "setInt8"); },
    setUint8(at, value) { set(this, at, value, true, 1, "setUint8"); },
    setInt16(at, value, little = undefined) { set(this, at, value, little, 3, "setInt16"); },
    setUint16(at, value, little = undefined) { set(this, at, value, little, 4, "setUint16"); },
    setInt32(at, value, little = undefined) { set(this, at, value, little, 5, "setInt32"); },
    setUint32(at, value, little = undefined) { set(this, at, value, little, 6, "setUint32"); },
    setBigInt64(at, value, little = undefined) { set(this, at, value, little, 7, "setBigInt64"); },
    setBigUint64(at, value, little = undefined) { set(this, at, value, little, 8, "setBigUint64"); },
    setFloat32(at, value, little = undefined) { set(this, at, value, little, 9, "setFloat32"); },
    setFloat64(at, value, little = undefined) { set(this, at, value, little, 10, "setFloat64"); },
  }, "DataView.prototype");
  %Tag(DataViewPrototype, "DataView");
})();
