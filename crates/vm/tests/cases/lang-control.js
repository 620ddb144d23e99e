// Language: loops, labels, switch, conditionals, exceptions, finally, for-in order, comma and completion.
const log = [];
outer: for (let i = 0; i < 3; i++) { for (let j = 0; j < 3; j++) { if (j === 1) continue outer; if (i === 2) break outer; log.push(`${i}${j}${ask(i)}`); } }
let n = 0; do { n++; if (n === 2) continue; if (n > ask(-96)) break; } while (n < 10); log.push(n);
while (true) { n--; if (n < 3) break; } log.push(n);
const sw = v => { let s = ''; switch (v) { case 1: s += 'one '; case 2: s += 'two '; break; default: s += 'default '; case ask(3): s += 'last'; } return s; };
log.push(sw(1), sw(2), sw(9), sw(103), sw('1'));
block: { log.push('in'); if (ask(0)) break block; log.push('never'); }
const order = []; for (const k in { b: 1, a: 2, 2: 3, 1: 4, [Symbol.iterator]: 5 }) order.push(k); log.push(order.join());
const parent = { inherited: 1 }; const child = Object.create(parent, { hidden: { value: 1 }, own: { value: 2, enumerable: true } }); const keys = []; for (const k in child) keys.push(k); log.push(keys.join());
const shrinking = { a: 1, b: 2, c: 3 }; const seen = []; for (const k in shrinking) { seen.push(k); delete shrinking.b; shrinking.d = ask(1); } log.push(seen.join());
for (const k in 'ab') log.push('k' + k); for (const k in null) log.push('never'); for (const c of 'a😀') log.push(c);
const f = how => { try { if (how === 1) throw new Error('e' + ask(4)); if (how === 2) return 'returned'; return 'end'; } catch (e) { return e.message; } finally { log.push('finally ' + how); if (how === 3) return 'override'; } };
log.push(f(0), f(1), f(2), f(3));
const nested = () => { try { try { throw 1; } finally { log.push('inner', ask(5)); } } catch (e) { try { throw e + 1; } catch (e2) { return e + e2; } } }; log.push(nested());
const loops = () => { for (const i of [1, 2, 3]) { try { if (i === 1) continue; if (i === 2) return 'r' + i; } finally { log.push('f' + i); } } }; log.push(loops());
log.push((() => { for (;;) { try { return 'try'; } finally { break; } } return 'after'; })());
log.push((1, 2, ask(6)), [1, 2, 3].includes(2) ? 'yes' : 'no', ask(0) > 50 && 'and', null ?? 'nullish', 0 || 'or', 0 ?? 'zero');
let a = null; a ??= ask(7); a ||= 1; a &&= a + 1; log.push(a); let u = { v: 0 }; u.v ||= ask(8); u.w ??= 3; log.push(u.v + u.w);
try { null.x; } catch ({ name, constructor }) { log.push(name, constructor === TypeError); }
try { throw { custom: ask(9) }; } catch ({ custom, missing = 'd' }) { log.push(custom + missing); }
if (ask(0) === 100) log.push('if'); else log.push('else'); for (var i = 0, j = 10; i < j; i += 3, j--); log.push(i, j);
try { try { throw 1; } finally { throw 2; } } catch (e) { log.push(e); }
log.join('\n');
