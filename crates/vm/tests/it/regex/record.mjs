// Writes recorded.tsv: what node answers to regular expressions.   node record.mjs > recorded.tsv
//
// Columns: flags, pattern, text (both as ASCII JSON strings), lastIndex, answer. The answer is `syntax`, `none`
// or the ranges of the groups. First the cases that somebody thought of, then cases made by a seeded generator.
// The generator leaves out what node 20 is known to answer differently from the standard: names shared by
// alternatives (ES2025), set operations under `vi`, and empty matches inside surrogate pairs.

const THOUGHT_OF = `
/abc/ xabcabcx
/a|ab/ abc
/((a)|(ab))((c)|(bc))/ abc
/a[a-z]{2,4}/ abcdefghi
/a[a-z]{2,4}?/ abcdefghi
/(aa|aabaac|ba|b|c)*/ aabaac
/(z)((a+)?(b+)?(c))*/ zaacbbbcac
/(a*)*/ b
/(?=(a+))/ baaabac
/(?=(a+))a*b\\1/ baaabac
/(.*?)a(?!(a+)b\\2c)\\2(.*)/ baaabaac
/(?!(a)|b)c/ c
/(a*)b\\1+/ baaaac
/(\\2)(a)/ aa
/(a\\1)/ aa
/\\1(a)/ aa
/(?:a?)??/ a
/(a?)?/ a
/(a?)?/ b
/(?:a?){3}/ aa
/(a?){3}/ aa
/(?:){5}x/ x
/(?:a*){2,3}b/ aaab
/(?:(a)|b)*/ ab
/(?:(a)|(b)|(c))+/ abc
/(?:(?=(a))){2}a/ a
/(?:x|(?=(a)))*?a/ xa
/^a/ ba
/^b/m a\\nb
/a$/ a\\n
/a$/m a\\nb
/^$/m a\\n\\nb
/./ \\n
/./s \\n
/[^]/ \\n
/[]/ a
/\\bfoo\\b/ a foo b
/\\Boo/ foo
/(?<=\\$)\\d+/ a $42
/(?<!\\$)\\b\\d+/ $42 43
/(?<=(\\d+)(\\d+))$/ 1053
/(?<=\\1(a))b/ aab
/(?<=(a)\\1)b/ aab
/(?<=a{2,3})b/ aaab
/(?<=^(\\w+))def/ abcdef
/(?<=([abc]+)([abc]+))x/ abcx
/(?<!abc)\\w\\w\\w/ abcdef
/(?<=a|bc)d/ bcd
/(?<=(?=a)\\w)b/ ab
/(?<year>\\d{4})-(?<month>\\d\\d)/ 2024-06
/\\k<a>(?<a>x)/ x
/(?<a>.)\\k<a>/ abb
/\\k<a>/ k<a>
/\\k/ k
/(?<a>.)\\k/ k
/(?<𝒜>.)/ a
/(?<\\u{1d49c}>.)/ a
/(?<a\\u0062>.)/ a
/(?<1a>.)/ a
/(?<a/ a
/(?<>a)/ a
/\\c/ \\\\c
/\\cA/ \\u0001
/[\\c]/ \\\\
/[\\c1]/ \\u0011
/\\c1/ \\\\c1
/\\01/ \\u0001
/\\1/ \\u0001
/\\8/ 8
/\\18/ \\u00018
/\\400/ \\u00200
/[\\1]/ \\u0001
/[\\8]/ 8
/\\x4/ x4
/\\x41/ A
/\\u004/ u004
/\\u{41}/ u{41}
/\\u{2}/ uu
/\\u{41}/u A
/\\u{110000}/u A
/\\ud83d\\ude00/u \\ud83d\\ude00
/\\ud83d/u \\ud83d\\ude00
/\\ud83d/ \\ud83d\\ude00
/^.$/u \\ud83d\\ude00
/^.$/ \\ud83d\\ude00
/^[^x]$/u \\ud83d\\ude00
/[\\ud83d\\ude00]/u \\ud83d\\ude00
/(?<=\\ud83d)\\ude00/ \\ud83d\\ude00
/(?<=\\ud83d)\\ude00/u \\ud83d\\ude00
/\\ude00/u \\ud83d\\ude00
/(.)\\1/u \\ud83d\\ude00\\ud83d\\ude00
/]/ ]
/]/u ]
/{/ {
/{/u {
/}/ }
/a{/ a{
/a{1/ a{1
/a{1,/ a{1,
/a{,1}/ a{,1}
/a{1}/ a
/{1}/ a
/a{2,1}/ a
/a**/ a
/a{1}{2}/ a
/*/ a
/?/ a
/(?=a)*/ a
/(?=a)*/u a
/(?<=a)*/ a
/^*/ a
/\\b+/ a
/(/ a
/)/ a
/(?/ a
/(?a)/ a
/[/ a
/[b-a]/ a
/[\\d-x]/ -
/[\\d-x]/u -
/[x-\\d]/ -
/[a-]/ -
/[-a]/ -
/[--a]/ .
/\\-/ -
/\\-/u -
/[\\-]/u -
/\\a/ a
/\\a/u a
/\\// /
/\\p{L}/ p{L}
/\\p{L}+/u abcé1
/\\P{L}+/u abc12
/\\p{Lu}/iu a
/\\P{Lu}/iu A
/[^\\P{Lu}]/iu a
/\\p{Lu}/vi a
/\\P{Lu}/vi A
/\\p{Script=Greek}+/u abcαβγ
/\\p{sc=Grek}/u α
/\\p{scx=Deva}/u \\u1cd1
/\\p{General_Category=Decimal_Number}/u 5
/\\p{gc=Nd}/u 5
/\\p{Nd}/u 5
/\\p{ASCII}/u é
/\\p{Any}/u \\ud83d
/\\p{Alpha}/u a
/\\p{alpha}/u a
/\\p{ L}/u a
/\\p{IsGreek}/u a
/\\p{Block=Greek}/u a
/\\p{Script}/u a
/\\p/u p
/\\p{RGI_Emoji}/u a
/\\p{RGI_Emoji}/v \\ud83c\\udde9\\ud83c\\uddea
/\\P{RGI_Emoji}/v a
/[^\\p{RGI_Emoji}]/v a
/^\\p{RGI_Emoji}$/v \\ud83d\\udc68\\u200d\\ud83d\\udc69\\u200d\\ud83d\\udc66
/\\p{Emoji_Keycap_Sequence}/v 1\\ufe0f\\u20e3
/(?<=\\p{RGI_Emoji_Flag_Sequence})x/v \\ud83c\\udde9\\ud83c\\uddeax
/[\\q{abc|d|}]/v abcd
/^[\\q{abc|ab|a}]$/v ab
/[\\q{}]/v x
/[a-z&&[aeiou]]+/v xyzaeb
/[\\w--\\d]+/v 12ab
/[[a-z]--[b-y]]+/v bza
/[a--b--c]/v a
/[a&&b--c]/v a
/[a-z--b]/v a
/[a&&&b]/v a
/[(]/v (
/[(]/u (
/[a-]/v -
/[&&]/v &
/[a&]/v &
/[!!]/v !
/[\\!]/v !
/[^\\q{ab}]/v ab
/[^\\q{a}]/v b
/[^\\q{ab}--\\q{ab}]/v b
/[^\\q{ab}&&a]/v b
/[\\p{RGI_Emoji}--\\q{x}]/v \\u00a9\\ufe0f
/[[^a]]/v b
/k/i \\u212a
/k/iu \\u212a
/\\u212a/i k
/[^k]/iu \\u212a
/s/iu \\u017f
/\\w/iu \\u017f
/\\W/iu \\u017f
/[^\\W]/iu \\u017f
/\\w/i \\u017f
/\\b/iu \\u017f
/\\b/i \\u017f
/ß/i ẞ
/ß/iu ẞ
/σ/i ς
/Σ/iu ς
/\\u0345/i ι
/[A-z]/i _
/[^x]/i X
/\\u{10400}/iu \\ud801\\udc28
/(a)\\1/i aA
/(\\u{10400})\\1/iu \\ud801\\udc00\\ud801\\udc28
/(?<=\\1(a))A/i aaA
/\\s+/ a \\u00a0\\ufeff\\u2028b
/\\s/ \\u180e
/\\S/ \\u2003
/a/y ba
/a/y ab
/\\0/ \\u0000
/\\00/u \\u0000
/\\0a/u \\u0000a
/\\1/u a
/(a)\\2/u a
/a{9007199254740993}/ a
/a{0,4294967296}/ aaa
/(?:a|ab)(?:c|bcd)(?:d*)/ abcd
/(x)?(y)?(z)?/ xz
/(?:a(?=b)|ab)*c/ abac
/<(.*?)>/ <a><b>
/^(?:\\+|-)?\\d+(?:\\.\\d+)?$/ -12.50
/([^,]*),([^,]*)$/ a,b,c
/"(?:[^"\\\\]|\\\\.)*"/ say "a\\\\"b" ok
`;

