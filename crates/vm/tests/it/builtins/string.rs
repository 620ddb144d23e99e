//! Strings, as node has them.

use super::check;

#[test]
fn a_string_is_read_by_unit_by_code_point_and_from_the_end() {
    check(&[
        (
            r#"JSON.stringify(['abc'.at(0), 'abc'.at(-1), 'abc'.at(3), 'abc'.charAt(9), 'a\u{1F600}'.charAt(1).length, 'abc'.charCodeAt(1), 'abc'.charCodeAt(-1)])"#,
            r#"["a","c",null,"",1,98,null]"#,
        ),
        (
            r#"['\u{1F600}x'.codePointAt(0), '\u{1F600}x'.codePointAt(1), '\u{1F600}x'.codePointAt(2), '\u{1F600}x'.codePointAt(3)].join()"#,
            "128512,56832,120,",
        ),
        (r#"[...'a\u{1F600}\ud800b'].map(c => c.length).join()"#, "1,2,1,1"),
        (
            r#"'x\u{1F600}'.length + '|' + 'abc'[1] + '|' + 'abc'['length'] + '|' + 'abc'[7]"#,
            "3|b|3|undefined",
        ),
        (
            "const it = 'ab'[Symbol.iterator](); [it.next().value, it.next().value, it.next().done, it.next().done, it[Symbol.toStringTag]].join()",
            "a,b,true,true,String Iterator",
        ),
    ]);
}

#[test]
fn searches_answer_places_whatever_the_width() {
    check(&[
        (
            "['banana'.indexOf('an'), 'banana'.indexOf('an', 2), 'banana'.indexOf('', 99), 'banana'.indexOf('x'), 'banana'.lastIndexOf('an'), 'banana'.lastIndexOf('an', 2), 'banana'.lastIndexOf('', NaN)].join()",
            "1,3,6,-1,3,1,6",
        ),
        (
            r#"const w = 'p\u03c0q\u03c0'.repeat(30); [w.indexOf('q\u03c0p', 40), w.lastIndexOf('\u03c0q', 50), w.includes('qq'), w.includes('\u03c0q\u03c0p'), w.indexOf('p', 118)].join()"#,
            "42,49,false,true,-1",
        ),
        (
            "['abc'.includes('b', 2), 'abc'.startsWith('b', 1), 'abc'.endsWith('b', 2), 'abc'.endsWith(''), 'abc'.startsWith('', 9), 'undefined'.includes()].join()",
            "false,true,true,true,true,true",
        ),
        ("try { 'a'.includes(/a/) } catch (e) { `${e.name}` }", "TypeError"),
        ("const r = /a/; r[Symbol.match] = false; '/a/'.includes(r)", "true"),
        (
            "'abcabc'.lastIndexOf('c', -1) + ',' + 'abc'.lastIndexOf('abc', -Infinity) + ',' + 'abc'.indexOf('c', Infinity)",
            "-1,0,-1",
        ),
    ]);
}

#[test]
fn parts_are_cut_by_every_rule_the_language_has() {
    check(&[
        (
            "['abcdef'.slice(-3, -1), 'abcdef'.slice(4, 2), 'abcdef'.substring(4, 2), 'abcdef'.substring(NaN, 3), 'abcdef'.substr(-3, 2), 'abcdef'.substr(2), 'abcdef'.slice(2, undefined)].join()",
            "de,,cd,abc,de,cdef,cdef",
        ),
        (
            "JSON.stringify(['a,b,,c'.split(','), 'a,b,c'.split(',', 2), 'abc'.split(''), ''.split(''), ''.split(','), 'abc'.split(), 'abc'.split(undefined, 0), 'aXbX'.split('X'), 'abc'.split('abc')])",
            r#"[["a","b","","c"],["a","b"],["a","b","c"],[],[""],["abc"],[],["a","b",""],["",""]]"#,
        ),
        (
            r#"JSON.stringify(['a1b2'.split(/\d/), 'a1b2'.split(/(\d)/), 'abc'.split(/(?:)/), ''.split(/x/), ''.split(/(?:)/), 'A<B>bold</B>'.split(/<(\/)?([^<>]+)>/), 'ab'.split(/(?:)/u, 1), 'test'.split(/(?=s)/), 'a b c'.split(/ /y)])"#,
            r#"[["a","b",""],["a","1","b","2",""],["a","b","c"],[""],[],["A",null,"B","bold","/","B",""],["a"],["te","st"],["a","b","c"]]"#,
        ),
        (
            r#"JSON.stringify(['  a b\u00a0\ufeff'.trim(), ' x '.trimStart(), ' x '.trimEnd(), '\u180e'.trim().length, '\u2029a'.trim()])"#,
            r#"["a b","x "," x",1,"a"]"#,
        ),
        (
            "String.prototype.trimLeft === String.prototype.trimStart && String.prototype.trimRight.name",
            "trimEnd",
        ),
        ("const big = 'x'.repeat(1e5); big.slice(10, 60).length + big.slice(1)[0]", "50x"),
    ]);
}

#[test]
fn new_strings_are_built_of_others() {
    check(&[
        (
            r#"['ab'.repeat(3), 'ab'.repeat(0), ''.repeat(1e9).length, 'a'.concat(1, null, undefined, [2]), 'x'.padStart(5, 'ab'), 'x'.padEnd(4), 'abc'.padStart(2), 'x'.padEnd(3, ''), '\u{1F600}'.padStart(5, '\u03c0')].join('|')"#,
            "ababab||0|a1nullundefined2|ababx|x   |abc|x|πππ😀",
        ),
        ("try { 'a'.repeat(-1) } catch (e) { `${e}` }", "RangeError: Invalid count value: -1"),
        ("try { 'a'.repeat(Infinity) } catch (e) { `${e}` }", "RangeError: Invalid count value: Infinity"),
        ("try { 'a'.padEnd(2 ** 30) } catch (e) { `${e}` }", "RangeError: Invalid string length"),
        (
            "[String.fromCharCode(65, 66.9, 65536 + 67, '68'), String.fromCodePoint(97, 0x1F600).length, String.fromCharCode().length].join()",
            "ABCD,3,0",
        ),
        ("try { String.fromCodePoint(1.5) } catch (e) { `${e}` }", "RangeError: Invalid code point 1.5"),
        (
            "try { String.fromCodePoint(1114112) } catch (e) { `${e}` }",
            "RangeError: Invalid code point 1114112",
        ),
        (r#"String.raw`a\n${1}b${2}` + String.raw({ raw: 'xyz' }, 0, 1, 2)"#, r#"a\n1b2x0y1z"#),
        (
            r#"['I\u0307\u00df\ufb03'.toUpperCase(), '\u0130\u03a3A\u03a3'.toLowerCase(), '\u00ff'.toUpperCase(), 'ABC'.toLocaleLowerCase()].map(s => [...s].map(c => c.codePointAt(0).toString(16)).join(' ')).join()"#,
            "49 307 53 53 46 46 49,69 307 3c3 61 3c2,178,61 62 63",
        ),
        (
            r#"['\u1e9b\u0323'.normalize('NFC'), '\u1e9b\u0323'.normalize('NFD'), '\u1e9b\u0323'.normalize('NFKC'), '\u1e9b\u0323'.normalize('NFKD'), 'e\u0301'.normalize()].map(s => s.length).join()"#,
            "2,3,1,3,1",
        ),
        ("try { 'a'.normalize('nfc') } catch (e) { `${e.name}` }", "RangeError"),
        (
            r#"['ab\ud800'.isWellFormed(), 'ab\ud83d\ude00'.isWellFormed(), 'ab\udc00c'.toWellFormed().charCodeAt(2)].join()"#,
            "false,true,65533",
        ),
        (
            "[String(Symbol('d')), String(null), String(-0), String([1, [2, 3]]), String({}), new String('ab').length, Object.keys(new String('ab')).join()].join()",
            "Symbol(d),null,0,1,2,3,[object Object],2,0,1",
        ),
    ]);
}

#[test]
fn texts_are_replaced_by_texts_and_by_functions() {
    check(&[
        (
            r#"['abcabc'.replace('b', '[$&]'), 'abcabc'.replaceAll('b', "[$`|$']"), 'abc'.replace('x', 'y'), 'aaa'.replaceAll('', '-'), 'abc'.replace('', '$$'), 'abc'.replaceAll('c', '$1$0')].join()"#,
            "a[b]cabc,a[a|cabc]ca[abca|c]c,abc,-a-a-a-,$abc,ab$1$0",
        ),
        (
            "'a-b-c'.replaceAll('-', (m, at, s) => `${m}${at}${s.length}`) + 'xyx'.replace('x', () => '$&')",
            "a-15b-35c$&yx",
        ),
        ("try { 'a'.replaceAll(/a/, 'b') } catch (e) { `${e.name}` }", "TypeError"),
        ("'abc'.replace({ [Symbol.replace](s, r) { return s + r + 'own' } }, 1)", "abc1own"),
        (
            "'aaa'.replaceAll(/a/g, (m, i) => i) + 'aba'.replaceAll(/(?<x>a)/g, '<$<x>$1$2>')",
            "012<aa$2>b<aa$2>",
        ),
    ]);
}

#[test]
fn strings_are_ordered_as_in_english() {
    check(&[
        (
            r#"[['b', 'a'], ['a', 'A'], ['a', 'a'], ['r\u00e9sum\u00e9', 'resume'], ['10', '2'], ['', 'a'], ['\u00e4', 'z']].map(([x, y]) => x.localeCompare(y)).join()"#,
            "1,-1,0,1,-1,-1,-1",
        ),
        (
            "['item10', 'item9', 'Item1'].sort((a, b) => a.localeCompare(b, undefined, { numeric: true })).join() + 'a'.localeCompare('A', 'en', { sensitivity: 'base' })",
            "Item1,item9,item100",
        ),
    ]);
}

#[test]
fn conversions_happen_in_the_order_of_the_language() {
    check(&[
        (
            "const log = []; const o = (n, v) => ({ toString() { log.push(n + 's'); return v }, valueOf() { log.push(n + 'v'); return v } }); String.prototype.slice.call(o('t', 'abcdef'), o('a', 1), o('b', 3)) + log.join()",
            "bcts,av,bv",
        ),
        (
            "const log = []; const o = (n, v) => ({ toString() { log.push(n + 's'); return v }, valueOf() { log.push(n + 'v'); return v } }); String.prototype.padStart.call(o('t', 'x'), o('n', 3), o('f', '*')) + log.join()",
            "**xts,nv,fs",
        ),
        (
            "const log = []; const o = (n, v) => ({ toString() { log.push(n + 's'); return v }, valueOf() { log.push(n + 'v'); return v } }); String.prototype.split.call(o('t', 'a.b'), o('s', '.'), o('l', 1)).length + log.join()",
            "1ts,lv,ss",
        ),
        (
            "try { String.prototype.trim.call(null) } catch (e) { `${e}` }",
            "TypeError: String.prototype.trim called on null or undefined",
        ),
        (
            "try { String.prototype.at.call(undefined, { valueOf() { throw 'no' } }) } catch (e) { `${e.name}` }",
            "TypeError",
        ),
        (
            "try { `${Symbol()}` } catch (e) { `${e}` }",
            "TypeError: Cannot convert a Symbol value to a string",
        ),
        (
            "Array.prototype[0] = 'guest'; [1, 2].length + 'abc'.endsWith('c') + 'abc'.split('').join() + ''.split('').length",
            "3a,b,c0",
        ),
        (
            "['at', 'padStart', 'indexOf', 'localeCompare', 'normalize', 'replace', 'split', 'concat'].map(n => String.prototype[n].length).join()",
            "1,1,1,1,0,2,2,1",
        ),
    ]);
}
