//! Formatting for American English.

use super::check;

#[test]
fn formats_are_what_node_makes_of_them() {
    check(&[
        ("new Intl.NumberFormat('en-US').format(1234567.891)", "1,234,567.891"),
        (
            "new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' }).format(-1234.5)",
            "-$1,234.50",
        ),
        ("new Intl.NumberFormat('en-US', { style: 'currency', currency: 'jpy' }).format(1234.5)", "¥1,235"),
        (
            "new Intl.NumberFormat('en-US', { style: 'currency', currency: 'EUR', currencyDisplay: 'code' }).format(1)",
            "EUR 1.00",
        ),
        (
            "new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD', currencyDisplay: 'name' }).format(2)",
            "2.00 US dollars",
        ),
        (
            "new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD', currencySign: 'accounting' }).format(-5)",
            "($5.00)",
        ),
        ("new Intl.NumberFormat('en-US', { style: 'percent' }).format(0.256)", "26%"),
        (
            "new Intl.NumberFormat('en-US', { style: 'percent', maximumFractionDigits: 1 }).format(0.2565)",
            "25.7%",
        ),
        (
            "new Intl.NumberFormat('en-US', { style: 'unit', unit: 'kilometer-per-hour' }).format(50)",
            "50 km/h",
        ),
        (
            "new Intl.NumberFormat('en-US', { style: 'unit', unit: 'liter', unitDisplay: 'long' }).format(16)",
            "16 liters",
        ),
        ("new Intl.NumberFormat('en-US', { notation: 'compact' }).format(1234567)", "1.2M"),
        (
            "new Intl.NumberFormat('en-US', { notation: 'compact', compactDisplay: 'long' }).format(9876543210)",
            "9.9 billion",
        ),
        ("new Intl.NumberFormat('en-US', { notation: 'scientific' }).format(123456)", "1.235E5"),
        ("new Intl.NumberFormat('en-US', { notation: 'engineering' }).format(123456)", "123.456E3"),
        ("new Intl.NumberFormat('en-US', { minimumFractionDigits: 2 }).format(5)", "5.00"),
        ("new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 }).format(123456)", "123,000"),
        ("new Intl.NumberFormat('en-US', { minimumIntegerDigits: 3, useGrouping: false }).format(7)", "007"),
        (
            "new Intl.NumberFormat('en-US', { signDisplay: 'exceptZero' }).format(0) + new Intl.NumberFormat('en-US', { signDisplay: 'always' }).format(3)",
            "0+3",
        ),
        ("new Intl.NumberFormat('en-US', { useGrouping: false }).format(1234567)", "1234567"),
        (
            "new Intl.NumberFormat('en-US').format(123456789012345678901234567890n)",
            "123,456,789,012,345,678,901,234,567,890",
        ),
        (
            "new Intl.NumberFormat('en-US').format(NaN) + new Intl.NumberFormat('en-US').format(-Infinity)",
            "NaN-∞",
        ),
        ("new Intl.NumberFormat('en-US').format('12.5')", "12.5"),
        (
            "JSON.stringify(new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' }).formatToParts(-1234.5))",
            "[{\"type\":\"minusSign\",\"value\":\"-\"},{\"type\":\"currency\",\"value\":\"$\"},{\"type\":\"integer\",\"value\":\"1\"},{\"type\":\"group\",\"value\":\",\"},{\"type\":\"integer\",\"value\":\"234\"},{\"type\":\"decimal\",\"value\":\".\"},{\"type\":\"fraction\",\"value\":\"50\"}]",
        ),
        (
            "new Intl.NumberFormat('en-US', { style: 'currency' })",
            "threw TypeError: Currency code is required with currency style.",
        ),
        (
            "new Intl.NumberFormat('en-US', { maximumFractionDigits: 101 })",
            "threw RangeError: maximumFractionDigits value is out of range.",
        ),
        ("[3, 1].map(new Intl.NumberFormat('en-US', { minimumFractionDigits: 1 }).format).join()", "3.0,1.0"),
        (
            "(1234.5).toLocaleString() + ' ' + (1234.5).toLocaleString('en-US', { style: 'currency', currency: 'USD' })",
            "1,234.5 $1,234.50",
        ),
        ("(12345678901234567890n).toLocaleString('en-US')", "12,345,678,901,234,567,890"),
        ("[1234.5, new Date(0)].toLocaleString()", "1,234.5,1/1/1970, 12:00:00 AM"),
        ("new Intl.DateTimeFormat('en-US').format(new Date(0))", "1/1/1970"),
        (
            "new Intl.DateTimeFormat('en-US', { dateStyle: 'full', timeStyle: 'long' }).format(0)",
            "Thursday, January 1, 1970 at 12:00:00 AM UTC",
        ),
        (
            "new Intl.DateTimeFormat('en-US', { dateStyle: 'short', timeStyle: 'short' }).format(0)",
            "1/1/70, 12:00 AM",
        ),
        (
            "new Intl.DateTimeFormat('en-US', { year: 'numeric', month: 'long', day: '2-digit' }).format(0)",
            "January 01, 1970",
        ),
        ("new Intl.DateTimeFormat('en-US', { weekday: 'short', hour: 'numeric' }).format(0)", "Thu 12 AM"),
        (
            "new Intl.DateTimeFormat('en-US', { hour: '2-digit', minute: '2-digit', hour12: false }).format(0)",
            "24:00",
        ),
        (
            "new Intl.DateTimeFormat('en-US', { hour: 'numeric', minute: 'numeric', hourCycle: 'h23' }).format(50000000)",
            "13:53",
        ),
        (
            "new Intl.DateTimeFormat('en-US', { hour: 'numeric', minute: 'numeric', second: 'numeric', fractionalSecondDigits: 2 }).format(1234)",
            "12:00:01.23 AM",
        ),
        (
            "new Intl.DateTimeFormat('en-US', { timeZone: 'UTC', timeZoneName: 'short' }).format(0)",
            "1/1/1970, UTC",
        ),
        ("new Intl.DateTimeFormat('en-US', { month: 'narrow' }).format(0)", "J"),
        ("new Intl.DateTimeFormat('en-US', { era: 'short' }).format(-62198755200000)", "1/1/2 BC"),
        (
            "JSON.stringify(new Intl.DateTimeFormat('en-US').formatToParts(0))",
            "[{\"type\":\"month\",\"value\":\"1\"},{\"type\":\"literal\",\"value\":\"/\"},{\"type\":\"day\",\"value\":\"1\"},{\"type\":\"literal\",\"value\":\"/\"},{\"type\":\"year\",\"value\":\"1970\"}]",
        ),
        ("new Intl.DateTimeFormat('en-US').resolvedOptions().timeZone", "UTC"),
        (
            "new Intl.DateTimeFormat('en-US', { dateStyle: 'full', year: 'numeric' })",
            "threw TypeError: Can't set option year when dateStyle is used",
        ),
        ("new Intl.DateTimeFormat('en-US').format(NaN)", "threw RangeError: Invalid time value"),
        ("new Date(0).toLocaleDateString('en-US', { month: 'short', day: 'numeric' })", "Jan 1"),
        ("new Date(0).toLocaleTimeString('en-US', { timeStyle: 'short' })", "12:00 AM"),
        ("new Date(NaN).toLocaleString()", "Invalid Date"),
        ("['b', 'a', 'C', 'á', 'A', 'z'].sort(new Intl.Collator('en-US').compare).join()", "a,A,á,b,C,z"),
        (
            "['x10', 'x9', 'x1'].sort(new Intl.Collator('en-US', { numeric: true }).compare).join()",
            "x1,x9,x10",
        ),
        ("new Intl.Collator('en-US', { sensitivity: 'base' }).compare('a', 'Á')", "0"),
        ("new Intl.Collator('en-US', { ignorePunctuation: true }).compare('a-b', 'ab')", "0"),
        ("'a'.localeCompare('b') + 'b'.localeCompare('a') + 'a'.localeCompare('a')", "0"),
        ("'résumé'.localeCompare('resume', 'en', { sensitivity: 'base' })", "0"),
        (
            "[0, 1, 2, 3, 4, 11, 12, 21, 22, 103].map(n => new Intl.PluralRules('en-US', { type: 'ordinal' }).select(n)).join()",
            "other,one,two,few,other,other,other,one,two,few",
        ),
        ("[0, 1, 1.5, 2].map(n => new Intl.PluralRules('en-US').select(n)).join()", "other,one,other,other"),
        ("new Intl.ListFormat('en-US', { type: 'disjunction' }).format(['a', 'b', 'c'])", "a, b, or c"),
        ("new Intl.ListFormat('en-US').format(['a'])", "a"),
        ("try { new Intl.ListFormat('en-US').format([1]); } catch (e) { e.name }", "TypeError"),
        ("new Intl.RelativeTimeFormat('en-US', { numeric: 'auto' }).format(-1, 'day')", "yesterday"),
        ("new Intl.RelativeTimeFormat('en-US').format(3, 'quarters')", "in 3 quarters"),
        ("new Intl.RelativeTimeFormat('en-US', { style: 'short' }).format(-2, 'month')", "2 mo. ago"),
        ("Intl.getCanonicalLocales(['en-US', 'de-DE']).join()", "en-US,de-DE"),
        ("Intl.NumberFormat('en-US').format(1)", "1"),
        (
            "Object.prototype.toString.call(Intl) + Object.prototype.toString.call(new Intl.NumberFormat())",
            "[object Intl][object Intl.NumberFormat]",
        ),
        ("try { Intl.NumberFormat.prototype.formatToParts.call({}); } catch (e) { e.name }", "TypeError"),
    ]);
}