const cases = [];
for (const line of THOUGHT_OF.trim().split('\n')) {
  const [, pattern, flags, text] = /^\/(.*)\/([a-z]*) (.*)$/.exec(line);
  const unescape = (s) => s.replace(/\\u([0-9a-f]{4})|\\(n|\\)/g, (_, hex, c) => (hex ? String.fromCharCode(parseInt(hex, 16)) : c === 'n' ? '\n' : '\\'));
  cases.push([flags, pattern, unescape(text), 0]);
}

let state = 20240626;
const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
const below = (n) => Math.floor(random() * n);
const pick = (list) => list[below(list.length)];

const MEMBERS = ['a', 'b', 'c', 'A', 'B', '\\d', '\\w', '\\W', '\\s', '\\S', 'a-c', 'B-b', '0-9', '_', 'k', '\u212a', '\u017f', '-', '^',
  '\u00e9', '\u{1f600}', '\\ud83d', '\u00df', '\\u{61}', '\\x41', '\\cA', '\\-', '\\p{Lu}', '\\P{L}', '\u03a3', '\u{10400}'];
function klass(mode) {
  const members = mode === 'v' ? MEMBERS.filter((m) => m !== '-' && m !== '^').concat('\\q{ab|c|}', '\\q{abc}') : MEMBERS;
  let out = random() < 0.3 ? '[^' : '[';
  for (let n = 1 + below(3); n > 0; n -= 1) out += mode === 'v' && random() < 0.2 ? klass(mode) : pick(members);
  return `${out}]`;
}
function pattern(mode, depth) {
  let out = '';
  for (let n = 1 + below(4); n > 0; n -= 1) {
    const r = random();
    let term;
    if (r < 0.4) term = pick(['a', 'b', 'c', 'ab', 'A', '.', '\u00e9', 'k', 's', '\u{1f600}', '\\ud83d', '\\x61', '0', '_', ' ', '\\n', '\u03a3']);
    else if (r < 0.5) term = klass(mode);
    else if (r < 0.6) term = pick(['\\d', '\\w', '\\W', '\\s', '\\S', '\\D', '\\p{Lu}', '\\P{L}', '\\u{61}']);
    else if (r < 0.8 && depth < 4) term = `${pick(['(', '(?:', '(', '(?=', '(?!', '(?<=', '(?<!', '(?<n>'])}${pattern(mode, depth + 1)})`;
    else if (r < 0.86) term = pick(['\\1', '\\2', '\\k<n>', '\\3']);
    else if (r < 0.94) term = pick(['^', '$', '\\b', '\\B']);
    else if (r < 0.96) term = pick(['\\c', '\\01', '\\8', '{', '}', ']', '\\k', '\\-', 'a{1', '\\u', '\\x4', '*', '\\']);
    else term = 'a';
    if (random() < 0.4) term += pick(['*', '+', '?', '{2}', '{1,2}', '{0,2}', '{2,}', '{0}']) + (random() < 0.35 ? '?' : '');
    out += term + (random() < 0.12 ? '|' : '');
  }
  return out;
}
const LETTERS = ['a', 'b', 'c', 'A', 'k', '\u212a', 's', '\u017f', '\u{1f600}', '\ud83d', '\ude00', '\u00e9', '\u00c9', '\u03a3', '\u03c3', '\n', '0', ' ', 'ab'];
while (cases.length < 1100) {
  const mode = pick(['', '', 'u', 'v']);
  const flags = mode + (random() < 0.35 ? 'i' : '') + (random() < 0.2 ? 'm' : '') + (random() < 0.2 ? 's' : '') + (random() < 0.1 ? 'y' : 'g');
  const source = pattern(mode, 0);
  let text = '';
  for (let n = below(12); n > 0; n -= 1) text += pick(LETTERS.slice(0, pick([5, 19])));
  if (source.split('(?<n>').length <= 2) cases.push([flags, source, text, random() < 0.2 ? below(text.length + 1) : 0]);
}

const spell = (text) => JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
for (const [flags, source, text, lastIndex] of cases) {
  let answer;
  try {
    const regex = new RegExp(source, `${flags}d`);
    regex.lastIndex = lastIndex;
    const match = regex.exec(text);
    answer = match ? match.indices.map((range) => (range ? range.join('-') : '?')).join(' ') : 'none';
    const inside = match && /[uv]/.test(flags) && match.indices.some((range) => range?.some((at) => /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(at - 1, at + 1))));
    if (inside) continue;
  } catch {
    answer = 'syntax';
  }
  process.stdout.write(`${[flags, spell(source), spell(text), lastIndex, answer].join('\t')}\n`);
}
