// JSON: what runs guest code. Both directions keep their own stack of open containers, so that deep data needs no deep calls.
(function () {
  const JSON = {};
  %Hidden(%Global(), "JSON", JSON);
  %Tag(JSON, "JSON");
  function openRevived(holder, name) {
    const value = holder[name];
    let keys = null, length = 0;
    if (%IsObject(value)) {
      if (%IsArray(value)) length = %lengthOf(value);
      else { keys = %EnumerableOwn(value, 0); length = keys.length; }
    }
    return { __proto__: null, holder, name, value, keys, length, index: 0, outer: null };
  }
  // InternalizeJSONProperty.
  function revive(holder, name, reviver) {
    let frame = openRevived(holder, name);
    for (;;) {
      if (frame.index < frame.length) {
        const key = frame.keys === null ? `${frame.index}` : frame.keys[frame.index];
        frame.index++;
        const inner = openRevived(frame.value, key);
        inner.outer = frame;
        frame = inner;
        continue;
      }
      const result = %Call(reviver, frame.holder, frame.name, frame.value), outer = frame.outer;
      if (outer === null) return result;
      if (result === undefined) %DeleteOwn(frame.holder, frame.name);
      else %DefineOwn(frame.holder, frame.name, { __proto__: null, value: result, writable: true, enumerable: true, configurable: true });
      frame = outer;
    }
  }
  // The error of a cycle, in V8's words: where it starts, the first two steps, the last one, and what closes it.
  function circular(frame, value, key) {
    const steps = %NewArray();
    for (let at = frame; at.value !== value; at = at.outer) %Append(steps, at);
    let path = "";
    const count = steps.length;
    for (let i = count - 1; i >= 0; i--) {
      if (i < count - 2 && i > 0) {
        if (i === 1) path += "\n    |     ...";
        continue;
      }
      path += "\n    |     " + member(steps[i].outer, steps[i].key) + " -> object with constructor '" + %ConstructorName(steps[i].value) + "'";
    }
    %ThrowTypeError("Converting circular structure to JSON\n    --> starting at object with constructor '" + %ConstructorName(value) + "'" + path + "\n    --- " + member(frame, key) + " closes the circle");
  }
  function member(frame, key) { return frame.keys === null ? "index " + key : "property '" + key + "'"; }
  // The list that a replacer array stands for.
  function propertyList(replacer) {
    const list = %NewArray(), seen = %SetNew(null), length = %lengthOf(replacer);
    for (let k = 0; k < length; k++) {
      const v = replacer[k];
      let item;
      if (typeof v === "string") item = v;
      else if (typeof v === "number" || %Is("String", v) || %Is("Number", v)) item = `${v}`;
      if (item !== undefined && !%TableHas(seen, item)) {
        %SetAdd(seen, item);
        %Append(list, item);
      }
    }
    return list;
  }
  function serialize(wrapper, replace, list, gap) {
    const colon = gap === "" ? ":" : ": ", inside = %SetNew(null);
    let out = "", holder = wrapper, key = "", frame = null;
    for (;;) {
      let value = holder[key], text, opened = false;
      if (%IsObject(value) || typeof value === "bigint") {
        const toJSON = value.toJSON;
        if (%IsCallable(toJSON)) value = %Call(toJSON, value, `${key}`);
      }
      if (replace !== undefined) value = %Call(replace, holder, `${key}`, value);
      if (%IsObject(value)) {
        if (%Is("Number", value)) value = +value;
        else if (%Is("String", value)) value = `${value}`;
        else if (%Is("Boolean", value) || %Is("BigInt", value)) value = %CellOf(value);
      }
      switch (typeof value) {
        case "string": text = %JSONQuote(value); break;
        case "number": text = value - value === 0 ? `${value}` : "null"; break;
        case "boolean": text = value ? "true" : "false"; break;
        case "bigint": %ThrowTypeError("Do not know how to serialize a BigInt"); break;
        case "object":
          if (value === null) text = "null";
          else opened = true;
      }
      if (opened && %TableHas(inside, value)) circular(frame, value, key);
      if (frame === null) {
        if (!opened) return text;
      } else if (text !== undefined || opened || frame.keys === null) {
        if (frame.some) out += ",";
        frame.some = true;
        if (gap !== "") out += "\n" + frame.indent;
        if (frame.keys !== null) out += %JSONQuote(key) + colon;
        if (!opened) out += text === undefined ? "null" : text;
      }
      if (opened) {
        %SetAdd(inside, value);
        const keys = %IsArray(value) ? null : list !== undefined ? list : %EnumerableOwn(value, 0);
        const length = keys === null ? %lengthOf(value) : keys.length;
        const indent = gap === "" ? "" : (frame === null ? "" : frame.indent) + gap;
        frame = { __proto__: null, value, key, keys, length, index: 0, some: false, indent, outer: frame };
        out += keys === null ? "[" : "{";
      }
      while (frame.index >= frame.length) {
        const outer = frame.outer;
        if (frame.some && gap !== "") out += "\n" + (outer === null ? "" : outer.indent);
        out += frame.keys === null ? "]" : "}";
        %TableDelete(inside, frame.value);
        if (outer === null) return out;
        frame = outer;
      }
      holder = frame.value;
      key = frame.keys === null ? frame.index : frame.keys[frame.index];
      frame.index++;
    }
  }
  %Install(JSON, {
    parse(text, reviver) {
      const value = %JSONParse(`${text}`);
      return %IsCallable(reviver) ? revive({ "": value }, "", reviver) : value;
    },
    stringify(value, replacer, space) {
      let replace, list;
      if (%IsCallable(replacer)) replace = replacer;
      else if (%IsObject(replacer) && %IsArray(replacer)) list = propertyList(replacer);
      if (%Is("Number", space)) space = +space;
      else if (%Is("String", space)) space = `${space}`;
      return serialize({ "": value }, replace, list, %JSONGap(space));
    },
  }, "JSON");
})();
