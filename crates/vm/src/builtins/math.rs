//! `Math`: numbers go straight through; anything that must be converted first is converted by `math.js`.

use super::{Args, Row, slow};
use crate::exec::Window;
use crate::exec::state::{Exit, Res, State};
use crate::text::number::math;
use crate::value::Value;

macro_rules! rows {
    ($($qualified:literal $intrinsic:literal $f:expr,)*) => { &[$(($qualified, $f), ($intrinsic, $f)),*] };
}

/// Each function twice: as the fast path of the method, and for `math.js` to call with converted numbers.
pub(super) const ROWS: &[Row] = rows! {
    "Math.abs" "MathAbs" |st, w, a| unary(st, w, a, f64::abs),
    "Math.acos" "MathAcos" |st, w, a| unary(st, w, a, f64::acos),
    "Math.acosh" "MathAcosh" |st, w, a| unary(st, w, a, math::acosh),
    "Math.asin" "MathAsin" |st, w, a| unary(st, w, a, f64::asin),
    "Math.asinh" "MathAsinh" |st, w, a| unary(st, w, a, math::asinh),
    "Math.atan" "MathAtan" |st, w, a| unary(st, w, a, f64::atan),
    "Math.atanh" "MathAtanh" |st, w, a| unary(st, w, a, math::atanh),
    "Math.atan2" "MathAtan2" |st, w, a| binary(st, w, a, f64::atan2),
    "Math.cbrt" "MathCbrt" |st, w, a| unary(st, w, a, f64::cbrt),
    "Math.ceil" "MathCeil" |st, w, a| unary(st, w, a, f64::ceil),
    "Math.clz32" "MathClz32" |st, w, a| unary(st, w, a, |x| f64::from(math::clz32(to_uint32(x)))),
    "Math.cos" "MathCos" |st, w, a| unary(st, w, a, f64::cos),
    "Math.cosh" "MathCosh" |st, w, a| unary(st, w, a, f64::cosh),
    "Math.exp" "MathExp" |st, w, a| unary(st, w, a, f64::exp),
    "Math.expm1" "MathExpm1" |st, w, a| unary(st, w, a, f64::exp_m1),
    "Math.floor" "MathFloor" |st, w, a| unary(st, w, a, f64::floor),
    "Math.fround" "MathFround" |st, w, a| unary(st, w, a, math::fround),
    "Math.hypot" "MathHypot" hypot,
    "Math.imul" "MathImul" |st, w, a| binary(st, w, a, |x, y| {
        f64::from(math::imul(to_uint32(x) as i32, to_uint32(y) as i32))
    }),
    "Math.log" "MathLog" |st, w, a| unary(st, w, a, f64::ln),
    "Math.log1p" "MathLog1p" |st, w, a| unary(st, w, a, f64::ln_1p),
    "Math.log10" "MathLog10" |st, w, a| unary(st, w, a, f64::log10),
    "Math.log2" "MathLog2" |st, w, a| unary(st, w, a, f64::log2),
    "Math.max" "MathMax" |st, w, a| fold(st, w, a, f64::NEG_INFINITY, math::max),
    "Math.min" "MathMin" |st, w, a| fold(st, w, a, f64::INFINITY, math::min),
    "Math.pow" "MathPow" |st, w, a| binary(st, w, a, math::pow),
    "Math.random" "MathRandom" |st, _, _| Ok(Value::number(st.random())),
    "Math.round" "MathRound" |st, w, a| unary(st, w, a, math::round),
    "Math.sign" "MathSign" |st, w, a| unary(st, w, a, math::sign),
    "Math.sin" "MathSin" |st, w, a| unary(st, w, a, f64::sin),
    "Math.sinh" "MathSinh" |st, w, a| unary(st, w, a, f64::sinh),
    "Math.sqrt" "MathSqrt" |st, w, a| unary(st, w, a, f64::sqrt),
    "Math.tan" "MathTan" |st, w, a| unary(st, w, a, f64::tan),
    "Math.tanh" "MathTanh" |st, w, a| unary(st, w, a, f64::tanh),
    "Math.trunc" "MathTrunc" |st, w, a| unary(st, w, a, f64::trunc),
};

/// A number argument; an object is a case for the JavaScript version.
fn number(st: &mut State, v: Value) -> Result<f64, Exit> {
    if v.is_object() { Err(Exit::Slow) } else { st.primitive_to_number(v) }
}

fn unary(st: &mut State, w: &Window, args: Args, f: fn(f64) -> f64) -> Res {
    Ok(Value::number(f(number(st, args.get(w, 0))?)))
}

fn binary(st: &mut State, w: &Window, args: Args, f: fn(f64, f64) -> f64) -> Res {
    if args.get(w, 0).is_object() || args.get(w, 1).is_object() {
        return slow();
    }
    let (x, y) = (number(st, args.get(w, 0))?, number(st, args.get(w, 1))?);
    Ok(Value::number(f(x, y)))
}

fn fold(st: &mut State, w: &Window, args: Args, start: f64, f: fn(f64, f64) -> f64) -> Res {
    if args.all(w).iter().any(|v| v.is_object()) {
        return slow();
    }
    st.burn(u64::from(args.argc))?;
    let mut result = start;
    for n in 0..args.argc {
        result = f(result, number(st, args.get(w, n))?);
    }
    Ok(Value::number(result))
}

fn hypot(st: &mut State, w: &mut Window, args: Args) -> Res {
    if args.all(w).iter().any(|v| v.is_object()) {
        return slow();
    }
    st.burn(u64::from(args.argc))?;
    let values = args.all(w).to_vec();
    let values = values.into_iter().map(|v| number(st, v)).collect::<Result<Vec<f64>, Exit>>()?;
    Ok(Value::number(math::hypot(&values)))
}

/// ToUint32 of a number.
fn to_uint32(x: f64) -> u32 {
    crate::text::number::convert::to_uint32(x)
}

impl State {
    /// The next random number from the embedder's seed: xorshift64*, 53 bits.
    fn random(&mut self) -> f64 {
        let mut x = self.random;
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.random = x;
        (x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }
}
