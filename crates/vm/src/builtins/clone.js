// structuredClone. Containers in progress are a chain of records, so that deep data needs no deep calls.
(function () {
  const OBJECT = 0, MAP = 1, SET = 2, ERROR = 3;
  const ERRORS = { __proto__: null, EvalError: %Proto("EvalError"), RangeError: %Proto("RangeError"), ReferenceError: %Proto("ReferenceError"), SyntaxError: %Proto("SyntaxError"), TypeError: %Proto("TypeError"), URIError: %Proto("URIError") };
  const ErrorProto = %Proto("Error"), MapProto = %Proto("Map"), SetProto = %Proto("Set");
  function refuse(message) {
    const error = %MakeError(ErrorProto, message);
    %Hidden(error, "name", "DataCloneError");
    %Hidden(error, "code", 25);
    throw error;
  }
  // What Map and Set hold now: it may change while it is cloned.
  function entries(table, both) {
    const list = %NewArray(), walk = %NewSlots("MapIterator", null, table, 0, 2, undefined, undefined);
    while (%TableWalk(walk)) {
      %Append(list, %Slot(walk, 3));
      if (both) %Append(list, %Slot(walk, 4));
    }
    return list;
  }
  function cloneError(error) {
    const name = error.name, own = %GetOwn(error, "message");
    const text = name === undefined ? "Error" : `${name}`;
    const proto = ERRORS[text] === undefined ? ErrorProto : ERRORS[text];
    const target = own === undefined || !%HasOwn(own, "value") ? %MakeError(proto) : %MakeError(proto, `${own.value}`);
    const stack = error.stack;
    if (typeof stack === "string") %Hidden(target, "stack", stack);
    return target;
  }
  // A container to fill: its parts are the keys, entries or values still to come.
  function open(context, kind, source, target, parts) {
    context.opened = { __proto__: null, kind, source, target, parts, index: 0, key: undefined, outer: null };
  }
  function cloneBuffer(buffer, memory) {
    const seen = %MapGet(memory, buffer);
    if (seen !== undefined) return seen;
    const copy = %CloneBuffer(buffer);
    if (copy === undefined) refuse("An ArrayBuffer is detached and could not be cloned.");
    %MapSet(memory, buffer, copy);
    return copy;
  }
  // The clone of one value, its parts still missing.
  function one(source, context) {
    if (typeof source === "symbol") refuse(%Describe(source) + " could not be cloned.");
    if (!%IsObject(source)) return source;
    const memory = context.memory, seen = %MapGet(memory, source);
    if (seen !== undefined) return seen;
    let made;
    if (%IsCallable(source)) refuse(%Describe(source) + " could not be cloned.");
    if (%Is("Map", source)) {
      made = %MapNew(MapProto);
      open(context, MAP, source, made, entries(source, true));
    } else if (%Is("Set", source)) {
      made = %SetNew(SetProto);
      open(context, SET, source, made, entries(source, false));
    } else if (%Is("Error", source)) {
      made = cloneError(source);
      if ("cause" in source) open(context, ERROR, source, made, ["cause"]);
    } else if (%Is("ArrayBuffer", source)) return cloneBuffer(source, memory);
    else if (%Is("TypedArray", source) || %Is("DataView", source)) made = %CloneView(source, cloneBuffer(%ViewBuffer(source), memory));
    else if (%Is("RegExp", source)) made = %regExpCreate(%Slot(source, 0), %Slot(source, 1));
    else {
      made = %CloneSimple(source);
      if (made === undefined) refuse(%Describe(source) + " could not be cloned.");
      if (%Is("Object", source) || %Is("Array", source) || %Is("Arguments", source)) open(context, OBJECT, source, made, %EnumerableOwn(source, 0));
    }
    %MapSet(memory, source, made);
    return made;
  }
  function put(frame, made) {
    if (frame.kind === OBJECT) %Define(frame.target, frame.key, made);
    else if (frame.kind === SET) %SetAdd(frame.target, made);
    else if (frame.kind === ERROR) %Hidden(frame.target, frame.key, made);
    else if (frame.index % 2 === 1) frame.key = made;
    else %MapSet(frame.target, frame.key, made);
  }
  // The buffers that move instead of being copied: what they hold goes along, and they are left empty at the end.
  function transferred(options, memory) {
    const list = %NewArray();
    if (options === undefined || options === null) return list;
    if (!%IsObject(options)) %ThrowTypeError("The options argument must be either an object or undefined");
    const transfer = options.transfer;
    if (transfer === undefined) return list;
    for (const item of transfer) {
      if (!%Is("ArrayBuffer", item)) %ThrowTypeError("Found invalid object in transferList");
      if (%TableHas(memory, item)) refuse("Transfer list contains duplicate ArrayBuffer");
      cloneBuffer(item, memory);
      %Append(list, item);
    }
    return list;
  }
  %Install(%Global(), {
    structuredClone(value, options = undefined) {
      if (%ArgCount() === 0) %ThrowTypeError("The value argument must be specified");
      const context = { __proto__: null, memory: %MapNew(null), opened: null };
      const transfer = transferred(options, context.memory);
      const root = one(value, context);
      let frame = context.opened;
      while (frame !== null) {
        if (frame.index >= frame.parts.length) {
          frame = frame.outer;
          continue;
        }
        const part = frame.parts[frame.index++];
        let pending = part;
        if (frame.kind === OBJECT || frame.kind === ERROR) {
          frame.key = part;
          // A getter may have deleted what comes after it.
          if (frame.kind === OBJECT && !%HasOwn(frame.source, part)) continue;
          pending = frame.source[part];
        }
        context.opened = null;
        put(frame, one(pending, context));
        const opened = context.opened;
        if (opened !== null) {
          opened.outer = frame;
          frame = opened;
        }
      }
      for (let i = 0; i < transfer.length; i++) %DetachBuffer(transfer[i]);
      return root;
    },
  }, "globalThis");
})();
