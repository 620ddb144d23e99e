/*---
description: arithmetic on the edges of integers and doubles
---*/
assert.sameValue(2147483647 + 1, 2147483648);
assert.sameValue(-2147483648 - 1, -2147483649);
assert.sameValue(65536 * 65536, 4294967296);
assert.sameValue(0 * -1, -0);
assert.sameValue(-(0), -0);
assert.sameValue(-5 % 5, -0);
assert.sameValue(5 % -3, 2);
assert.sameValue(5.5 % 2, 1.5);
assert.sameValue(1 / -0, -Infinity);
assert.sameValue(2 ** 53 + 1, 9007199254740992);
assert.sameValue((-2) ** 3, -8);
assert.sameValue(1 << 31, -2147483648);
assert.sameValue(1 << 32, 1);
assert.sameValue(-1 >>> 0, 4294967295);
assert.sameValue(-1 >> 31, -1);
assert.sameValue(~~4294967297.9, 1);
assert.sameValue(0.1 + 0.2, 0.30000000000000004);
let n = 2147483647;
assert.sameValue(n++, 2147483647);
assert.sameValue(n, 2147483648);
assert.sameValue(NaN !== NaN, true);
assert.sameValue("10" < "9", true);
assert.sameValue("10" < 9, false);
