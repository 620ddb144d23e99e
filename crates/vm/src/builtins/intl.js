// Intl for American English in UTC or at a fixed offset. Every locale is accepted and answered in English.
(function () {
  const Intl = {};
  %Hidden(%Global(), "Intl", Intl);
  %Tag(Intl, "Intl");

  // -- reading options ---------------------------------------------------------------------------------------------

  function canonicalLocales(locales) {
    const list = %NewArray();
    if (locales === undefined) return list;
    if (typeof locales === "string") {
      addLocale(list, locales);
      return list;
    }
    const o = %ToObject(locales), n = %lengthOf(o);
    for (let i = 0; i < n; i++) {
      if (!(i in o)) continue;
      const tag = o[i];
      if (typeof tag !== "string" && !%IsObject(tag)) %ThrowTypeError("Incorrect locale information provided");
      addLocale(list, `${tag}`);
    }
    return list;
  }
  function addLocale(list, tag) {
    if (!%IsLocale(tag)) %ThrowRangeError("Incorrect locale information provided");
    for (let i = 0; i < list.length; i++) if (list[i] === tag) return;
    %Append(list, tag);
  }
  function optionsObject(options) { return options === undefined ? %NewObject(null) : %ToObject(options); }
  function read(options, name, allowed, fallback) {
    let v = options[name];
    if (v === undefined) return fallback;
    v = `${v}`;
    if (allowed === undefined) return v;
    for (let i = 0; i < allowed.length; i++) if (allowed[i] === v) return v;
    %ThrowRangeError(`Value ${v} out of range for Intl options property ${name}`);
  }
  function readBoolean(options, name, fallback) {
    const v = options[name];
    return v === undefined ? fallback : !!v;
  }
  function readNumber(options, name, least, most, fallback) { return inRange(options[name], name, least, most, fallback); }
  function inRange(v, name, least, most, fallback) {
    if (v === undefined) return fallback;
    v = +v;
    if (!(v >= least && v <= most)) %ThrowRangeError(`${name} value is out of range.`);
    return %MathFloor(v);
  }
  function isCode(text) {
    if (text.length !== 3) return false;
    for (let i = 0; i < 3; i++) { const c = text[i]; if (!(c >= "a" && c <= "z" || c >= "A" && c <= "Z")) return false; }
    return true;
  }
  function upper(code) {
    let out = "";
    const small = "abcdefghijklmnopqrstuvwxyz", large = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (let i = 0; i < code.length; i++) {
      let c = code[i];
      for (let k = 0; k < 26; k++) if (small[k] === c) c = large[k];
      out += c;
    }
    return out;
  }

  // A formatter is a branded record: its kind and the options it resolved, which no guest can reach.
  function make(kind, newTarget, fallback, resolved) {
    return %NewSlots("Branded", %protoFrom(newTarget, fallback), kind, resolved, undefined);
  }
  function resolvedOf(x, kind) {
    if (!%Is("Branded", x) || %Slot(x, 0) !== kind) %ThrowTypeError(`Method Intl.${kind} called on incompatible receiver`);
    return %Slot(x, 1);
  }
  function copy(resolved) {
    const out = {};
    const keys = %EnumerableKeys(resolved);
    for (let i = 0; i < keys.length; i++) if (resolved[keys[i]] !== undefined) %Define(out, keys[i], resolved[keys[i]]);
    return out;
  }
  function record() { return %NewObject(null); }
  function pairs(flat) {
    const out = %NewArray();
    for (let i = 0; i < flat.length; i += 2) {
      const part = {};
      %Define(part, "type", flat[i]);
      %Define(part, "value", flat[i + 1]);
      %Append(out, part);
    }
    return out;
  }
  function supported(locales) { return canonicalLocales(locales); }

  // -- numbers -----------------------------------------------------------------------------------------------------

  const STYLES = ["decimal", "percent", "currency", "unit"];
  const CURRENCY_DISPLAYS = ["code", "symbol", "narrowSymbol", "name"];
  const SIGNS = ["standard", "accounting"];
  const WIDTHS = ["short", "narrow", "long"];
  const NOTATIONS = ["standard", "scientific", "engineering", "compact"];
  const COMPACT = ["short", "long"];
  const SIGN_DISPLAYS = ["auto", "never", "always", "exceptZero", "negative"];
  const ROUNDINGS = ["ceil", "floor", "expand", "trunc", "halfCeil", "halfFloor", "halfExpand", "halfTrunc", "halfEven"];
  const ZEROS = ["auto", "stripIfInteger"];
  const GROUPINGS = ["min2", "auto", "always"];

  function digitOptions(r, options, least, most, notation) {
    const minInteger = readNumber(options, "minimumIntegerDigits", 1, 21, 1);
    const minFraction = options.minimumFractionDigits, maxFraction = options.maximumFractionDigits;
    const minSignificant = options.minimumSignificantDigits, maxSignificant = options.maximumSignificantDigits;
    r.minimumIntegerDigits = minInteger;
    r.roundingMode = read(options, "roundingMode", ROUNDINGS, "halfExpand");
    r.trailingZeroDisplay = read(options, "trailingZeroDisplay", ZEROS, "auto");
    if (minSignificant !== undefined || maxSignificant !== undefined) {
      r.minimumSignificantDigits = inRange(minSignificant, "minimumSignificantDigits", 1, 21, 1);
      r.maximumSignificantDigits = inRange(maxSignificant, "maximumSignificantDigits", r.minimumSignificantDigits, 21, 21);
      r.precision = "significant";
      return;
    }
    let lower = inRange(minFraction, "minimumFractionDigits", 0, 100, undefined);
    let higher = inRange(maxFraction, "maximumFractionDigits", 0, 100, undefined);
    if (lower === undefined && higher === undefined && notation === "compact") {
      r.minimumFractionDigits = 0;
      r.maximumFractionDigits = 0;
      r.precision = "compact";
      return;
    }
    if (lower === undefined && higher === undefined) {
      lower = least;
      higher = most;
    } else if (lower === undefined) {
      lower = least < higher ? least : higher;
    } else if (higher === undefined) {
      higher = most > lower ? most : lower;
    } else if (lower > higher) {
      %ThrowRangeError("maximumFractionDigits value is out of range.");
    }
    r.minimumFractionDigits = lower;
    r.maximumFractionDigits = higher;
    r.precision = "fraction";
  }

  function resolveNumber(locales, options) {
    canonicalLocales(locales);
    options = optionsObject(options);
    const r = record();
    r.locale = "en-US";
    r.numberingSystem = "latn";
    r.style = read(options, "style", STYLES, "decimal");
    const currency = read(options, "currency", undefined, undefined);
    if (currency !== undefined && !isCode(currency)) %ThrowRangeError(`Invalid currency code : ${currency}`);
    if (r.style === "currency" && currency === undefined) %ThrowTypeError("Currency code is required with currency style.");
    const display = read(options, "currencyDisplay", CURRENCY_DISPLAYS, "symbol");
    const sign = read(options, "currencySign", SIGNS, "standard");
    const unit = read(options, "unit", undefined, undefined);
    if (unit !== undefined && !%IsKnownUnit(unit)) %ThrowRangeError(`Invalid unit argument for Intl.NumberFormat() '${unit}'`);
    if (r.style === "unit" && unit === undefined) %ThrowTypeError("Unit is required with unit style.");
    const unitDisplay = read(options, "unitDisplay", WIDTHS, "short");
    if (r.style === "currency") {
      r.currency = upper(currency);
      r.currencyDisplay = display;
      r.currencySign = sign;
    } else if (r.style === "unit") {
      r.unit = unit;
      r.unitDisplay = unitDisplay;
    }
    const notation = read(options, "notation", NOTATIONS, "standard");
    const digits = r.style === "currency" && notation === "standard" ? %CurrencyDigits(r.currency) : 0;
    digitOptions(r, options, digits, r.style === "currency" ? digits : r.style === "percent" ? 0 : 3, notation);
    const compact = read(options, "compactDisplay", COMPACT, "short");
    let grouping = options.useGrouping;
    if (grouping === undefined) grouping = notation === "compact" ? "min2" : "auto";
    else if (grouping === true) grouping = "always";
    else if (grouping === false || !grouping) grouping = false;
    else {
      grouping = `${grouping}`;
      if (grouping === "true" || grouping === "false") grouping = "auto";
      grouping = read({ __proto__: null, useGrouping: grouping }, "useGrouping", GROUPINGS, "auto");
    }
    r.useGrouping = grouping;
    r.notation = notation;
    if (notation === "compact") r.compactDisplay = compact;
    r.signDisplay = read(options, "signDisplay", SIGN_DISPLAYS, "auto");
    return r;
  }
  function formatNumber(r, asParts, x) {
    x = %toNumeric(x);
    const significant = r.precision === "significant";
    return %FormatNumber(asParts, x, r.style, r.style === "unit" ? r.unit : r.currency,
      r.style === "unit" ? r.unitDisplay : r.currencyDisplay, r.currencySign, r.notation, r.compactDisplay,
      r.minimumIntegerDigits, r.precision, significant ? r.minimumSignificantDigits : r.minimumFractionDigits,
      significant ? r.maximumSignificantDigits : r.maximumFractionDigits, r.useGrouping === false ? "never" : r.useGrouping,
      r.signDisplay, r.roundingMode, r.trailingZeroDisplay);
  }
  const NumberFormatPrototype = %Proto("IntlNumberFormat");
  const NumberFormat = %Class(function NumberFormat(locales, options) {
    const r = resolveNumber(locales, options);
    return make("NumberFormat", new.target === undefined ? NumberFormat : new.target, NumberFormatPrototype, r);
  }, NumberFormatPrototype);
  %Hidden(Intl, "NumberFormat", NumberFormat);
  %Tag(NumberFormatPrototype, "Intl.NumberFormat");
  %Install(NumberFormat, { supportedLocalesOf(locales) { return supported(locales); } }, "Intl.NumberFormat");
  %Install(NumberFormatPrototype, {
    get format() {
      const r = resolvedOf(this, "NumberFormat");
      let bound = %Slot(this, 2);
      if (bound === undefined) {
        bound = (x) => formatNumber(r, false, x);
        %SetSlot(this, 2, bound);
      }
      return bound;
    },
    formatToParts(x) { return pairs(formatNumber(resolvedOf(this, "NumberFormat"), true, x)); },
    resolvedOptions() { const out = copy(resolvedOf(this, "NumberFormat")); delete out.precision; return out; },
  }, "Intl.NumberFormat.prototype");
  %Share("numberToLocale", (x, locales, options) => formatNumber(resolveNumber(locales, options), false, x));

  // -- plurals -----------------------------------------------------------------------------------------------------

  const PluralRulesPrototype = %Proto("IntlPluralRules");
  const PluralRules = %Class(function PluralRules(locales, options) {
    if (new.target === undefined) %ThrowTypeError("Constructor Intl.PluralRules requires 'new'");
    canonicalLocales(locales);
    options = optionsObject(options);
    const r = record();
    r.locale = "en-US";
    r.type = read(options, "type", ["cardinal", "ordinal"], "cardinal");
    r.style = "decimal";
    r.notation = "standard";
    r.useGrouping = false;
    r.signDisplay = "auto";
    digitOptions(r, options, 0, 3, "standard");
    return make("PluralRules", new.target, PluralRulesPrototype, r);
  }, PluralRulesPrototype);
  %Hidden(Intl, "PluralRules", PluralRules);
  %Tag(PluralRulesPrototype, "Intl.PluralRules");
  %Install(PluralRules, { supportedLocalesOf(locales) { return supported(locales); } }, "Intl.PluralRules");
  %Install(PluralRulesPrototype, {
    select(n) {
      const r = resolvedOf(this, "PluralRules");
      return %SelectPlural(formatNumber(r, false, +n), r.type);
    },
    resolvedOptions() {
      const r = resolvedOf(this, "PluralRules"), out = copy(r);
      delete out.precision; delete out.style; delete out.notation; delete out.useGrouping; delete out.signDisplay;
      %Define(out, "pluralCategories", r.type === "ordinal" ? ["few", "one", "two", "other"] : ["one", "other"]);
      return out;
    },
  }, "Intl.PluralRules.prototype");

  // -- dates -------------------------------------------------------------------------------------------------------

  const NUMERIC = ["numeric", "2-digit"];
  const MONTHS = ["numeric", "2-digit", "long", "short", "narrow"];
  const LENGTHS = ["full", "long", "medium", "short"];
  const ZONE_NAMES = ["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"];
  const UTC = ["UTC", "utc", "GMT", "gmt", "Etc/UTC", "Etc/GMT", "Etc/UCT", "Zulu", "Universal", "UCT"];

  function timeZone(r, zone) {
    if (zone === undefined) { r.timeZone = "UTC"; return; }
    zone = `${zone}`;
    for (let i = 0; i < UTC.length; i++) if (UTC[i] === zone) { r.timeZone = "UTC"; return; }
    const sign = zone[0];
    if (sign === "+" || sign === "-") {
      let digits = "";
      for (let i = 1; i < zone.length; i++) if (zone[i] !== ":" || i !== 3) digits += zone[i];
      let ok = digits.length === 2 || digits.length === 4;
      for (let i = 0; i < digits.length; i++) if (!(digits[i] >= "0" && digits[i] <= "9")) ok = false;
      if (ok) {
        const hours = +(digits[0] + digits[1]), minutes = digits.length === 4 ? +(digits[2] + digits[3]) : 0;
        if (hours < 24 && minutes < 60) {
          r.offset = (sign === "-" ? -1 : 1) * (hours * 60 + minutes);
          const two = (n) => n < 10 ? `0${n}` : `${n}`;
          r.timeZone = r.offset === 0 ? "+00:00" : `${sign}${two(hours)}:${two(minutes)}`;
          return;
        }
      }
    }
    %ThrowRangeError(`Invalid time zone specified: ${zone} (only UTC and offsets such as +05:30 are known)`);
  }

  // `required` and `defaults` are "date", "time" or "any"/"all", as the language's CreateDateTimeFormat has them.
  function resolveDate(locales, options, required, defaults) {
    canonicalLocales(locales);
    options = optionsObject(options);
    const r = record();
    r.locale = "en-US";
    r.calendar = "gregory";
    r.numberingSystem = "latn";
    let hour12 = options.hour12;
    if (hour12 !== undefined) hour12 = !!hour12;
    let cycle = read(options, "hourCycle", ["h11", "h12", "h23", "h24"], undefined);
    if (hour12 !== undefined) cycle = hour12 ? "h12" : "h24"; // as V8 has it for en-US
    timeZone(r, options.timeZone);
    const weekday = read(options, "weekday", WIDTHS, undefined);
    const era = read(options, "era", WIDTHS, undefined);
    let year = read(options, "year", NUMERIC, undefined);
    let month = read(options, "month", MONTHS, undefined);
    let day = read(options, "day", NUMERIC, undefined);
    const dayPeriod = read(options, "dayPeriod", WIDTHS, undefined);
    let hour = read(options, "hour", NUMERIC, undefined);
    let minute = read(options, "minute", NUMERIC, undefined);
    let second = read(options, "second", NUMERIC, undefined);
    const fraction = readNumber(options, "fractionalSecondDigits", 1, 3, undefined);
    const zoneName = read(options, "timeZoneName", ZONE_NAMES, undefined);
    const dateStyle = read(options, "dateStyle", LENGTHS, undefined);
    const timeStyle = read(options, "timeStyle", LENGTHS, undefined);
    if (dateStyle !== undefined || timeStyle !== undefined) {
      const explicit = weekday !== undefined ? "weekday" : era !== undefined ? "era" : year !== undefined ? "year"
        : month !== undefined ? "month" : day !== undefined ? "day" : dayPeriod !== undefined ? "dayPeriod"
        : hour !== undefined ? "hour" : minute !== undefined ? "minute" : second !== undefined ? "second"
        : fraction !== undefined ? "fractionalSecondDigits" : zoneName !== undefined ? "timeZoneName" : undefined;
      if (explicit !== undefined) %ThrowTypeError(`Can't set option ${explicit} when ${dateStyle !== undefined ? "dateStyle" : "timeStyle"} is used`);
      if (required === "date" && timeStyle !== undefined) %ThrowTypeError("Invalid option : timeStyle");
      if (required === "time" && dateStyle !== undefined) %ThrowTypeError("Invalid option : dateStyle");
      if (timeStyle !== undefined) { r.hourCycle = cycle ?? "h12"; r.hour12 = r.hourCycle === "h12" || r.hourCycle === "h11"; }
      r.dateStyle = dateStyle;
      r.timeStyle = timeStyle;
      return r;
    }
    const hasDate = weekday !== undefined || year !== undefined || month !== undefined || day !== undefined;
    const hasTime = dayPeriod !== undefined || hour !== undefined || minute !== undefined || second !== undefined || fraction !== undefined;
    const needed = required === "date" ? !hasDate : required === "time" ? !hasTime : !hasDate && !hasTime;
    if (needed && defaults !== "time") year = month = day = "numeric";
    if (needed && defaults !== "date") hour = minute = second = "numeric";
    if (hour !== undefined) { r.hourCycle = cycle ?? "h12"; r.hour12 = r.hourCycle === "h12" || r.hourCycle === "h11"; }
    r.weekday = weekday; r.era = era; r.year = year; r.month = month; r.day = day; r.dayPeriod = dayPeriod;
    r.hour = hour; r.minute = hour !== undefined && minute !== undefined ? "2-digit" : minute;
    r.second = minute !== undefined && second !== undefined ? "2-digit" : second;
    r.fractionalSecondDigits = fraction;
    r.timeZoneName = zoneName;
    return r;
  }
  function formatDate(r, asParts, time) {
    return %FormatDate(asParts, time, r.weekday, r.era, r.year, r.month, r.day, r.dayPeriod, r.hour, r.minute, r.second,
      r.fractionalSecondDigits, r.timeZoneName, r.hourCycle, r.offset, r.dateStyle, r.timeStyle);
  }
  function timeFrom(date) {
    const t = %TimeClip(date === undefined ? %Now() : +date);
    if (t !== t) %ThrowRangeError("Invalid time value");
    return t;
  }
  const DateTimeFormatPrototype = %Proto("IntlDateTimeFormat");
  const DateTimeFormat = %Class(function DateTimeFormat(locales, options) {
    const r = resolveDate(locales, options, "any", "date");
    return make("DateTimeFormat", new.target === undefined ? DateTimeFormat : new.target, DateTimeFormatPrototype, r);
  }, DateTimeFormatPrototype);
  %Hidden(Intl, "DateTimeFormat", DateTimeFormat);
  %Tag(DateTimeFormatPrototype, "Intl.DateTimeFormat");
  %Install(DateTimeFormat, { supportedLocalesOf(locales) { return supported(locales); } }, "Intl.DateTimeFormat");
  %Install(DateTimeFormatPrototype, {
    get format() {
      const r = resolvedOf(this, "DateTimeFormat");
      let bound = %Slot(this, 2);
      if (bound === undefined) {
        bound = (date) => formatDate(r, false, timeFrom(date));
        %SetSlot(this, 2, bound);
      }
      return bound;
    },
    formatToParts(date) { return pairs(formatDate(resolvedOf(this, "DateTimeFormat"), true, timeFrom(date))); },
    resolvedOptions() { const out = copy(resolvedOf(this, "DateTimeFormat")); delete out.offset; return out; },
  }, "Intl.DateTimeFormat.prototype");
  function dateToLocale(date, locales, options, required, defaults) {
    const t = %timeOf(date);
    if (t !== t) return "Invalid Date";
    return formatDate(resolveDate(locales, options, required, defaults), false, t);
  }
  %Install(%Proto("Date"), {
    toLocaleDateString() { const a = %Arguments(); return dateToLocale(this, a[0], a[1], "date", "date"); },
    toLocaleString() { const a = %Arguments(); return dateToLocale(this, a[0], a[1], "any", "all"); },
    toLocaleTimeString() { const a = %Arguments(); return dateToLocale(this, a[0], a[1], "time", "time"); },
  }, "Date.prototype");

  // -- the order of texts ------------------------------------------------------------------------------------------

  function resolveCollator(locales, options) {
    canonicalLocales(locales);
    options = optionsObject(options);
    const r = record();
    r.locale = "en-US";
    r.usage = read(options, "usage", ["sort", "search"], "sort");
    const numeric = readBoolean(options, "numeric", false);
    const caseFirst = read(options, "caseFirst", ["upper", "lower", "false"], "false");
    r.sensitivity = read(options, "sensitivity", ["base", "accent", "case", "variant"], "variant");
    r.ignorePunctuation = readBoolean(options, "ignorePunctuation", false);
    r.collation = "default";
    r.numeric = numeric;
    r.caseFirst = caseFirst;
    return r;
  }
  function compare(r, x, y) {
    return %CompareText(`${x}`, `${y}`, r.sensitivity, r.ignorePunctuation, r.numeric, r.caseFirst);
  }
  const CollatorPrototype = %Proto("IntlCollator");
  const Collator = %Class(function Collator(locales, options) {
    const r = resolveCollator(locales, options);
    return make("Collator", new.target === undefined ? Collator : new.target, CollatorPrototype, r);
  }, CollatorPrototype);
  %Hidden(Intl, "Collator", Collator);
  %Tag(CollatorPrototype, "Intl.Collator");
  %Install(Collator, { supportedLocalesOf(locales) { return supported(locales); } }, "Intl.Collator");
  %Install(CollatorPrototype, {
    get compare() {
      const r = resolvedOf(this, "Collator");
      let bound = %Slot(this, 2);
      if (bound === undefined) {
        bound = (x, y) => compare(r, x, y);
        %SetSlot(this, 2, bound);
      }
      return bound;
    },
    resolvedOptions() { return copy(resolvedOf(this, "Collator")); },
  }, "Intl.Collator.prototype");
  %Share("compareLocale", (x, y, locales, options) => compare(resolveCollator(locales, options), x, y));

  // -- lists and relative times ------------------------------------------------------------------------------------

  function stringsOf(iterable) {
    const list = %NewArray();
    if (iterable === undefined) return list;
    for (const item of iterable) {
      if (typeof item !== "string") %ThrowTypeError("Iterable yielded a value which is not a string");
      %Append(list, item);
    }
    return list;
  }
  const ListFormatPrototype = %Proto("IntlListFormat");
  const ListFormat = %Class(function ListFormat(locales, options) {
    if (new.target === undefined) %ThrowTypeError("Constructor Intl.ListFormat requires 'new'");
    canonicalLocales(locales);
    options = optionsObject(options);
    const r = record();
    r.locale = "en-US";
    r.type = read(options, "type", ["conjunction", "disjunction", "unit"], "conjunction");
    r.style = read(options, "style", WIDTHS, "long");
    return make("ListFormat", new.target, ListFormatPrototype, r);
  }, ListFormatPrototype);
  %Hidden(Intl, "ListFormat", ListFormat);
  %Tag(ListFormatPrototype, "Intl.ListFormat");
  %Install(ListFormat, { supportedLocalesOf(locales) { return supported(locales); } }, "Intl.ListFormat");
  %Install(ListFormatPrototype, {
    format(list) { const r = resolvedOf(this, "ListFormat"); return %FormatList(false, stringsOf(list), r.type, r.style); },
    formatToParts(list) { const r = resolvedOf(this, "ListFormat"); return pairs(%FormatList(true, stringsOf(list), r.type, r.style)); },
    resolvedOptions() { return copy(resolvedOf(this, "ListFormat")); },
  }, "Intl.ListFormat.prototype");

  const RelativeTimeFormatPrototype = %Proto("IntlRelativeTimeFormat");
  const RelativeTimeFormat = %Class(function RelativeTimeFormat(locales, options) {
    if (new.target === undefined) %ThrowTypeError("Constructor Intl.RelativeTimeFormat requires 'new'");
    canonicalLocales(locales);
    options = optionsObject(options);
    const r = record();
    r.locale = "en-US";
    r.style = read(options, "style", WIDTHS, "long");
    r.numeric = read(options, "numeric", ["always", "auto"], "always");
    r.numberingSystem = "latn";
    return make("RelativeTimeFormat", new.target, RelativeTimeFormatPrototype, r);
  }, RelativeTimeFormatPrototype);
  %Hidden(Intl, "RelativeTimeFormat", RelativeTimeFormat);
  %Tag(RelativeTimeFormatPrototype, "Intl.RelativeTimeFormat");
  %Install(RelativeTimeFormat, { supportedLocalesOf(locales) { return supported(locales); } }, "Intl.RelativeTimeFormat");
  %Install(RelativeTimeFormatPrototype, {
    format(value, unit) {
      const r = resolvedOf(this, "RelativeTimeFormat");
      return %FormatRelative(false, +value, `${unit}`, r.style, r.numeric);
    },
    formatToParts(value, unit) {
      const r = resolvedOf(this, "RelativeTimeFormat");
      return pairs(%FormatRelative(true, +value, `${unit}`, r.style, r.numeric));
    },
    resolvedOptions() { return copy(resolvedOf(this, "RelativeTimeFormat")); },
  }, "Intl.RelativeTimeFormat.prototype");

  %Install(Intl, {
    getCanonicalLocales(locales) { return canonicalLocales(locales); },
  }, "Intl");
})();
