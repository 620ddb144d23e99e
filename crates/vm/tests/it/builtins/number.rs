//! Numbers, BigInts, booleans and URIs, as node has them.

use super::check;

#[test]
fn numbers_are_spelled_in_every_radix_and_precision() {
    check(&[
        (
            "[(255).toString(16), (-255).toString(2), (0.5).toString(2), (1e21).toString(36), (0.1).toString(3), NaN.toString(2), (2 ** 53).toString(36), (-0).toString(), (1 / 3).toString(7), (123.456).toString(36)].join()",
            "ff,-11111111,0.1,5v1j4f4ds7c000,0.0022002200220022002200220022002201,NaN,2gosa7pa2gw,0,0.2222222222222222222,3f.gez4w97ry",
        ),
        (
            "[(1.005).toFixed(2), (2.5).toFixed(0), (-1.5).toFixed(0), (1e21).toFixed(2), (0).toFixed(20), (-0.0000001).toFixed(2), (123.456).toFixed()].join()",
            "1.00,3,-2,1e+21,0.00000000000000000000,-0.00,123",
        ),
        (
            "[(1234.5678).toPrecision(2), (0.00001).toPrecision(1), (1e-7).toPrecision(3), (123).toPrecision(3), (25).toPrecision(1), NaN.toPrecision(200), (5).toPrecision()].join()",
            "1.2e+3,0.00001,1.00e-7,123,3e+1,NaN,5",
        ),
        (
            "[(1234.5).toExponential(2), (0).toExponential(), (-1.5e-9).toExponential(0), Infinity.toExponential(500), (12345).toExponential()].join()",
            "1.23e+3,0e+0,-1e-9,Infinity,1.2345e+4",
        ),
        (
            "[() => (1).toString(1), () => (1).toFixed(101), () => (1).toPrecision(0), () => (1).toExponential(-1)].map(f => { try { f() } catch (e) { return `${e}` } }).join('|')",
            "RangeError: toString() radix argument must be between 2 and 36|RangeError: toFixed() digits argument must be between 0 and 100|RangeError: toPrecision() argument must be between 1 and 100|RangeError: toExponential() argument must be between 0 and 100",
        ),
        (
            "[(1234567.891).toLocaleString(), (0.5).toLocaleString('en-US', { style: 'percent' }), 123456789n.toLocaleString()].join('|')",
            "1,234,567.891|50%|123,456,789",
        ),
        ("try { Number.prototype.toString.call('x') } catch (e) { e.name }", "TypeError"),
    ]);
}

#[test]
fn texts_are_read_as_numbers() {
    check(&[
        (
            r#"[Number(''), Number(' 12\n'), Number('0x1F'), Number('0b12'), Number('1e1000'), Number('-Infinity'), Number('1_0'), Number(null), Number(undefined), Number([5]), Number(true), Number(10n), Number('0o17')].join()"#,
            "0,12,31,NaN,Infinity,-Infinity,NaN,0,NaN,5,1,10,15",
        ),
        (
            "[parseInt('12px'), parseInt('0x1f'), parseInt('z', 36), parseInt(''), parseInt('1e3'), parseInt(0.0000005), parseInt('123', 37), parseInt('  -42'), parseInt(null, 36), parseInt('9007199254740993'), Object.is(parseInt('-0'), -0)].join()",
            "12,31,35,NaN,1,5,NaN,-42,1112745,9007199254740992,true",
        ),
        (
            "[parseFloat('3.14abc'), parseFloat('.5.'), parseFloat('-.5e-2x'), parseFloat('Infinityx'), parseFloat('e5'), parseFloat(' 1'), Object.is(parseFloat('-0'), -0), Object.is(parseFloat(-0), 0)].join()",
            "3.14,0.5,-0.005,Infinity,NaN,1,true,true",
        ),
        (
            "[isNaN('x'), isNaN(undefined), isFinite('12'), isFinite(Infinity), Number.isNaN('x'), Number.isFinite('1'), Number.isInteger(5.0), Number.isInteger('5'), Number.isSafeInteger(2 ** 53), Number.isInteger(Infinity)].join()",
            "true,true,true,false,false,false,true,false,false,false",
        ),
        (
            "[Number.parseFloat === parseFloat, Number.parseInt === parseInt, Number.EPSILON > 0, Number.MAX_SAFE_INTEGER, Number.MIN_VALUE].join()",
            "true,true,true,9007199254740991,5e-324",
        ),
        (
            "const log = []; Number({ valueOf() { log.push('v'); return '7' } }) + parseInt({ toString() { log.push('s'); return '8' } }, { valueOf() { log.push('r'); return 10 } }) + log.join()",
            "15v,s,r",
        ),
        (
            "[typeof new Number(5), new Number(5) + 1, Object(1n) + 1n, new Boolean(false) ? 1 : 2, Boolean(''), Boolean([]), String(new Boolean(true))].join()",
            "object,6,2,1,false,true,true",
        ),
        (
            "class N extends Number { twice() { return this * 2 } } new N(21).twice() + (new N(1) instanceof N)",
            "43",
        ),
    ]);
}

