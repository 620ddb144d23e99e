// Date. Local time is UTC, so each local method is the same computation as its UTC sibling.
(function () {
  const DatePrototype = %Proto("Date");
  const YEAR = 0, MONTH = 1, DAY = 2, HOUR = 3, MINUTE = 4, SECOND = 5, MS = 6, WEEKDAY = 7;

  function timeOf(date) {
    if (!%Is("Date", date)) %ThrowTypeError("this is not a Date object.");
    return %CellOf(date);
  }
  function field(date, n) { return %DateField(timeOf(date), n); }

  // Converts up to `most` arguments from the field `first` on, and sets them together.
  function set(date, first, most, given) {
    let time = timeOf(date);
    const values = %NewArray();
    const count = given.length < most ? given.length || 1 : most;
    for (let i = 0; i < count; i++) %Append(values, +given[i]);
    if (time !== time) {
      if (first !== YEAR) return NaN;
      time = 0;
    }
    const parts = %NewArray();
    for (let i = YEAR; i <= MS; i++) {
      %Append(parts, i >= first && i < first + count ? values[i - first] : %DateField(time, i));
    }
    const updated = %TimeClip(%MakeDate(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]));
    %SetCellOf(date, updated);
    return updated;
  }

  const Date = %Constructor(function Date(year, month, date, hours, minutes, seconds, ms) {
    if (new.target === undefined) return %DatePrint(%Now(), 0);
    const n = %ArgCount();
    let time;
    if (n === 0) {
      time = %Now();
    } else if (n === 1) {
      if (%Is("Date", year)) {
        time = %CellOf(year);
      } else {
        const primitive = %toPrimitive(year, "default");
        time = typeof primitive === "string" ? %DateParse(primitive) : %TimeClip(+primitive);
      }
    } else {
      time = %TimeClip(fromParts(%Arguments()));
    }
    return %NewCell("Date", %protoFrom(new.target, DatePrototype), time);
  }, DatePrototype);

  function fromParts(given) {
    const parts = %NewArray();
    for (let i = 0; i < 7; i++) %Append(parts, i < given.length ? +given[i] : i === DAY ? 1 : i === YEAR ? NaN : 0);
    return %MakeDate(%MakeFullYear(parts[0]), parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]);
  }

  %Install(Date, {
    now() { return %Now(); },
    parse(string) { return %DateParse(`${string}`); },
    UTC(year, month, date, hours, minutes, seconds, ms) { return %TimeClip(fromParts(%Arguments())); },
  }, "Date");

  %Install(DatePrototype, {
    getDate() { return field(this, DAY); },
    getDay() { return field(this, WEEKDAY); },
    getFullYear() { return field(this, YEAR); },
    getHours() { return field(this, HOUR); },
    getMilliseconds() { return field(this, MS); },
    getMinutes() { return field(this, MINUTE); },
    getMonth() { return field(this, MONTH); },
    getSeconds() { return field(this, SECOND); },
    getTime() { return timeOf(this); },
    getTimezoneOffset() { const t = timeOf(this); return t === t ? 0 : NaN; },
    getUTCDate() { return field(this, DAY); },
    getUTCDay() { return field(this, WEEKDAY); },
    getUTCFullYear() { return field(this, YEAR); },
    getUTCHours() { return field(this, HOUR); },
    getUTCMilliseconds() { return field(this, MS); },
    getUTCMinutes() { return field(this, MINUTE); },
    getUTCMonth() { return field(this, MONTH); },
    getUTCSeconds() { return field(this, SECOND); },
    getYear() { return field(this, YEAR) - 1900; },
    setDate(date) { return set(this, DAY, 1, %Arguments()); },
    setFullYear(year, month, date) { return set(this, YEAR, 3, %Arguments()); },
    setHours(hour, min, sec, ms) { return set(this, HOUR, 4, %Arguments()); },
    setMilliseconds(ms) { return set(this, MS, 1, %Arguments()); },
    setMinutes(min, sec, ms) { return set(this, MINUTE, 3, %Arguments()); },
    setMonth(month, date) { return set(this, MONTH, 2, %Arguments()); },
    setSeconds(sec, ms) { return set(this, SECOND, 2, %Arguments()); },
    setTime(time) {
      timeOf(this);
      const t = %TimeClip(+time);
      %SetCellOf(this, t);
      return t;
    },
    setUTCDate(date) { return set(this, DAY, 1, %Arguments()); },
    setUTCFullYear(year, month, date) { return set(this, YEAR, 3, %Arguments()); },
    setUTCHours(hour, min, sec, ms) { return set(this, HOUR, 4, %Arguments()); },
    setUTCMilliseconds(ms) { return set(this, MS, 1, %Arguments()); },
    setUTCMinutes(min, sec, ms) { return set(this, MINUTE, 3, %Arguments()); },
    setUTCMonth(month, date) { return set(this, MONTH, 2, %Arguments()); },
    setUTCSeconds(sec, ms) { return set(this, SECOND, 2, %Arguments()); },
    toDateString() { return %DatePrint(timeOf(this), 1); },
    toISOString() { return %DatePrint(timeOf(this), 3); },
    toJSON(key) {
      const o = %ToObject(this);
      const t = %toPrimitive(o, "number");
      if (typeof t === "number" && (t !== t || t === Infinity || t === -Infinity)) return null;
      return o.toISOString();
    },
    toString() { return %DatePrint(timeOf(this), 0); },
    toTimeString() { return %DatePrint(timeOf(this), 2); },
    toUTCString() { return %DatePrint(timeOf(this), 4); },
    valueOf() { return timeOf(this); },
    [%Symbol("toPrimitive")](hint) {
      if (!%IsObject(this)) %ThrowTypeError("Date.prototype[Symbol.toPrimitive] called on non-object");
      if (hint !== "string" && hint !== "default" && hint !== "number") %ThrowTypeError("Invalid hint: " + (typeof hint === "symbol" ? "symbol" : hint));
      const first = hint === "number" ? this.valueOf : this.toString;
      if (%IsCallable(first)) { const r = %Call(first, this); if (!%IsObject(r)) return r; }
      const second = hint === "number" ? this.toString : this.valueOf;
      if (%IsCallable(second)) { const r = %Call(second, this); if (!%IsObject(r)) return r; }
      %ThrowTypeError("Cannot convert object to primitive value");
    },
  }, "Date.prototype");
  %ReadOnly(DatePrototype, %Symbol("toPrimitive"));
  %Hidden(DatePrototype, "toGMTString", DatePrototype.toUTCString);
  %Share("timeOf", timeOf);
})();
