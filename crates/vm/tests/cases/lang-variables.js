// Language: var, let, const, hoisting, the temporal dead zone, closures over loop variables.
const log = [];
const attempt = f => { try { return f(); } catch (e) { return e.name; } };
log.push(attempt(() => later), attempt(() => { fixed = 1; }), typeof hoisted, hoisted2());
const fixed = ask(0); let later = fixed + 1; var hoisted = 3;
function hoisted2() { return 'early'; }
log.push(fixed, later, hoisted);
const fs = []; for (let i = 0; i < 3; i++) { fs.push(() => i += ask(i)); }
log.push(fs.map(f => f()).join(), fs.map(f => f()).join());
const gs = []; for (var j = 0; j < 3; j++) gs.push(() => j); log.push(gs.map(g => g()).join());
for (let i = 0, inc = () => i++; i < 3; inc(), i++) { if (i > 5) break; log.push('i' + i); if (i === 2) break; if (ask(i) > 101) break; }
{ let later = 'inner'; { let later = 'deeper'; log.push(later); } log.push(later); }
log.push(attempt(() => { { x; let x; } }), attempt(() => { let y = y; }), attempt(() => typeof z1 + (() => { typeof z2; let z2; })()));
switch (1) { case 0: let s; break; case 1: log.push(attempt(() => { s = ask(5); })); }
log.push(attempt(() => undeclared), attempt(() => { undeclared = 1; }), typeof undeclared);
const { length } = 'four'; log.push(length);
(function () { var v = 1; { var v = ask(2); } log.push(v); })();
try { throw ask(7); } catch (e) { let inner = e; log.push(inner); }
log.join('\n');
