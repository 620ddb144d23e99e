//! Dates.

use super::check;

#[test]
fn dates_are_what_node_makes_of_them() {
    check(&[
        ("new Date(0).toISOString()", "1970-01-01T00:00:00.000Z"),
        ("new Date(2020, 0).toISOString()", "2020-01-01T00:00:00.000Z"),
        ("new Date(99, 0).toISOString()", "1999-01-01T00:00:00.000Z"),
        ("new Date(2020, 1, 31, 25, 61, 61, 1001).toISOString()", "2020-03-03T02:02:02.001Z"),
        ("new Date(NaN).getTime()", "NaN"),
        ("`${new Date(NaN)}`", "Invalid Date"),
        ("new Date(8.64e15).toISOString()", "+275760-09-13T00:00:00.000Z"),
        ("`${new Date(8.64e15 + 1).getTime()}`", "NaN"),
        ("new Date('2020-02-30T00:00:00Z').getTime()", "1583020800000"),
        ("new Date('2020-02-29').toUTCString()", "Sat, 29 Feb 2020 00:00:00 GMT"),
        ("new Date('Thu, 01 Jan 1970 00:00:00 GMT+0200').getTime()", "-7200000"),
        ("new Date(new Date(5)).getTime()", "5"),
        ("new Date({ valueOf() { return 7; } }).getTime()", "7"),
        ("new Date({ toString() { return '1970-01-02'; }, valueOf() { return {}; } }).getTime()", "86400000"),
        ("typeof Date()", "string"),
        ("Date.UTC(2020)", "1577836800000"),
        ("Date.UTC(2020, 11, 31, 23, 59, 59, 999)", "1609459199999"),
        ("Date.UTC()", "NaN"),
        (
            "Date.length + ',' + Date.UTC.length + ',' + Date.prototype.setHours.length + ',' + Date.name",
            "7,7,4,Date",
        ),
        ("Date.parse('2020-01-01T00:00:00.123456Z')", "1577836800123"),
        ("Date.parse('1 Jan 2020')", "1577836800000"),
        ("const d = new Date(0); d.setFullYear(2000, 1, 29); d.toISOString()", "2000-02-29T00:00:00.000Z"),
        ("const d = new Date(0); d.setMonth(13); d.toISOString()", "1971-02-01T00:00:00.000Z"),
        ("const d = new Date(0); d.setHours(); `${d.getTime()}`", "NaN"),
        ("const d = new Date(NaN); d.setFullYear(2001); d.toISOString()", "2001-01-01T00:00:00.000Z"),
        ("const d = new Date(NaN); `${d.setMonth(1)}`", "NaN"),
        ("const d = new Date(0); d.setMilliseconds(-1); d.toISOString()", "1969-12-31T23:59:59.999Z"),
        (
            "const d = new Date(2020, 5, 15); [d.getDay(), d.getDate(), d.getYear(), d.getTimezoneOffset()].join()",
            "1,15,120,0",
        ),
        ("const a = new Date(5), b = new Date(3); a - b", "2"),
        ("new Date(0) + 1", "Thu Jan 01 1970 00:00:00 GMT+0000 (Coordinated Universal Time)1"),
        ("`${new Date(1e12)}`", "Sun Sep 09 2001 01:46:40 GMT+0000 (Coordinated Universal Time)"),
        ("new Date(1e12)[Symbol.toPrimitive]('number')", "1000000000000"),
        (
            "JSON.stringify({ d: new Date(0), n: new Date(NaN) })",
            "{\"d\":\"1970-01-01T00:00:00.000Z\",\"n\":null}",
        ),
        ("new Date(-1).toISOString()", "1969-12-31T23:59:59.999Z"),
        ("new Date(-62198755200000).toISOString()", "-000001-01-01T00:00:00.000Z"),
        ("new Date(-62198755200000).toUTCString()", "Fri, 01 Jan -0001 00:00:00 GMT"),
        (
            "new Date(0).toDateString() + '|' + new Date(0).toTimeString()",
            "Thu Jan 01 1970|00:00:00 GMT+0000 (Coordinated Universal Time)",
        ),
        ("Object.prototype.toString.call(new Date())", "[object Date]"),
        (
            "class D extends Date { get x() { return this.getTime() + 1; } } const d = new D(41); d.x + ' ' + (d instanceof Date)",
            "42 true",
        ),
        ("Date.prototype.getTime.call({})", "threw TypeError: this is not a Date object."),
        ("new Date(NaN).toISOString()", "threw RangeError: Invalid time value"),
        ("Object.getOwnPropertyDescriptor(Date.prototype, Symbol.toPrimitive).writable", "false"),
        ("Date.prototype.toGMTString === Date.prototype.toUTCString", "true"),
        ("Reflect.ownKeys(Date).join()", "length,name,prototype,now,parse,UTC"),
        (
            "const log = []; new Date({ valueOf() { log.push('y'); return 1; } }, { valueOf() { log.push('m'); return 1; } }); log.join()",
            "y,m",
        ),
    ]);
}
