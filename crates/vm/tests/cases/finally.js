// A host call in try, catch and finally, with every way of leaving them.
const log = [];
function f(how) {
  for (const i of [1, 2]) {
    try {
      log.push('try ' + ask(i));
      if (how === 'return') return 'r' + ask(10);
      if (how === 'throw') fail('t' + i);
      if (how === 'break') break;
      if (how === 'continue') continue;
    } catch (e) {
      log.push('catch ' + e.message + ask(20));
      if (i === 2) throw e;
    } finally {
      log.push('finally ' + ask(30));
      if (how === 'override') return ask(40);
    }
  }
  return 'end';
}
for (const how of ['none', 'return', 'break', 'continue', 'override', 'throw']) {
  try { log.push(how + ' ' + f(how)); } catch (e) { log.push(how + ' threw ' + e.message); }
}
try { try { fail('first'); } finally { fail('second'); } } catch (e) { log.push(e.message); }
log.join('\n');
