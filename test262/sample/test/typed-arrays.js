/*---
description: views share bytes, convert on the way in, and do not grow
includes: [compareList.js]
---*/
const buffer = new ArrayBuffer(8);
const bytes = new Uint8Array(buffer);
const words = new Int16Array(buffer, 2, 2);
words[0] = 0x1ff;
assert.sameList([bytes[2], bytes[3]], [255, 1]);
bytes[0] = 257.9;
assert.sameValue(bytes[0], 1);
bytes[100] = 1;
assert.sameValue(bytes[100], undefined);
assert.sameList(new Uint8ClampedArray([300, -5, 1.5]), [255, 0, 2]);
const view = new DataView(buffer);
view.setFloat64(0, Math.PI);
assert.sameValue(view.getFloat64(0), Math.PI);
assert.throws(RangeError, () => view.getInt8(8));
assert.throws(RangeError, () => new Int16Array(buffer, 1));
assert.sameList(new Float64Array([3, 1, 2]).sort(), [1, 2, 3]);
