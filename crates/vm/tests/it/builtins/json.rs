//! JSON in both directions.

use super::check;

#[test]
fn values_become_text() {
    check(&[
        (
            r#"JSON.stringify({ a: [1, 'x\n"', null, undefined, () => 1, NaN, -0, 1.5, true], b: undefined, c: {}, d: [], 1: 2, 'é☃': '\ud800' })"#,
            r#"{"1":2,"a":[1,"x\n\"",null,null,null,null,0,1.5,true],"c":{},"d":[],"é☃":"\ud800"}"#,
        ),
        (
            "JSON.stringify({ a: [1, { b: 2 }], c: {}, d: [], e: 'x' }, null, 2)",
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ],\n  \"c\": {},\n  \"d\": [],\n  \"e\": \"x\"\n}",
        ),
        (
            r#"JSON.stringify([[], {}, [[1]]], null, '\t--too long a gap')"#,
            "[\n\t--too lon[],\n\t--too lon{},\n\t--too lon[\n\t--too lon\t--too lon[\n\t--too lon\t--too lon\t--too lon1\n\t--too lon\t--too lon]\n\t--too lon]\n]",
        ),
        (
            "JSON.stringify({ a: 1, b: [1, { a: 2, c: 3 }] }, ['a', 'b', 'a', 1])",
            r#"{"a":1,"b":[1,{"a":2}]}"#,
        ),
        (
            "JSON.stringify({ a: 1, b: [1] }, function (k, v) { return typeof v === 'number' ? v + (this === undefined) : v; })",
            r#"{"a":1,"b":[1]}"#,
        ),
        (
            "JSON.stringify({ toJSON(k) { return [k, this.x]; }, x: 1 }) + JSON.stringify({ d: { toJSON: k => k } })",
            r#"["",1]{"d":"d"}"#,
        ),
        (
            "JSON.stringify([Object(1), Object('s'), Object(false), new Date(0), /x/, new Map([[1, 2]]), Symbol('q')])",
            r#"[1,"s",false,"1970-01-01T00:00:00.000Z",{},{},null]"#,
        ),
        (
            "[JSON.stringify(undefined), JSON.stringify(() => 1), JSON.stringify('s'), JSON.stringify(null), JSON.stringify(Symbol())].join()",
            r#",,"s",null,"#,
        ),
        (
            "JSON.stringify({ get a() { return 3; }, [Symbol('s')]: 1 }) + JSON.stringify(Object.create({ inherited: 1 }, { hidden: { value: 1 }, shown: { value: 2, enumerable: true } }))",
            r#"{"a":3}{"shown":2}"#,
        ),
        ("JSON.stringify(new Proxy({ a: 1, b: new Proxy([2], {}) }, {}))", r#"{"a":1,"b":[2]}"#),
        (
            "JSON.stringify([1, , 3]) + JSON.stringify(Object.assign([1], { x: 2 })) + JSON.stringify((function () { return arguments; })(1))",
            r#"[1,null,3][1]{"0":1}"#,
        ),
        (
            "Object.prototype.toJSON = function () { return 'tampered'; }; JSON.stringify([{ a: 1 }])",
            r#""tampered""#,
        ),
        (
            "BigInt.prototype.toJSON = function () { return `${this}n`; }; JSON.stringify({ a: 5n })",
            r#"{"a":"5n"}"#,
        ),
    ]);
}

