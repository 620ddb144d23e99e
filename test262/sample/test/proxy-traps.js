/*---
description: each operation reaches its trap, and a trap cannot lie about what is fixed
includes: [compareList.js]
---*/
const log = [];
const handler = new Proxy({}, {
  get(target, trap) {
    return (...args) => { log.push(trap); return Reflect[trap](...args); };
  },
});
const p = new Proxy({ a: 1 }, handler);
p.a;
p.b = 2;
"a" in p;
delete p.a;
Object.keys(p);
assert.sameList(log, ["get", "set", "getOwnPropertyDescriptor", "defineProperty", "has", "deleteProperty", "ownKeys",
  "getOwnPropertyDescriptor"]);
const fixed = Object.freeze({ a: 1 });
assert.throws(TypeError, () => new Proxy(fixed, { get: () => 2 }).a);
assert.throws(TypeError, () => Object.keys(new Proxy(fixed, { ownKeys: () => [] })));
const { proxy, revoke } = Proxy.revocable({}, {});
revoke();
assert.throws(TypeError, () => proxy.a);