#[test]
fn bigints_are_made_cut_and_spelled() {
    check(&[
        (
            "[BigInt(10), BigInt('0xff'), BigInt('-12'), BigInt(''), BigInt(true), BigInt(2 ** 70), BigInt(' 7 ')].join()",
            "10,255,-12,0,1,1180591620717411303424,7",
        ),
        (
            "[() => BigInt(1.5), () => BigInt('x'), () => BigInt(undefined), () => new BigInt(1), () => BigInt(Symbol()), () => BigInt('1n'), () => 1n + 1].map(f => { try { f() } catch (e) { return e.name } }).join()",
            "RangeError,SyntaxError,TypeError,TypeError,TypeError,SyntaxError,TypeError",
        ),
        (
            "[BigInt.asIntN(8, 255n), BigInt.asIntN(8, 128n), BigInt.asUintN(8, -1n), BigInt.asUintN(64, -1n), BigInt.asIntN(0, 5n), BigInt.asIntN(3, 25n), BigInt.asUintN(200, 5n), BigInt.asIntN('4', '9')].join()",
            "-1,-128,255,18446744073709551615,0,1,5,-7",
        ),
        (
            "[(255n).toString(16), (-255n).toString(2), (10n ** 30n).toString(), (123n).toString(36), Object(5n).valueOf(), BigInt.prototype[Symbol.toStringTag]].join()",
            "ff,-11111111,1000000000000000000000000000000,3f,5,BigInt",
        ),
        ("try { BigInt.asUintN(2 ** 53, -1n) } catch (e) { e.name }", "RangeError"),
        ("try { BigInt.asUintN(-1, 1n) } catch (e) { e.name }", "RangeError"),
    ]);
}

#[test]
fn uris_are_encoded_and_decoded() {
    check(&[
        (
            r#"[encodeURIComponent('a b&c/d?\u00e9\u{1F600}'), encodeURI('http://x.y/a b?q=\u00e9#h'), decodeURIComponent('%F0%9F%98%80%20'), decodeURI('%41%2f%23'), escape('a b\u00e9\u03c0'), unescape('%u03c0%E9%zz')].join('|')"#,
            "a%20b%26c%2Fd%3F%C3%A9%F0%9F%98%80|http://x.y/a%20b?q=%C3%A9#h|😀 |A%2f%23|a%20b%E9%u03C0|πé%zz",
        ),
        (
            r#"[() => encodeURI('\ud800'), () => decodeURI('%'), () => decodeURIComponent('%C0%80'), () => decodeURI('%E9')].map(f => { try { f() } catch (e) { return `${e.constructor.name}: ${e.message}` } }).join('|')"#,
            "URIError: URI malformed|URIError: URI malformed|URIError: URI malformed|URIError: URI malformed",
        ),
        (
            r#"encodeURIComponent({ toString() { return '\u00fc' } }) + encodeURIComponent(null) + [encodeURI.length, decodeURIComponent.name].join()"#,
            "%C3%BCnull1,decodeURIComponent",
        ),
    ]);
}