#[test]
fn text_becomes_values() {
    check(&[
        (
            r#"JSON.stringify(JSON.parse('{"a":[1,-2.5e3,{"b":null}],"c":"\\u0041\\n","__proto__":5,"dup":1,"dup":2,"0":1}'))"#,
            r#"{"0":1,"a":[1,-2500,{"b":null}],"c":"A\n","__proto__":5,"dup":2}"#,
        ),
        (
            r#"const o = JSON.parse('{"__proto__":{"x":1}}'); o.x + ',' + Object.keys(o)"#,
            "undefined,__proto__",
        ),
        (r#"JSON.parse('"\\ud83d\\ude00☃"').length + JSON.parse('{"☃":1,"é":2}')['é']"#, "5"),
        (
            "JSON.parse(' [1 , 2 ] ').length + typeof JSON.parse('-0') + Object.is(JSON.parse('-0'), -0)",
            "2numbertrue",
        ),
        (
            r#"JSON.stringify(JSON.parse('[1,2,{"a":1,"b":2}]', function (k, v) { return k === 'a' ? undefined : typeof v === 'number' ? v * 2 : v; }))"#,
            r#"[2,4,{"b":4}]"#,
        ),
        (
            r#"const order = []; JSON.parse('{"a":[1,2],"b":{"c":3}}', (k, v) => { order.push(k); return v; }); order.join()"#,
            "0,1,a,c,b,",
        ),
        ("JSON.parse({ toString: () => '[7]' })[0] + JSON.parse(true)", "8"),
        (
            r#"const rows = JSON.parse('[' + Array.from({ length: 300 }, (_, i) => `{"id":${i},"k${i % 3}":"v"}`).join() + ']'); rows[299].id + Object.keys(rows[4]).join() + rows.length"#,
            "299id,k1300",
        ),
        (
            "const many = {}; for (let i = 0; i < 3000; i++) many['k' + i] = i; const back = JSON.parse(JSON.stringify(many)); back.k2999 + Object.keys(back).length",
            "5999",
        ),
    ]);
}

#[test]
fn what_cannot_be_said_or_read_is_told_in_the_words_of_node() {
    check(&[
        (
            "const a = {}; a.x = { y: a }; try { JSON.stringify(a); } catch (e) { e.name + ': ' + e.message }",
            "TypeError: Converting circular structure to JSON\n    --> starting at object with constructor 'Object'\n    |     property 'x' -> object with constructor 'Object'\n    --- property 'y' closes the circle",
        ),
        (
            "const a = {}; a.x = [{ y: { z: { w: a } } }]; try { JSON.stringify({ q: a }); } catch (e) { e.message }",
            "Converting circular structure to JSON\n    --> starting at object with constructor 'Object'\n    |     property 'x' -> object with constructor 'Array'\n    |     index 0 -> object with constructor 'Object'\n    |     ...\n    |     property 'z' -> object with constructor 'Object'\n    --- property 'w' closes the circle",
        ),
        (
            "try { JSON.stringify(1n); } catch (e) { e.name + ': ' + e.message }",
            "TypeError: Do not know how to serialize a BigInt",
        ),
        (
            r#"try { JSON.parse('{"a":}'); } catch (e) { e.name + ': ' + e.message }"#,
            r#"SyntaxError: Unexpected token '}', "{"a":}" is not valid JSON"#,
        ),
        ("try { JSON.parse(''); } catch (e) { e.message }", "Unexpected end of JSON input"),
        (
            "try { JSON.parse('[1,]'); } catch (e) { e.message }",
            r#"Unexpected token ']', "[1,]" is not valid JSON"#,
        ),
        ("try { JSON.parse(Symbol()); } catch (e) { e.name }", "TypeError"),
        ("try { JSON.parse(undefined); } catch (e) { e.message }", r#""undefined" is not valid JSON"#),
    ]);
}

#[test]
fn depth_needs_no_stack_in_either_direction() {
    check(&[
        (
            "let d = []; for (let i = 0; i < 100000; i++) d = [d]; const text = JSON.stringify(d); \
             let q = JSON.parse(text), n = 0; while (q.length) { q = q[0]; n++; } text.length + ' ' + n",
            "200002 100000",
        ),
        (
            "let d = []; for (let i = 0; i < 10000; i++) d = { d }; JSON.stringify(d, (k, v) => v).length",
            "60002",
        ),
        (
            "const text = '['.repeat(10000) + ']'.repeat(10000); let n = 0; \
             JSON.parse(text, (k, v) => { n++; return v; }); n",
            "10000",
        ),
    ]);
}

#[test]
fn a_text_that_needs_many_collections_to_be_read_is_read_at_a_fair_price() {
    // Some 30 MB of values in one instruction: it begins again a few times, and pays once.
    let source = "const row = '{\"id\":1,\"name\":\"a name of some length\",\"list\":[1,2,3]}'; \
                  const text = '[' + (row + ',').repeat(99999) + row + ']'; JSON.parse(text).length";
    assert_eq!(super::eval(source), "100000");
}

#[test]
fn a_text_larger_than_the_heap_is_a_limit_and_not_a_crash() {
    let source =
        "const big = 'x'.repeat(1 << 20); JSON.stringify(Array.from({ length: 100000 }, () => big)).length";
    assert_eq!(super::eval(source), "limit heap limit of 268435456 bytes exceeded");
    let indented = "let d = []; for (let i = 0; i < 50000; i++) d = [d]; JSON.stringify(d, null, 10).length";
    assert_eq!(super::eval(indented), "limit heap limit of 268435456 bytes exceeded");
}
