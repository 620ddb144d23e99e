//! Numbers as ECMAScript prints them (`Number::toString` with radix 10), which RFC 8785 builds on.

/// The spelling of `number`; none for NaN and the infinities, which JSON does not have.
#[must_use]
pub fn ecmascript(number: f64) -> Option<String> {
    if !number.is_finite() {
        return None;
    }
    if number == 0.0 {
        return Some("0".to_owned()); // Negative zero too.
    }
    let sign = if number < 0.0 { "-" } else { "" };
    let (digits, exponent) = shortest(number.abs())?;
    Some(format!("{sign}{}", layout(&digits, exponent)))
}

/// The fewest digits that read back as `number`, of those the closest, and of two equally close the even one.
fn shortest(number: f64) -> Option<(String, i32)> {
    let (digits, exponent) = scientific(&format!("{number:e}"))?;
    // Rust does all of that but the last: of 1424953923781206.25 it makes ….3. Such a tie has exactly one digit
    // more, a five, and nothing after it. No double has more than 767 digits.
    let (exact, exact_exponent) = scientific(&format!("{number:.767e}"))?;
    let below = exact.trim_end_matches('0').strip_suffix('5').filter(|below| below.len() == digits.len());
    let tied = below.filter(|below| exact_exponent == exponent && *below != digits);
    if let Some(below) = tied.filter(|below| below.ends_with(['0', '2', '4', '6', '8'])) {
        // Near a power of two only one of the neighbours may read back as the number.
        let (first, rest) = below.split_at(1);
        if format!("{first}.{rest}e{exponent}").parse() == Ok(number) {
            return Some((below.to_owned(), exponent));
        }
    }
    Some((digits, exponent))
}

/// The digits and the exponent of Rust's `1.25e-7`.
fn scientific(text: &str) -> Option<(String, i32)> {
    let (mantissa, exponent) = text.split_once('e')?;
    let digits = mantissa.chars().filter(|c| *c != '.').collect();
    Some((digits, exponent.parse().ok()?))
}

/// `digits` with the point after the first one, times ten to the `exponent`.
fn layout(digits: &str, exponent: i32) -> String {
    // `point` is the specification's n: where the decimal point is, counted from before the first digit.
    let point = exponent + 1;
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX); // At most 17.
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    match point {
        _ if count <= point && point <= 21 => format!("{digits}{}", zeros(point - count)),
        1..=21 => {
            let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
            format!("{whole}.{fraction}")
        }
        -5..=0 => format!("0.{}{digits}", zeros(-point)),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            format!("{first}{dot}{rest}e{sign}{}", exponent.abs())
        }
    }
}
