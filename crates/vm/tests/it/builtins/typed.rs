//! Typed arrays, buffers and data views, as node has them.

use super::check;

#[test]
fn typed_arrays_hold_what_their_elements_can() {
    check(&[
        (
            "[Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array].map((T) => new T([300, -1, 1.5, NaN, 2 ** 33]).join()).join(' ')",
            "44,-1,1,0,0 44,255,1,0,0 255,0,2,0,255 300,-1,1,0,0 300,65535,1,0,0 300,-1,1,0,0 300,4294967295,1,0,0 300,-1,1.5,NaN,8589934592 300,-1,1.5,NaN,8589934592",
        ),
        (
            "[BigInt64Array, BigUint64Array].map((T) => new T([1n, -1n, 2n ** 64n + 5n]).join()).join(' ')",
            "1,-1,5 1,18446744073709551615,5",
        ),
        ("try { new BigInt64Array([1]) } catch (e) { e.name }", "TypeError"),
        ("try { Int8Array(1) } catch (e) { `${e}` }", "TypeError: Constructor Int8Array requires 'new'"),
        (
            "try { new (Object.getPrototypeOf(Int8Array))() } catch (e) { `${e}` }",
            "TypeError: Abstract class TypedArray not directly constructable",
        ),
        (
            "const t = new Uint8Array(3); t[0] = '7'; t[1] = { valueOf: () => 258 }; t[5] = 1; `${t} ${t[5]} ${5 in t} ${'1' in t} ${t['-0']} ${Object.keys(t)}`",
            "7,2,0 undefined false true undefined 0,1,2",
        ),
        (
            "const b = new ArrayBuffer(8); new Float64Array(b)[0] = 1; [...new Uint8Array(b)].join()",
            "0,0,0,0,0,0,240,63",
        ),
        (
            "const b = new ArrayBuffer(8), t = new Uint16Array(b, 2, 2); `${t.byteOffset} ${t.byteLength} ${t.length} ${t.buffer === b} ${t.BYTES_PER_ELEMENT}`",
            "2 4 2 true 2",
        ),
        (
            "let r = []; for (const f of [() => new Uint16Array(new ArrayBuffer(3)), () => new Uint16Array(new ArrayBuffer(4), 1), () => new Uint8Array(new ArrayBuffer(4), 5), () => new Uint8Array(new ArrayBuffer(4), 2, 3), () => new Uint8Array(-1)]) try { f(); } catch (e) { r.push(e.name); } r.join()",
            "RangeError,RangeError,RangeError,RangeError,RangeError",
        ),
        (
            "class T extends Uint8Array { twice() { return this.map((x) => x * 2); } } const t = new T([1, 2]).twice(); `${t} ${t instanceof T} ${t.slice(1) instanceof T}`",
            "2,4 true true",
        ),
        (
            "Uint8Array.from({ length: 3 }, (v, i) => i * 2).join() + Int8Array.of(1, 2).join() + Float32Array.from(new Set([1.5])).join()",
            "0,2,41,21.5",
        ),
        (
            "Object.prototype.toString.call(new Uint8Array(1)) + Uint8Array.prototype[Symbol.toStringTag] + new Int32Array(1)[Symbol.toStringTag]",
            "[object Uint8Array]undefinedInt32Array",
        ),
    ]);
}

#[test]
fn typed_arrays_have_the_methods_of_arrays() {
    check(&[
        (
            "const t = new Int16Array([5, -1, 3, 3]); [t.indexOf(3), t.lastIndexOf(3), t.includes(-1), t.at(-1), t.join('-'), t.slice(1, 3), t.subarray(2), t.map((x) => x * 2), t.filter((x) => x > 2), t.reduce((a, b) => a + b), t.find((x) => x < 0), t.findLastIndex((x) => x === 3), t.some((x) => x > 4), t.every((x) => x > 4)].join('|')",
            "2|3|true|3|5--1-3-3|-1,3|3,3|10,-2,6,6|5,3,3|10|-1|3|true|false",
        ),
        (
            "new Float64Array([3, NaN, -0, 0, -Infinity, 1]).sort().join() + Object.is(new Float64Array([0, -0]).sort()[0], -0)",
            "-Infinity,0,0,1,3,NaNtrue",
        ),
        (
            "new Float32Array([3, NaN, -1.5, 2]).toSorted().join() + new BigInt64Array([3n, -1n]).sort().join() + new Int8Array([1, -1, 5]).sort((a, b) => b - a).join()",
            "-1.5,2,3,NaN-1,35,1,-1",
        ),
        (
            "new Uint8Array([1, 2, 3, 4]).copyWithin(1, 0).join() + new Uint32Array([1, 2, 3]).reverse().join() + new Uint8Array([1, 2, 3]).toReversed().join() + new Uint8Array([1, 2, 3]).with(1, 9).join() + new Int16Array(3).fill(-2, 1).join()",
            "1,1,2,33,2,13,2,11,9,30,-2,-2",
        ),
        (
            "const t = new Uint8Array(5); t.set([1, 2]); t.set(new Float32Array([3.7, 4]), 2); t.set(t.subarray(0, 3), 1); t.join()",
            "1,1,2,3,0",
        ),
        (
            "const b = new ArrayBuffer(16), f = new Float64Array(b), u = new Uint8Array(b); f[0] = 5; u.set(f); u.subarray(0, 4).join()",
            "5,0,0,0",
        ),
        (
            "let r = []; for (const f of [() => new Uint8Array(1).set([1, 2]), () => new Uint8Array(1).set([1], -1), () => new BigInt64Array(1).set([1]), () => new Uint8Array(1).set(new BigInt64Array(1)), () => new Uint8Array(1).with(1, 0)]) try { f(); r.push('ok'); } catch (e) { r.push(e.name); } r.join()",
            "RangeError,RangeError,TypeError,TypeError,RangeError",
        ),
        (
            "[...new Uint8Array([7, 8]).entries()].join(';') + [...new Uint8Array(2).keys()] + [...new Uint8Array([9])]",
            "0,7;1,80,19",
        ),
        ("new Uint8Array([1, 2, 3]).toString === Array.prototype.toString", "true"),
        (
            "Array.prototype.map.call(new Uint8Array([1, 2]), (x) => x * 300).join() + Array.from(new Uint8Array([1, 2])).concat(new Uint8Array(1)).length",
            "300,6003",
        ),
        (
            "JSON.stringify(new Uint8Array([1, 2])) + JSON.stringify(Object.getOwnPropertyDescriptor(new Uint8Array([5]), 0))",
            "{\"0\":1,\"1\":2}{\"value\":5,\"writable\":true,\"enumerable\":true,\"configurable\":true}",
        ),
        (
            "const t = new Uint8Array(2); const r = [Reflect.set(t, 0, 5), Reflect.set(t, 2, 5), Reflect.defineProperty(t, 0, { value: 6 }), Reflect.defineProperty(t, 2, { value: 6 }), Reflect.deleteProperty(t, 2), Reflect.deleteProperty(t, 0), Reflect.has(t, 1)]; r.join() + t",
            "true,true,true,false,true,false,true6,0",
        ),
        ("new Float64Array([1234.5, 2]).toLocaleString()", "1,234.5,2"),
    ]);
}

