//! Property sites that see several shapes, and the ends of loops: what is remembered never changes a result.

use crate::eval::{eval, eval_at};
use outrigger_vm::heap::Pace;

/// One site reads objects of many shapes, own and inherited.
const READS: &str = "const out = [];
    const read = o => o.x;
    const proto = { x: 'p' };
    const heirs = [Object.create(proto), { x: 1 }, { y: 0, x: 2 }, Object.create({ z: 0, x: 3 }), [4]];
    for (let i = 0; i < 10; i++) out.push(read(heirs[i % 5]));";

#[test]
fn one_site_reads_objects_of_many_shapes() {
    let source = format!("{READS} out.join()");
    let expected = "p,1,2,3,,p,1,2,3,";
    assert_eq!(eval(&source), expected);
    assert_eq!(eval_at(&source, Pace::Torture), expected);
}

#[test]
fn a_prototype_that_changes_is_seen_by_a_site_that_knew_it() {
    let tail = "proto.x = 'q'; out.push(read(heirs[0])); delete proto.x; out.push(read(heirs[0]));
        Object.prototype.x = 'base'; out.push(read(heirs[0]), read(heirs[4]));
        Object.defineProperty(proto, 'x', { get() { return 'got'; } }); out.push(read(heirs[0]));
        out.slice(10).join()";
    assert_eq!(eval(&format!("{READS} {tail}")), "q,,base,base,got");
}

#[test]
fn one_site_writes_and_adds_to_objects_of_many_shapes() {
    let source = "const put = (o, v) => { o.x = v; };
        const objects = [];
        for (let i = 0; i < 12; i++) objects.push(i % 3 === 0 ? {} : i % 3 === 1 ? { y: 1 } : { x: 0, y: 1 });
        for (const o of objects) put(o, 7);
        for (const o of objects) put(o, 8);
        const frozen = Object.freeze({ x: 1 });
        let refused = 0;
        try { put(frozen, 9); } catch (e) { refused += e instanceof TypeError ? 1 : 0; }
        let set = 0;
        put({ set x(v) { set = v; } }, 10);
        put(Object.create({ set x(v) { set += v; } }), 5);
        JSON.stringify([objects.slice(0, 3), refused, set])";
    let expected = r#"[[{"x":8},{"y":1,"x":8},{"x":8,"y":1}],1,15]"#;
    assert_eq!(eval(source), expected);
    assert_eq!(eval_at(source, Pace::Torture), expected);
}

#[test]
fn loops_end_where_their_tests_say_whatever_is_compared() {
    let source = "const out = [];
        let n = 0;
        for (let i = 0; i < 2.5; i++) n++;
        out.push(n);
        for (let i = 0; i < '3'; i++) n++;
        out.push(n);
        let asked = 0;
        const limit = { valueOf() { asked++; return 4; } };
        for (let i = 0; i < limit; i++) n++;
        out.push(n, asked);
        let big = 0n;
        do big++; while (big < 5);
        out.push(big);
        while (n < NaN) n = -1;
        out.push(n, -0 === 0 ? 'zero' : 'none');
        for (let x = -0.5; x < 0; x += 0.5) if (x === 0) n = 'never';
        let z = -0, same = 0;
        if (z === 0) same++;
        if (z !== 0) same--;
        if ('0' === 0) same = 'loose';
        out.push(same);
        out.join()";
    assert_eq!(eval(source), "3,6,10,5,5,10,zero,1");
}
