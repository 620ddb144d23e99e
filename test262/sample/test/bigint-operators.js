/*---
description: integers without a limit, which never mix with numbers
features: [BigInt]
---*/
assert.sameValue(2n ** 64n, 18446744073709551616n);
assert.sameValue(-7n / 2n, -3n);
assert.sameValue(-7n % 2n, -1n);
assert.sameValue(-1n >> 70n, -1n);
assert.sameValue(1n << 65n, 36893488147419103232n);
assert.sameValue(-5n & 3n, 3n);
assert.sameValue(0xffn ^ 1n, 254n);
assert.sameValue(typeof 1n, "bigint");
assert.sameValue(1n == 1, true);
assert.sameValue(1n === 1, false);
assert.sameValue(2n > 1, true);
assert.sameValue(1n < 1.5, true);
assert.sameValue("" + 123456789012345678901234567890n, "123456789012345678901234567890");
assert.throws(TypeError, () => 1n + 1);
assert.throws(TypeError, () => +1n);
assert.throws(RangeError, () => 1n / 0n);
assert.throws(RangeError, () => 2n ** -1n);
