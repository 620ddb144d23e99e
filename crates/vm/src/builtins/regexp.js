// RegExp: the protocols step by step, for whatever the natives leave over: objects that are not plain, functions as
// replacements, and conversions.
(function () {
  const prototype = %Proto("RegExp"), iteratorPrototype = %Proto("RegExpStringIterator");
  const MATCH = %Symbol("match"), MATCH_ALL = %Symbol("matchAll"), REPLACE = %Symbol("replace");
  const SEARCH = %Symbol("search"), SPLIT = %Symbol("split"), SPECIES = %Symbol("species");
  const GLOBAL = 2, STICKY = 128;

  // The generation of compiled patterns and the bytes compiled in it.
  %Share("regExpCache", %NewSlots("Branded", null, 0, 0));

  const Constructor = %Constructor(function RegExp(pattern, flags) {
    const like = %isRegExp(pattern);
    let target = new.target;
    if (target === undefined) {
      target = Constructor;
      if (like && flags === undefined && pattern.constructor === Constructor) return pattern;
    }
    let source = pattern, given = flags;
    if (%Is("RegExp", pattern)) {
      source = %Slot(pattern, 0);
      if (flags === undefined) given = %Slot(pattern, 1);
    } else if (like) {
      source = pattern.source;
      if (flags === undefined) given = pattern.flags;
    }
    const proto = %protoFrom(target, prototype);
    source = source === undefined ? "" : `${source}`;
    given = given === undefined ? "" : `${given}`;
    return %NewRegExp(proto, source, given);
  }, prototype);
  %Install(Constructor, {
    get [SPECIES]() { return this; },
    escape(string) { %ThrowTypeError("RegExp.escape requires a string"); },
  }, "RegExp");
  %Share("regExpCreate", (pattern, flags) =>
    %NewRegExp(prototype, pattern === undefined ? "" : `${pattern}`, flags === undefined ? "" : `${flags}`));

  function object(x, name) {
    if (!%IsObject(x)) %ThrowTypeError("RegExp.prototype." + name + " called on a value that is not an object");
    return x;
  }
  function has(flags, letter) { return %StringIncludes(flags, letter); }
  function readsPoints(flags) { return has(flags, "u") || has(flags, "v"); }

  function builtinExec(r, s) {
    let last = %toLength(r.lastIndex);
    const moves = (%RegExpBits(r) & (GLOBAL | STICKY)) !== 0;
    if (!moves) last = 0;
    if (last > s.length) {
      if (moves) r.lastIndex = 0;
      return null;
    }
    const result = %RegExpMatch(r, s, last);
    if (moves) r.lastIndex = result === null ? 0 : result.index + result[0].length;
    return result;
  }
  // RegExpExec.
  function run(r, s) {
    const exec = r.exec;
    if (%IsCallable(exec)) {
      const result = %Call(exec, r, s);
      if (result !== null && !%IsObject(result)) %ThrowTypeError("object null is not a function");
      return result;
    }
    if (!%Is("RegExp", r)) %ThrowTypeError("RegExp.prototype.exec called on incompatible receiver");
    return builtinExec(r, s);
  }
  function skipEmpty(r, s, points) { r.lastIndex = %RegExpAdvance(s, %toLength(r.lastIndex), points); }

  // GetSubstitution with named groups, whose values are read as the template asks for them.
  function substitute(template, s, matched, position, captures, named) {
    let result = "", done = 0;
    for (let at = 0; (at = %StringIndexOf(template, "$", at)) >= 0; ) {
      const next = %StringCharAt(template, at + 1);
      if (next === "<") {
        const close = %StringIndexOf(template, ">", at + 2);
        if (close < 0) { at += 1; continue; }
        result += %StringExpand(%StringSubstring(template, done, at), s, matched, position, captures);
        const value = named[%StringSubstring(template, at + 2, close)];
        if (value !== undefined) result += `${value}`;
        at = done = close + 1;
      } else {
        // A dollar sign after a dollar sign begins nothing.
        at += next === "$" ? 2 : 1;
      }
    }
    return result + %StringExpand(%StringSubstring(template, done), s, matched, position, captures);
  }

  // The replacements of a plain object's matches by a function: `found` has the arguments of each call, save the last.
  function replacePlain(r, s, f, found) {
    const stride = %RegExpGroups(r) + 1, list = %NewArray();
    for (let i = 0; i < found.length; i += stride) {
      let by;
      if (stride === 2) {
        by = %Call(f, undefined, found[i], found[i + 1], s);
      } else if (stride === 3) {
        by = %Call(f, undefined, found[i], found[i + 1], found[i + 2], s);
      } else {
        const args = %NewArray();
        for (let n = 0; n < stride; n++) %Append(args, found[i + n]);
        %Append(args, s);
        by = %Apply(f, undefined, args);
      }
      %Append(list, typeof by === "string" ? by : `${by}`);
    }
    return %RegExpAssemble(s, found, stride, list);
  }

  %Install(prototype, {
    exec(string) {
      if (!%Is("RegExp", this)) %ThrowTypeError("RegExp.prototype.exec called on incompatible receiver");
      return builtinExec(this, `${string}`);
    },
    get dotAll() { notRegExp("dotAll"); },
    get flags() {
      const r = object(this, "flags");
      let result = "";
      if (r.hasIndices) result += "d";
      if (r.global) result += "g";
      if (r.ignoreCase) result += "i";
      if (r.multiline) result += "m";
      if (r.dotAll) result += "s";
      if (r.unicode) result += "u";
      if (r.unicodeSets) result += "v";
      if (r.sticky) result += "y";
      return result;
    },
    get global() { notRegExp("global"); },
    get hasIndices() { notRegExp("hasIndices"); },
    get ignoreCase() { notRegExp("ignoreCase"); },
    [MATCH](string) {
      const r = object(this, "@@match"), s = `${string}`;
      const flags = `${r.flags}`;
      if (!has(flags, "g")) return run(r, s);
      const points = readsPoints(flags), list = %NewArray();
      r.lastIndex = 0;
      let empty = true;
      for (let result; (result = run(r, s)) !== null; empty = false) {
        const matched = `${result[0]}`;
        %Append(list, matched);
        if (matched === "") skipEmpty(r, s, points);
      }
      return empty ? null : list;
    },
    [MATCH_ALL](string) {
      const r = object(this, "@@matchAll"), s = `${string}`;
      const constructor = %speciesConstructor(r, Constructor);
      const flags = `${r.flags}`;
      const args = %NewArray();
      %Append(args, r);
      %Append(args, flags);
      const matcher = %Construct(constructor, args, constructor);
      matcher.lastIndex = %toLength(r.lastIndex);
      return %NewSlots("RegExpStringIterator", iteratorPrototype, matcher, s, has(flags, "g"), readsPoints(flags), false);
    },
    get multiline() { notRegExp("multiline"); },
    [REPLACE](string, replacement) {
      const r = object(this, "@@replace"), s = `${string}`;
      const functional = %IsCallable(replacement);
      if (!functional) replacement = `${replacement}`;
      if (functional && %RegExpPlain(r)) {
        const found = %RegExpArguments(r, s);
        if (found !== null) return replacePlain(r, s, replacement, found);
      }
      const flags = `${r.flags}`;
      const all = has(flags, "g"), points = readsPoints(flags);
      if (all) r.lastIndex = 0;
      const results = %NewArray();
      for (let result; (result = run(r, s)) !== null; ) {
        %Append(results, result);
        if (!all) break;
        if (`${result[0]}` === "") skipEmpty(r, s, points);
      }
      let built = "", done = 0;
      for (let i = 0; i < results.length; i++) {
        const result = results[i];
        const count = %lengthOf(result);
        const matched = `${result[0]}`;
        let position = %toIntegerOrInfinity(result.index);
        position = position < 0 ? 0 : position > s.length ? s.length : position;
        const captures = %NewArray();
        for (let n = 1; n < count; n++) {
          const capture = result[n];
          %Append(captures, capture === undefined ? undefined : `${capture}`);
        }
        const named = result.groups;
        let by;
        if (functional) {
          const args = %NewArray();
          %Append(args, matched);
          for (let n = 0; n < captures.length; n++) %Append(args, captures[n]);
          %Append(args, position);
          %Append(args, s);
          if (named !== undefined) %Append(args, named);
          by = `${%Apply(replacement, undefined, args)}`;
        } else if (named === undefined) {
          by = %StringExpand(replacement, s, matched, position, captures);
        } else {
          by = substitute(replacement, s, matched, position, captures, %ToObject(named));
        }
        if (position >= done) {
          built += %StringSubstring(s, done, position) + by;
          done = position + matched.length;
        }
      }
      return done >= s.length ? built : built + %StringSubstring(s, done);
    },
    [SEARCH](string) {
      const r = object(this, "@@search"), s = `${string}`;
      const previous = r.lastIndex;
      if (!%SameValue(previous, 0)) r.lastIndex = 0;
      const result = run(r, s);
      const current = r.lastIndex;
      if (!%SameValue(current, previous)) r.lastIndex = previous;
      return result === null ? -1 : result.index;
    },
    get source() { notRegExp("source"); },
    [SPLIT](string, limit) {
      const r = object(this, "@@split"), s = `${string}`;
      const constructor = %speciesConstructor(r, Constructor);
      const flags = `${r.flags}`;
      const points = readsPoints(flags);
      const args = %NewArray();
      %Append(args, r);
      %Append(args, has(flags, "y") ? flags : flags + "y");
      const splitter = %Construct(constructor, args, constructor);
      const list = %NewArray();
      const most = limit === undefined ? 4294967295 : limit >>> 0;
      if (most === 0) return list;
      const size = s.length;
      if (size === 0) {
        if (run(splitter, s) === null) %Append(list, s);
        return list;
      }
      let p = 0;
      for (let q = 0; q < size; ) {
        splitter.lastIndex = q;
        const result = run(splitter, s);
        if (result === null) { q = %RegExpAdvance(s, q, points); continue; }
        let end = %toLength(splitter.lastIndex);
        if (end > size) end = size;
        if (end === p) { q = %RegExpAdvance(s, q, points); continue; }
        %Append(list, %StringSubstring(s, p, q));
        if (list.length === most) return list;
        p = q = end;
        const count = %lengthOf(result);
        for (let n = 1; n < count; n++) {
          %Append(list, result[n]);
          if (list.length === most) return list;
        }
      }
      %Append(list, %StringSubstring(s, p, size));
      return list;
    },
    get sticky() { notRegExp("sticky"); },
    test(string) { const r = object(this, "test"); return run(r, `${string}`) !== null; },
    toString() { const r = object(this, "toString"); return `/${r.source}/${r.flags}`; },
    get unicode() { notRegExp("unicode"); },
    get unicodeSets() { notRegExp("unicodeSets"); },
  }, "RegExp.prototype");
  function notRegExp(name) { %ThrowTypeError("RegExp.prototype." + name + " getter called on non-RegExp object"); }

  // Fields: matcher, string, global, code points, done.
  %Install(iteratorPrototype, {
    next() {
      if (!%Is("RegExpStringIterator", this)) %ThrowTypeError("next method called on incompatible receiver");
      if (%Slot(this, 4)) return %IterResult(undefined, true);
      const r = %Slot(this, 0), s = %Slot(this, 1);
      // Over unless the match is found and more may come: so is it when an exception leaves.
      %SetSlot(this, 4, true);
      const result = run(r, s);
      if (result === null) return %IterResult(undefined, true);
      if (%Slot(this, 2)) {
        if (`${result[0]}` === "") skipEmpty(r, s, %Slot(this, 3));
        %SetSlot(this, 4, false);
      }
      return %IterResult(result, false);
    },
  }, "RegExpStringIterator.prototype");
  %Tag(iteratorPrototype, "RegExp String Iterator");
})();