#[test]
fn buffers_grow_shrink_and_are_taken_away() {
    check(&[
        (
            "const b = new ArrayBuffer(4, { maxByteLength: 8 }); const t = new Uint8Array(b), f = new Uint8Array(b, 1, 3); t.fill(7); b.resize(8); const grown = `${t.length} ${f.length} ${t}`; b.resize(2); `${grown} ${t.length} ${f.length} ${f.byteOffset} ${b.resizable} ${b.maxByteLength}`",
            "8 3 7,7,7,7,0,0,0,0 2 0 0 true 8",
        ),
        (
            "const b = new ArrayBuffer(8, { maxByteLength: 8 }), v = new DataView(b, 4); b.resize(5); const n = v.byteLength; b.resize(3); try { v.byteLength } catch (e) { `${n} ${e.name}` }",
            "1 TypeError",
        ),
        (
            "let r = []; for (const f of [() => new ArrayBuffer(9, { maxByteLength: 8 }), () => new ArrayBuffer(4).resize(2), () => new ArrayBuffer(-1), () => ArrayBuffer(1), () => new ArrayBuffer(4, { maxByteLength: 8 }).resize(9)]) try { f(); r.push('ok'); } catch (e) { r.push(e.name); } r.join()",
            "RangeError,TypeError,RangeError,TypeError,RangeError",
        ),
        (
            "const b = new Uint8Array([1, 2, 3, 4]).buffer; const c = b.slice(1, 3); `${new Uint8Array(c)} ${c.byteLength} ${b.slice(-1).byteLength} ${ArrayBuffer.isView(new DataView(b))} ${ArrayBuffer.isView(b)}`",
            "2,3 2 1 true false",
        ),
        (
            "Object.prototype.toString.call(new ArrayBuffer(1)) + Object.prototype.toString.call(new DataView(new ArrayBuffer(1)))",
            "[object ArrayBuffer][object DataView]",
        ),
    ]);
}

#[test]
fn data_views_read_and_write_both_ways_round() {
    check(&[
        (
            "const v = new DataView(new ArrayBuffer(16), 2); v.setInt16(0, 258); v.setUint32(2, 0xdeadbeef, true); v.setFloat32(6, 1.5); [v.getInt8(0), v.getUint8(1), v.getInt16(0, true), v.getUint32(2), v.getUint32(2, true), v.getFloat32(6), v.byteLength, v.byteOffset].join()",
            "1,2,513,4022250974,3735928559,1.5,14,2",
        ),
        (
            "const v = new DataView(new ArrayBuffer(16)); v.setFloat64(0, Math.PI); v.setBigInt64(8, -2n, true); [v.getFloat64(0), v.getBigUint64(8, true), v.getBigInt64(8, true), v.getBigInt64(8)].join()",
            "3.141592653589793,18446744073709551614,-2,-72057594037927937",
        ),
        (
            "const v = new DataView(new ArrayBuffer(4)); let r = []; for (const f of [() => v.getInt32(1), () => v.getInt8(-1), () => v.setInt8(4, 1), () => v.getInt8.call({}), () => new DataView({}), () => DataView(new ArrayBuffer(1)), () => new DataView(new ArrayBuffer(1), 2), () => v.setBigInt64(0, 1)]) try { f(); r.push('ok'); } catch (e) { r.push(e.name); } r.join()",
            "RangeError,RangeError,RangeError,TypeError,TypeError,TypeError,RangeError,TypeError",
        ),
        (
            "const v = new DataView(new ArrayBuffer(4)); v.setUint8(0, '300'); v.setInt8(1, { valueOf: () => -1 }); [v.getUint8(0), v.getUint8(1), v.getUint8()].join()",
            "44,255,44",
        ),
    ]);
}

#[test]
fn elements_are_copied_by_spread_and_rest() {
    check(&[
        ("JSON.stringify({ ...new Uint8Array([1, 250, 3]) })", r#"{"0":1,"1":250,"2":3}"#),
        (
            "const { 1: b, ...rest } = new Uint8Array([1, 250, 3]); b + JSON.stringify(rest)",
            r#"250{"0":1,"2":3}"#,
        ),
        ("JSON.stringify({ ...Object('ab'), ...'c' })", r#"{"0":"c","1":"b"}"#),
    ]);
}
