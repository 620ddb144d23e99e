// Records what node answers, one table per area, for the tests beside this folder.
//
//   node record.mjs            rewrites every table in this folder (node 20, ICU 78, TZ=UTC)
//   node record.mjs numbers    rewrites one
//
// A line is: function, arguments, result, separated by tabs. Strings are spelled with \uXXXX for every unit outside
// printable ASCII and for the backslash; numbers as JavaScript prints them, with -0 kept; an exception as !Name.
import { writeFileSync } from "node:fs";
process.env.TZ = "UTC";

const spell = (value) => {
  if (Object.is(value, -0)) return "-0";
  if (typeof value !== "string") return String(value);
  return value.replace(/[^\x20-\x5b\x5d-\x7e]/g, (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0"));
};
export const attempt = (work) => {
  try { return work(); } catch (error) { return "!" + error.name; }
};
let lines = [];
const row = (name, args, work) => lines.push([name, ...args, attempt(work)].map(spell).join("\t"));

// A small generator, so that the tables are the same every time.
let seed = 1n;
const random = () => Number((seed = (seed * 6364136223846793005n + 1442695040888963407n) & ((1n << 64n) - 1n)) >> 32n);
const pick = (list) => list[random() % list.length];
const view = new DataView(new ArrayBuffer(8));
const double = () => {
  view.setUint32(0, random()); view.setUint32(4, random());
  const value = view.getFloat64(0);
  return Number.isFinite(value) ? value : 0.1;
};

const tables = {
  numbers() {
    const edges = [0, -0, 1, -1, 0.1, 0.5, 1.5, 2.5, -2.5, 0.000001, 1e-7, 123.456, 1e21, 1e20, 1e22, 123456789012345680000,
      5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 9007199254740993, 4294967296.5, 1 / 3, 255, 0.045, 1.005, 1.45,
      10.235, 1e-10, 999.9999, 0.00001, 99.99, 1000000000000000128, 25, 35, 0.15, 8.5, 12345, 3.5e15, 4503599627370497.5, 1.25e-5];
    for (const x of [...edges, ...Array.from({ length: 60 }, double)]) {
      row("toString", [x], () => String(x));
      for (const radix of [2, 3, 7, 16, 36]) row("radix", [x, radix], () => x.toString(radix));
      for (const n of [0, 2, 20]) row("toFixed", [x, n], () => x.toFixed(n));
      for (const n of [1, 3, 17]) row("toPrecision", [x, n], () => x.toPrecision(n));
      for (const n of [0, 2, 30]) row("toExponential", [x, n], () => x.toExponential(n));
      row("toExponential", [x, "-"], () => x.toExponential());
      row("toInt32", [x], () => x | 0);
      for (const name of ["round", "fround", "sign", "trunc", "clz32"]) row(name, [x], () => Math[name](x));
    }
    for (let i = 0; i < 40; i++) {
      const x = (random() % 100000) / pick([2, 4, 8, 16, 32, 64, 10, 100]), n = random() % 6;
      row("toFixed", [x, n], () => x.toFixed(n));
      row("toPrecision", [x, n + 1], () => x.toPrecision(n + 1));
      const radix = 2 + random() % 35;
      row("radix", [x, radix], () => x.toString(radix));
    }
    for (const x of [5e-324, 1e-100, 123.456, 1e20, 2 ** -101, 0.3])
      for (const n of [99, 100, 101]) for (const name of ["toFixed", "toPrecision", "toExponential"]) row(name, [x, n], () => x[name](n));
    const texts = ["", " ", "12", "-12.5e3", "0x1f", "0X1F", "0b101", "0o17", "1_000", "Infinity", "-Infinity", "+Infinity", "infinity", "1e",
      "1e+", "1e400", "-1e-400", ".5", "5.", ".", "+.5e-2", "0x", "0xg", "12px", "  42  ", "\u00a07\ufeff", "\u180e1", "08", "1n", "--1", "+-1",
      "9007199254740993", "0.1e1.5", "1e1000000000000", "123456789012345678901234567890", "0x10000000000000081", "\u0661", "-0", "-", "0b", "0b12", "1\u0000",
      "2.2250738585072011e-308", "1.7976931348623159e308", "0x1p3", "NaN", "179769313486231580793e289"];
    for (const s of texts) {
      row("Number", [s], () => Number(s));
      row("parseFloat", [s], () => parseFloat(s));
      for (const radix of [0, 2, 10, 16, 36, 1, 37, -10]) row("parseInt", [s, radix], () => parseInt(s, radix));
    }
    const longs = ["zzzzzzzzzzzzzzzzzzzzzzzz", "101010101010101010101010101010101010101010101010101010101010101011", "7777777777777777777777777", "ffffffffffffffffffff", "-9999999999999999999999"];
    for (const s of longs) for (let radix = 2; radix <= 36; radix++) row("parseInt", [s, radix], () => parseInt(s, radix));
    const powers = [0, -0, 1, -1, 2, -2, 0.5, Infinity, -Infinity, NaN, 3, -3, 1e300, 1 / 3];
    for (const a of powers) for (const b of powers) {
      row("pow", [a, b], () => a ** b);
      row("rem", [a, b], () => a % b);
      row("max", [a, b], () => Math.max(a, b));
      row("min", [a, b], () => Math.min(a, b));
      row("hypot", [a, b], () => Math.hypot(a, b));
    }
  },
  bigints() {
    const values = [0n, 1n, -1n, 2n, -2n, 7n, -7n, 255n, -256n, 2n ** 31n, -(2n ** 31n), 2n ** 53n, 2n ** 53n + 1n, -(2n ** 53n) - 1n, 2n ** 63n, 2n ** 64n - 1n,
      -(2n ** 64n), 2n ** 64n + 1n, 10n ** 30n, -(10n ** 30n) + 7n, 3n ** 100n, 2n ** 1023n, 2n ** 1024n - 2n ** 970n, 2n ** 1024n - 2n ** 970n - 1n, -(2n ** 1024n)];
    const small = values.slice(0, 21);
    for (const a of values) {
      for (const radix of [2, 10, 16, 36]) row("toString", [a, radix], () => a.toString(radix));
      row("Number", [a], () => Number(a));
      for (const x of [0, -0.5, 0.5, 1, 9007199254740992, 9007199254740994, -9007199254740992.0, 1.8446744073709552e19, 1e30, 1.7976931348623157e308, Infinity, -Infinity, NaN])
        row("compare", [a, x], () => (a < x ? "<" : a > x ? ">" : a == x ? "=" : "?"));
      if (!small.includes(a)) continue;
      for (const bits of [0, 1, 2, 8, 31, 32, 53, 64, 65, 128]) {
        row("asIntN", [bits, a], () => BigInt.asIntN(bits, a));
        row("asUintN", [bits, a], () => BigInt.asUintN(bits, a));
      }
      for (const b of [-65n, -64n, -1n, 0n, 1n, 63n, 64n, 65n, 200n]) {
        row("shl", [a, b], () => a << b);
        row("shr", [a, b], () => a >> b);
      }
    }
    for (const a of small) for (const b of small) {
      row("add", [a, b], () => a + b);
      row("sub", [a, b], () => a - b);
      row("mul", [a, b], () => a * b);
      row("div", [a, b], () => a / b);
      row("rem", [a, b], () => a % b);
      row("and", [a, b], () => a & b);
      row("or", [a, b], () => a | b);
      row("xor", [a, b], () => a ^ b);
      if (b < 10n) row("pow", [a, b], () => a ** b);
    }
    for (const x of [0, -0, 1.5, 1e21, 1e308, -9007199254740993, NaN, Infinity, 5e-324, 123456789]) row("BigInt", [x], () => BigInt(x));
    for (const s of ["", " ", "12", " -12 ", "+5", "0x1F", "-0x1", "0b11", "0o17", "0O7", "1n", "1.0", "1e3", "1_0", "0x", "-", "007", "9".repeat(60), "0xg", "\ufeff3\u2029", "Infinity", "0b2", "+", "- 1"])
      row("parse", [s], () => BigInt(s));
  },
  json() {
    const message = (work) => { try { return work(); } catch (error) { return error.message; } };
    const values = ["", "a", "\u0000\b\t\n\f\r\u001f\"\\/", "\u007f\u00e9\u2028", "\ud800", "\udc00\ud83d\ude00\ud83d", "\ud800\ud800\udc00", "plain text with 'quotes'"];
    for (const s of values) row("quote", [s], () => JSON.stringify(s));
    const texts = ["", "{", "[", "[1", "[1,", "[1,]", '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', "{a:1}", "x", "xyzabcdefghijklmnopqrstuvwxyz",
      "[1,2,3,4,5,6,7,8,9,x,1,2,3,4,5,6,7,8,9]", "[1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9x]", "123456789,xabcdefghij", "[123456789,xabcdefghijk]", "[12345678,xabcdefghij]",
      "1 2", "[1 2]", '["a" "b"]', '{"a" 1}', '{"a":1 "b":2}', '"abc', '"a\nb"', '"\\x"', '"\\u12G4"', '"\\u12', "-", "-a", "1.", "1.a", "1e", "1e+",
      "01", ".5", "+1", "undefined", "NaN", "[object Object]", "Infinity", "undefinedx", "tru", "trux", "tru1", 'tru"', "nul-", "null1", '{"a":tru}', "\u00e9", "\u4e2d", "{1:2}",
      '{"a":1}}', '"\\', "[}", "{]", "{,", "[,", '{"a":}', '"\t"', "\ufeff1", "nulll", "-01", "--1", "1.2.3", '{"a":1,1', "[1,2", "-Infinity", '"\\u"', '{"a",1}', "[1}",
      '{"a":1]', '"\ud800', "falsy", "[tru]", '"\\\u4e2d"', "[\u00a01]", '{"a":"b"}x', "'a'", '{"a":1,"b"}', "[[[[[[[[[[[[[[[[[[[[[[[[", "[[[[[[[[[[[[[[[[[[[[[[[[}", "1e5x",
      '{"a":1,"b" 2}', '{"a":1,"b"', '{"a":1,"b""c"}', '"\\\u00e9"'];
    for (const s of texts) row("error", [s], () => message(() => JSON.stringify(JSON.parse(s))));
    const good = ["1", "-0.5e-3", " [ ] ", "{}", '{"a":[1,{"b":null}],"c":"d"}', '"\\u00e9\\ud83d\\ude00\\n\\/"', "[true,false,null,1e3,12345678901,-7]", '\t{"x" : "\u4e2d" }\r\n', '["\\ud800"]'];
    for (const s of good) row("again", [s], () => JSON.stringify(JSON.parse(s)));
  },
  unicode() {
    const words = ["", "abc", "ABC", "\u00c9t\u00e9", "stra\u00dfe", "\u00ff\u00b5", "\u039f\u0394\u039f\u03a3", "\u03a3", "\u03a3\u03a3 \u03a3a", "a\u03a3.", "a\u03a3'b", "a.\u03a3", "\u03a3\u0301b", "\u0130I\u0131",
      "\ufb01\ufb03", "\u1f80\u1fb3\u1fbc", "\u01c4\u01c5\u01c6", "\ud801\udc00\ud801\udc28", "\ud800A\udc00\u00c9", "\u0149\u01f0\u0390", "\ud83d\ude00Z", "\u10a0\u2c00\u1e9e", "A\ud800\u03a3", "A\u03a3\ud800A", "\u212a\u212b\u2126",
      "e\u0301", "\u00e9", "\u1e9b\u0323", "\uac00", "\u1100\u1161\u11a8", "\ufdfa", "\u00bd\u00b2\u2460", "q\u0307\u0323", "\ud834\udd5e", "a\ud800\u0301e\u0301", "\uf900", "\u0344", "\ud800", "ok\udfff"];
    for (const s of words) {
      row("lower", [s], () => s.toLowerCase());
      row("upper", [s], () => s.toUpperCase());
      for (const form of ["NFC", "NFD", "NFKC", "NFKD"]) row(form, [s], () => s.normalize(form));
      row("isWellFormed", [s], () => s.isWellFormed());
      row("toWellFormed", [s], () => s.toWellFormed());
      row("trim", [" \ufeff" + s + "\u2028"], () => (" \ufeff" + s + "\u2028").trim());
    }
    // Every code point that has another case, summed up per block of 256 so that the table stays small.
    const newer = [1280, 2816, 6656, 8192, 42752, 43776, 67328, 69120, 72448, 72960, 74752, 75008, 75264, 101376, 101632, 101888, 102144, 102400, 102656, 110848, 119040, 119296, 120320, 122624];
    for (let block = 0; block < 0x1f000; block += 256) {
      let [lower, upper, start, rest] = [0, 0, 0, 0];
      for (let point = block; point < block + 256; point++) {
        if (point >= 0xd800 && point < 0xe000) continue;
        const s = String.fromCodePoint(point), sum = (t) => [...t].reduce((n, c) => (n * 31 + c.codePointAt(0)) % 1000003, 0);
        lower = (lower * 31 + sum(s.toLowerCase())) % 1000003;
        upper = (upper * 31 + sum(s.toUpperCase())) % 1000003;
        start = (start * 2 + Number(/[\p{ID_Start}$_]/u.test(s))) % 1000003;
        rest = (rest * 2 + Number(/[\p{ID_Continue}$\u200c\u200d]/u.test(s))) % 1000003;
      }
      // In these blocks Unicode 18, which our identifier tables know, has letters that node 20 does not.
      if (newer.includes(block)) continue;
      row("block", [block], () => [lower, upper, start, rest].join(" "));
    }
    const list = ["", "a", "A", "\u00e1", "\u00c1", "b", "B", "z", "Z", "\u00e4", "ae", "\u00e6", "ss", "\u00df", "resume", "r\u00e9sum\u00e9", "Resume", "R\u00e9sum\u00e9", "cote", "c\u00f4te", "cot\u00e9", "c\u00f4t\u00e9", "_a", "-a", "a-b", "ab", "a b", "a_b", "a.b", "a,b",
      "1", "2", "10", "02", "a1", "a2", "a10", "a01", "file10.txt", "file9.txt", "$", "\u20ac", "\u00a3", "%", "&", "(", ")", "*", "+", "@", "#", "!", "?", "/", "~", "<", "=", ">", "|", "^", "\u0451", "\u0435", "\u0438", "\u0439", "\u044f", "\u0416", "\u03b1", "\u0391", "\u03c9", "\u3042", "\u30a2",
      "co-op", "coop", "co op", "CO-OP", "O'Neil", "ONeil", "oneil", "na\u00efve", "naive", "Na\u00efve", "\u00f8", "o", "p", "\u0142", "l", "m", "\u00f1", "n", "\u00fe", "th", "\u0131", "i", "\u2026", "\u2013", "\u00bd", "e\u0301", "\u00e9", "a\u0000b", "\u4e2d", "\u6587", "\ud83d\ude00"];
    const collators = { plain: {}, base: { sensitivity: "base" }, accent: { sensitivity: "accent" }, case: { sensitivity: "case" }, numeric: { numeric: true }, punct: { ignorePunctuation: true }, upper: { caseFirst: "upper" } };
    for (const [name, options] of Object.entries(collators)) {
      const collator = new Intl.Collator("en-US", options);
      for (const a of list) row("compare-" + name, [a], () => list.map((b) => "<=>"[Math.sign(collator.compare(a, b)) + 1]).join(""));
    }
    row("compare-list", list, () => "");
  },
  uri() {
    const all = Array.from({ length: 256 }, (_, unit) => String.fromCharCode(unit)).join("");
    const texts = ["", "a b", "http://h/p?q=1&r=\u00e9#x", all, "\ud83d\ude00", "\u4e2d\u6587", "\ud800", "a\udc00b", "\uffff\ud7ff\ue000", "100%", "%41%42", "%u0041%uD83D%uDE00", "%u12", "%", "%4", "%zz", "%25", "%2F%3f%23", "%C3%A9",
      "%c3%a9", "%E4%B8%AD", "%F0%9F%98%80", "%F8%88%80%80%80", "%C0%80", "%ED%A0%80", "%F4%90%80%80", "%80", "%C3", "%C3%", "%C3x%A9", "%E4%B8", "%E4%B8%2D", "\u00e9%C3%A9\u4e2d", "%EF%BF%BF", "%00", "%7F", "%uD800"];
    for (const s of texts) for (const f of [encodeURI, encodeURIComponent, decodeURI, decodeURIComponent, escape, unescape]) row(f.name, [s], () => f(s));
  },
  dates() {
    const texts = ['2020','2020-01','2020-1','2020-01-01','2020-1-1','2020-01-01T00:00','2020-01-01T24:00','2020-01-01T24:01','2020-01-01T00:00Z','2020-01-01T00:00:00.123456789Z','2020-01-01T00:00+01:30','2020-01-01T00:00+0130','2020-01-01 10:00','2020-01-01 10:00Z','+002020-01-01T00:00Z','-000001-01-01','-000000-01-01','+275760-09-13','+275760-09-14','2020-02-30','2020-02-31T00:00','2020-13-01','Jan 1 2020','1 Jan 2020','January 1, 2020','Jan 1, 2020 10:00 PM','1/2/2020','1/2/20','1/2/50','1/2/49','2020/1/2','Thu, 01 Jan 1970 00:00:00 GMT','Thu Jan 01 1970 00:00:00 GMT+0000 (Coordinated Universal Time)','Thu Jan 01 1970','Thu Jan 01 1970 00:00:00 GMT+0200','Thu, 01 Jan 1970 00:00:00 +0530','Jan 1 2020 EST','Jan 1 2020 10:00 PDT','12:00','foo','','2020-01-01T','2020-01-01T1:00','2020-01-01t00:00z','20200101','Tue Mar 01 2022','2020-W01','March 7','Jan 2020','10 06 2014','2014 10 06', '1e3','-1','+1','32','13','12','0','99','100','31 Jan','2000-01-01T00:00:00,5Z','2000-01-01T00:00:60Z','1970-01-01T00:00:00.5','Sat Jan 1 2000 (comment (nested)) 10:00','2000-01-01T10:00:00-08','Jan 32 2000','Feb 30 2000','2/30/2000','10:00 AM Jan 1 2000','Jan 1 2000 12:00 AM','Jan 1 2000 13:00 PM','1 January 2000 10:00:00 UTC','2000-01-01T00:00:00.000+00:00','  2000-01-01','2000-01-01  ','2000-01-01Z','2000-01Z','2000Z','Thu Jan 01 -001 00:00:00 GMT', 'Mon, 25 Dec 1995 13:30:00 GMT+0430','Dec 25, 1995','1995-12-17T03:24:00','Sun Dec 17 1995 03:24:00 GMT+1', 'GMT', '2000-001', '2000-1-1 1:1:1.5'];
    texts.push("Jan 1 2000 10::30", "1/1/2000 10:20:30.4567", "2000-01-01T00:00:00.1Z", "2000-01-01T00:00:00.12Z", "2000-01-01T00:00:00.9999999999Z", "2000-01-01T24:00:00.000Z", "2000-01-01T24:00:00.001Z", "Jan 1 2000 GMT+05:30", "Jan 1 2000 10:00 GMT+12345", "Jan 1 2000 +5",
      "foo 2000", "foo2000", "Jan 1 2000 foo", "1 2 3 4", "Jan1 2000", "Jan-1-2000", "1-Jan-2000", "2000 Jan 1", "Jan 1 2000)", "(x) Jan 1 2000", "Jan 1 2000 10:00:00pm", "Jan 1 2000 10:00:00 z", "2000-01-01T00:00:00.Z", "2000-01-01T00:00:00+24:00", "2000-01-01T00:00:00+00:60",
      "-271821-04-20T00:00:00Z", "-271821-04-19T23:59:59Z", "+275760-09-13T00:00:00.001Z", "-000000-03-31T00:45Z", "+000000-01-01", "0000-01-01", "January 1 99999", "1/1/10000", "12345678901234567890", "Jan 1 2000 24:00", "Jan 1 2000 25:00", "1/1/2000 10:00 +0100", "1/1/2000 10:00+01", "Sat\u00a0Jan\u202f1 2000",
      "Tuesday, November 15, 2022, 3:04:05 PM", "11/15/2022, 3:04:05 PM", "11/15/2022, 3:04:05\u202fPM", "Tue Nov 15 2022 15:04:05 GMT+0100 (Central European Standard Time)", "2022-11-15 15:04:05 UTC", "2022-11-15 15:04:05.123+0200", "2022-11-15T15:04:05.123456+02:00", "15 Nov 22 15:04", "Nov 31 2022");
    for (const s of texts) row("parse", [s], () => Date.parse(s));
    const times = [0, 1, -1, 86399999, 951782400000, 951868799999, 1e12, 1668524645123, -62167219200000, -62198755200000, -1e14, 253402300800000, 8.64e15, -8.64e15, 4102444799999, -2203891200000];
    for (let i = 0; i < 40; i++) times.push((random() - 2 ** 31) * 4000000 + random() % 100000);
    for (const t of times) {
      const date = new Date(t);
      for (const name of ["toISOString", "toString", "toDateString", "toTimeString", "toUTCString"]) row(name, [t], () => date[name]());
      row("fields", [t], () => ["FullYear", "Month", "Date", "Day", "Hours", "Minutes", "Seconds", "Milliseconds"].map((name) => date["getUTC" + name]()).join(" "));
    }
    for (const [y, m, d] of [[1970, 0, 1], [2000, 1, 29], [2001, 1, 29], [1900, 1, 29], [2000, 12, 1], [2000, -1, 1], [2000, -25, 400], [99, 0, 1], [100, 0, 1], [275760, 8, 13], [275760, 8, 14], [-271821, 3, 20], [-271821, 3, 19], [2000, 1e6, 1], [1e6, -9e6, 1], [2000, 0, 1e6], [2000.9, 1.9, -0.5], [NaN, 0, 1], [2000, Infinity, 1]])
      row("UTC", [y, m, d], () => Date.UTC(y, m, d));
  },
  intl() {
    // Options are spelled key=value,key=value; parts type=value|type=value.
    const spelled = (options) => Object.entries(options).map(([key, value]) => `${key}=${value}`).join(",");
    const parts = (list) => list.map(({ type, value }) => `${type}=${value}`).join("|");
    const amounts = [0, -0, 1, -1, 0.5, 1.5, 2.5, -2.5, 12.345, 999.995, 1234.5, -1234.5678, 12345, 99999, 999999, 1e6, 1.5e6, 123456789, 1e12, 1.5e15, 1e21, 0.000123, 0.0234, -0.0004, 1.005, NaN, Infinity, -Infinity];
    const money = (currency, more) => ({ style: "currency", currency, ...more });
    const numbers = [{}, { style: "percent" }, { notation: "compact" }, { notation: "compact", compactDisplay: "long" }, { notation: "scientific" }, { notation: "engineering" },
      { maximumFractionDigits: 0 }, { minimumFractionDigits: 2, maximumFractionDigits: 2 }, { maximumFractionDigits: 10 }, { maximumSignificantDigits: 3 }, { minimumSignificantDigits: 3 }, { minimumSignificantDigits: 2, maximumSignificantDigits: 4 }, { minimumIntegerDigits: 5 },
      { useGrouping: "min2" }, { useGrouping: false }, { signDisplay: "always" }, { signDisplay: "exceptZero" }, { signDisplay: "negative" }, { signDisplay: "never" },
      money("USD"), money("EUR"), money("GBP"), money("JPY"), money("CHF"), money("KWD"), money("XOF"), money("CAD", { currencyDisplay: "narrowSymbol" }), money("USD", { currencyDisplay: "code" }), money("USD", { currencyDisplay: "name" }), money("GBP", { currencyDisplay: "name", maximumFractionDigits: 0 }),
      money("USD", { currencySign: "accounting" }), money("USD", { currencySign: "accounting", signDisplay: "always" }), money("USD", { notation: "compact" }), money("EUR", { notation: "compact", compactDisplay: "long" }), money("USD", { trailingZeroDisplay: "stripIfInteger" }), money("ZZZ"),
      { style: "unit", unit: "kilometer-per-hour" }, { style: "unit", unit: "liter", unitDisplay: "long" }, { style: "unit", unit: "byte", unitDisplay: "narrow" }, { style: "unit", unit: "celsius" }, { style: "unit", unit: "megabyte", notation: "compact" }, { style: "unit", unit: "day", unitDisplay: "long", notation: "compact", compactDisplay: "long" },
      { style: "percent", minimumFractionDigits: 1 }, { notation: "scientific", maximumFractionDigits: 1 }, { notation: "compact", maximumFractionDigits: 2 }];
    for (const mode of ["ceil", "floor", "expand", "trunc", "halfCeil", "halfFloor", "halfExpand", "halfTrunc", "halfEven"]) numbers.push({ roundingMode: mode, maximumFractionDigits: 0 }, { roundingMode: mode, maximumFractionDigits: 1 });
    for (const options of numbers) {
      const format = new Intl.NumberFormat("en-US", options);
      for (const x of amounts) row("number", [spelled(options), x], () => parts(format.formatToParts(x)));
    }
    for (const x of [0n, -5n, 123456789012345678901234567890n]) row("bigint", [x], () => new Intl.NumberFormat("en-US").format(x));
    for (const x of [0, 1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 111, 112, 101, 1.5, -1, 1000]) {
      row("cardinal", [x], () => new Intl.PluralRules("en").select(x));
      row("ordinal", [x], () => new Intl.PluralRules("en", { type: "ordinal" }).select(x));
    }
    const units = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
    for (const style of ["long", "short", "narrow"]) {
      for (const numeric of ["always", "auto"]) for (const unit of units) for (const x of [0, -0, 1, -1, 2, -2, 0.5, 1234.567])
        row("relative", [style, numeric, unit, x], () => new Intl.RelativeTimeFormat("en", { style, numeric }).format(x, unit));
      for (const type of ["conjunction", "disjunction", "unit"]) for (let n = 0; n <= 4; n++)
        row("list", [style, type, n], () => parts(new Intl.ListFormat("en", { style, type }).formatToParts("ABCD".slice(0, n))));
    }
    const times = [Date.UTC(2020, 0, 2, 3, 4, 5, 678), Date.UTC(2021, 10, 22, 15, 4, 5, 6), 0, Date.UTC(1999, 11, 31, 12), -62198755200000, -1e14, 8.64e15];
    const lengths = [undefined, "full", "long", "medium", "short"];
    const dates = [];
    for (const dateStyle of lengths) for (const timeStyle of lengths) {
      const options = { dateStyle, timeStyle };
      for (const key in options) if (!options[key]) delete options[key];
      if (Object.keys(options).length) dates.push(options);
    }
    for (const hourCycle of ["h11", "h12", "h23", "h24"]) dates.push({ timeStyle: "short", hourCycle }, { hour: "numeric", hourCycle }, { hour: "numeric", minute: "2-digit", hourCycle });
    for (const timeZoneName of ["short", "long", "shortOffset", "longOffset"]) dates.push({ hour: "numeric", timeZoneName });
    dates.push(...[{year:"numeric"},{year:"2-digit"},{month:"numeric"},{month:"2-digit"},{month:"long"},{month:"short"},{month:"narrow"},{day:"numeric"},{day:"2-digit"},{weekday:"long"},{weekday:"short"},{weekday:"narrow"},{hour:"numeric"},{hour:"2-digit"},{minute:"numeric"},{minute:"2-digit"},{second:"numeric"},{second:"2-digit"},{era:"long",year:"numeric"},{dayPeriod:"long"},{fractionalSecondDigits:3},
      {year:"numeric",month:"numeric"},{year:"numeric",month:"long"},{year:"numeric",month:"short"},{month:"long",day:"numeric"},{month:"short",day:"numeric"},{month:"numeric",day:"numeric"},{year:"numeric",month:"numeric",day:"numeric"},{year:"numeric",month:"2-digit",day:"2-digit"},{year:"2-digit",month:"2-digit",day:"2-digit"},{year:"numeric",month:"long",day:"numeric"},{year:"numeric",month:"short",day:"2-digit"},{weekday:"long",year:"numeric",month:"long",day:"numeric"},{weekday:"short",month:"short",day:"numeric"},{weekday:"short",year:"numeric",month:"numeric",day:"numeric"},{weekday:"long",month:"long",day:"numeric"},{weekday:"long",day:"numeric"},{weekday:"short",month:"numeric",day:"numeric"},{weekday:"long",month:"long"},{weekday:"long",year:"numeric"},{weekday:"long",year:"numeric",month:"long"},{year:"numeric",day:"numeric"},
      {hour:"numeric",minute:"2-digit"},{hour:"2-digit",minute:"2-digit"},{hour:"2-digit",minute:"2-digit",second:"2-digit"},{hour:"numeric",minute:"numeric",second:"numeric",hour12:false},{hour:"numeric",hour12:false},{minute:"numeric",second:"numeric"},{minute:"2-digit",second:"2-digit"},{hour:"numeric",minute:"numeric",second:"numeric",fractionalSecondDigits:3},{second:"numeric",fractionalSecondDigits:2},{hour:"numeric",weekday:"long"},{hour:"numeric",minute:"numeric",weekday:"short"},
      {year:"numeric",month:"numeric",day:"numeric",hour:"numeric",minute:"numeric"},{year:"numeric",month:"short",day:"numeric",hour:"numeric",minute:"2-digit"},{year:"numeric",month:"long",day:"numeric",hour:"numeric",minute:"2-digit",timeZoneName:"short"},{weekday:"long",year:"numeric",month:"long",day:"numeric",hour:"numeric"},{month:"long",day:"numeric",hour:"numeric"},{month:"short",day:"numeric",hour:"numeric",minute:"2-digit",hour12:false},{hour:"numeric",minute:"2-digit",timeZoneName:"long"},{hour:"numeric",timeZoneName:"short"},{year:"numeric",timeZoneName:"short"},{era:"short",year:"numeric",month:"numeric",day:"numeric"},{era:"short",year:"numeric",month:"long",day:"numeric"},{month:"narrow",day:"numeric"},{hour:"numeric",dayPeriod:"short"},{hour:"numeric",hourCycle:"h11"},{hour:"numeric",hourCycle:"h24",minute:"numeric"},{weekday:"narrow",day:"numeric",month:"narrow",year:"2-digit"}]);
    for (const width of ["long", "short", "narrow"]) dates.push({ hour: "numeric", dayPeriod: width }, { hour: "numeric", minute: "numeric", dayPeriod: width }, { era: width, year: "numeric", month: "short", day: "numeric" });
    for (const options of dates) {
      const format = new Intl.DateTimeFormat("en-US", { timeZone: "UTC", ...options });
      for (const t of times) row("date", [spelled(options), t], () => parts(format.formatToParts(t)));
    }
    for (const t of times) for (const name of ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"]) row(name, [t], () => new Date(t)[name]("en-US"));
  },
};

for (const [name, record] of Object.entries(tables)) {
  if (process.argv[2] && process.argv[2] !== name) continue;
  lines = [];
  seed = 1n;
  record();
  writeFileSync(new URL(`./${name}.tsv`, import.meta.url), lines.join("\n") + "\n");
}
