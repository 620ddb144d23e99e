// String: conversions that may run guest code happen here, in the order of the specification; the natives do the work.
(function () {
  const prototype = %Proto("String"), iteratorPrototype = %Proto("StringIterator");
  const ITERATOR = %Symbol("iterator"), MATCH = %Symbol("match"), MATCH_ALL = %Symbol("matchAll");
  const REPLACE = %Symbol("replace"), SEARCH = %Symbol("search"), SPLIT = %Symbol("split");

  const String = %Constructor(function String(value) {
    let s = "";
    if (%ArgCount() > 0) {
      if (new.target === undefined && typeof value === "symbol") return %SymbolText(value);
      s = `${value}`;
    }
    if (new.target === undefined) return s;
    return %NewCell("String", %protoFrom(new.target, prototype), s);
  }, prototype);

  // RequireObjectCoercible and ToString of a receiver.
  function text(x, name) {
    if (x === undefined || x === null) %ThrowTypeError("String.prototype." + name + " called on null or undefined");
    return `${x}`;
  }
  function isRegExp(x) {
    if (!%IsObject(x)) return false;
    const matcher = x[MATCH];
    return matcher !== undefined ? !!matcher : %Is("RegExp", x);
  }
  %Share("isRegExp", isRegExp);
  function notRegExp(x, name) {
    if (isRegExp(x)) %ThrowTypeError("First argument to String.prototype." + name + " must not be a regular expression");
    return `${x}`;
  }
  // The method of an object that a string method hands over to.
  function delegate(x, symbol) { return %IsObject(x) ? %getMethod(x, symbol) : undefined; }
  function coercible(x, name) {
    if (x === undefined || x === null) %ThrowTypeError("String.prototype." + name + " called on null or undefined");
  }

  %Install(String, {
    fromCharCode(code) {
      const codes = %Arguments();
      let s = "";
      for (let i = 0; i < codes.length; i++) s += %StringFromCharCode(+codes[i]);
      return s;
    },
    fromCodePoint(point) {
      const points = %Arguments();
      let s = "";
      for (let i = 0; i < points.length; i++) s += %StringFromCodePoint(+points[i]);
      return s;
    },
    raw(template) {
      const values = %Arguments();
      const raw = %ToObject(%ToObject(template).raw);
      const length = %lengthOf(raw);
      let s = "";
      for (let i = 0; i < length; i++) {
        s += `${raw[i]}`;
        if (i + 1 < length && i + 1 < values.length) s += `${values[i + 1]}`;
      }
      return s;
    },
  }, "String");

  %Install(prototype, {
    at(index) { return %StringAt(text(this, "at"), +index); },
    charAt(pos) { return %StringCharAt(text(this, "charAt"), +pos); },
    charCodeAt(pos) { return %StringCharCodeAt(text(this, "charCodeAt"), +pos); },
    codePointAt(pos) { return %StringCodePointAt(text(this, "codePointAt"), +pos); },
    concat(string) {
      const parts = %Arguments();
      let s = text(this, "concat");
      for (let i = 0; i < parts.length; i++) s += `${parts[i]}`;
      return s;
    },
    endsWith(search, position = undefined) {
      const s = text(this, "endsWith");
      search = notRegExp(search, "endsWith");
      return %StringEndsWith(s, search, position === undefined ? position : +position);
    },
    includes(search, position = undefined) {
      const s = text(this, "includes");
      search = notRegExp(search, "includes");
      return %StringIncludes(s, search, +position);
    },
    indexOf(search, position = undefined) {
      const s = text(this, "indexOf");
      search = `${search}`;
      return %StringIndexOf(s, search, +position);
    },
    isWellFormed() { return %StringIsWellFormed(text(this, "isWellFormed")); },
    lastIndexOf(search, position = undefined) {
      const s = text(this, "lastIndexOf");
      search = `${search}`;
      return %StringLastIndexOf(s, search, +position);
    },
    localeCompare(that, locales = undefined, options = undefined) {
      const s = text(this, "localeCompare");
      that = `${that}`;
      if (locales === undefined && options === undefined) return %StringLocaleCompare(s, that);
      return %compareLocale(s, that, locales, options);
    },
    match(regexp) {
      coercible(this, "match");
      const matcher = delegate(regexp, MATCH);
      if (matcher !== undefined) return %Call(matcher, regexp, this);
      const s = `${this}`;
      const created = %regExpCreate(regexp, undefined);
      return %Call(created[MATCH], created, s);
    },
    matchAll(regexp) {
      coercible(this, "matchAll");
      if (%IsObject(regexp)) {
        if (isRegExp(regexp)) {
          const flags = regexp.flags;
          coercible(flags, "matchAll");
          if (%StringIndexOf(`${flags}`, "g") < 0) %ThrowTypeError("String.prototype.matchAll called with a non-global RegExp argument");
        }
        const matcher = %getMethod(regexp, MATCH_ALL);
        if (matcher !== undefined) return %Call(matcher, regexp, this);
      }
      const s = `${this}`;
      const created = %regExpCreate(regexp, "g");
      return %Call(created[MATCH_ALL], created, s);
    },
    normalize(form = undefined) {
      const s = text(this, "normalize");
      return %StringNormalize(s, form === undefined ? undefined : `${form}`);
    },
    padEnd(maxLength, fill = undefined) {
      const s = text(this, "padEnd");
      maxLength = %toLength(maxLength);
      if (maxLength <= s.length) return s;
      return %StringPadEnd(s, maxLength, fill === undefined ? undefined : `${fill}`);
    },
    padStart(maxLength, fill = undefined) {
      const s = text(this, "padStart");
      maxLength = %toLength(maxLength);
      if (maxLength <= s.length) return s;
      return %StringPadStart(s, maxLength, fill === undefined ? undefined : `${fill}`);
    },
    repeat(count) { const s = text(this, "repeat"); return %StringRepeat(s, +count); },
    replace(search, replacement) {
      coercible(this, "replace");
      const replacer = delegate(search, REPLACE);
      if (replacer !== undefined) return %Call(replacer, search, this, replacement);
      const s = `${this}`;
      search = `${search}`;
      if (!%IsCallable(replacement)) return %StringReplace(s, search, `${replacement}`);
      const at = %StringIndexOf(s, search);
      if (at < 0) return s;
      const by = `${%Call(replacement, undefined, search, at, s)}`;
      return %StringSubstring(s, 0, at) + by + %StringSubstring(s, at + search.length);
    },
    replaceAll(search, replacement) {
      coercible(this, "replaceAll");
      if (%IsObject(search)) {
        if (isRegExp(search)) {
          const flags = search.flags;
          coercible(flags, "replaceAll");
          if (%StringIndexOf(`${flags}`, "g") < 0) %ThrowTypeError("replaceAll must be called with a global RegExp");
        }
        const replacer = %getMethod(search, REPLACE);
        if (replacer !== undefined) return %Call(replacer, search, this, replacement);
      }
      const s = `${this}`;
      search = `${search}`;
      if (!%IsCallable(replacement)) return %StringReplaceAll(s, search, `${replacement}`);
      const step = search.length > 1 ? search.length : 1;
      let result = "", done = 0;
      for (let at = %StringIndexOf(s, search, 0); at >= 0; at = at + step > s.length ? -1 : %StringIndexOf(s, search, at + step)) {
        result += %StringSubstring(s, done, at) + `${%Call(replacement, undefined, search, at, s)}`;
        done = at + search.length;
      }
      return done < s.length ? result + %StringSubstring(s, done) : result;
    },
    search(regexp) {
      coercible(this, "search");
      const searcher = delegate(regexp, SEARCH);
      if (searcher !== undefined) return %Call(searcher, regexp, this);
      const s = `${this}`;
      const created = %regExpCreate(regexp, undefined);
      return %Call(created[SEARCH], created, s);
    },
    slice(start, end) {
      const s = text(this, "slice");
      start = +start;
      return %StringSlice(s, start, end === undefined ? undefined : +end);
    },
    split(separator, limit) {
      coercible(this, "split");
      const splitter = delegate(separator, SPLIT);
      if (splitter !== undefined) return %Call(splitter, separator, this, limit);
      const s = `${this}`;
      if (limit !== undefined) limit = +limit;
      return %StringSplit(s, separator === undefined ? undefined : `${separator}`, limit);
    },
    startsWith(search, position = undefined) {
      const s = text(this, "startsWith");
      search = notRegExp(search, "startsWith");
      return %StringStartsWith(s, search, +position);
    },
    substr(start, length) {
      const s = text(this, "substr");
      start = +start;
      return %StringSubstr(s, start, length === undefined ? undefined : +length);
    },
    substring(start, end) {
      const s = text(this, "substring");
      start = +start;
      return %StringSubstring(s, start, end === undefined ? undefined : +end);
    },
    toLocaleLowerCase() { return %StringToLowerCase(text(this, "toLocaleLowerCase")); },
    toLocaleUpperCase() { return %StringToUpperCase(text(this, "toLocaleUpperCase")); },
    toLowerCase() { return %StringToLowerCase(text(this, "toLowerCase")); },
    toString() { %ThrowTypeError("String.prototype.toString requires that 'this' be a String"); },
    toUpperCase() { return %StringToUpperCase(text(this, "toUpperCase")); },
    toWellFormed() { return %StringToWellFormed(text(this, "toWellFormed")); },
    trim() { return %StringTrim(text(this, "trim")); },
    trimEnd() { return %StringTrimEnd(text(this, "trimEnd")); },
    trimStart() { return %StringTrimStart(text(this, "trimStart")); },
    valueOf() { %ThrowTypeError("String.prototype.valueOf requires that 'this' be a String"); },
    [ITERATOR]() {
      return %NewSlots("StringIterator", iteratorPrototype, text(this, "[Symbol.iterator]"), 0);
    },
  }, "String.prototype");
  %Hidden(prototype, "trimLeft", prototype.trimStart);
  %Hidden(prototype, "trimRight", prototype.trimEnd);

  %Install(iteratorPrototype, {
    next() { %ThrowTypeError("next method called on incompatible receiver"); },
  }, "StringIterator.prototype");
  %Tag(iteratorPrototype, "String Iterator");
})();
