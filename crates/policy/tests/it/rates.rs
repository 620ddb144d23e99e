//! A bucket of tokens that is told the time.

use outrigger_policy::{Bucket, Limited, Millis, Rate};

fn later(retry_after_millis: u64) -> Result<(), Limited> {
    Err(Limited::Later { retry_after_millis })
}

#[test]
fn a_burst_passes_and_then_the_rate_holds() {
    let mut bucket = Bucket::new(Rate { tokens: 20, period_millis: 60_000, burst: 5 });
    for _ in 0..5 {
        assert_eq!(bucket.take(Millis(0), 1), Ok(()));
    }
    assert_eq!(bucket.take(Millis(0), 1), later(3000));
    assert_eq!(bucket.take(Millis(2999), 1), later(1));
    assert_eq!(bucket.take(Millis(3000), 1), Ok(()));
    assert_eq!(bucket.take(Millis(3000), 1), later(3000));
}

#[test]
fn an_hour_of_rest_brings_one_burst_and_no_more() {
    let mut bucket = Bucket::new(Rate { tokens: 1000, period_millis: 1000, burst: 3 });
    assert_eq!(bucket.take(Millis(0), 3), Ok(()));
    assert_eq!(bucket.available(Millis(3_600_000)), 3);
    assert_eq!(bucket.take(Millis(3_600_000), 4), Err(Limited::Never { asked: 4, burst: 3 }));
    assert_eq!(bucket.take(Millis(3_600_000), 3), Ok(()));
}

#[test]
fn asking_often_neither_gains_nor_loses_a_fraction() {
    // Three tokens in seven milliseconds: no whole number of tokens in any millisecond.
    let mut bucket = Bucket::new(Rate { tokens: 3, period_millis: 7, burst: 3 });
    bucket.take(Millis(0), 3).unwrap();
    let taken = (1..=7000).filter(|now| bucket.take(Millis(*now), 1).is_ok()).count();
    assert_eq!(taken, 3000);
}

#[test]
fn a_clock_that_goes_backwards_brings_nothing() {
    let mut bucket = Bucket::new(Rate { tokens: 1, period_millis: 1000, burst: 1 });
    bucket.take(Millis(10_000), 1).unwrap();
    assert_eq!(bucket.take(Millis(0), 1), later(1000));
    assert_eq!(bucket.take(Millis(10_999), 1), later(1), "the time before was counted twice");
    assert_eq!(bucket.take(Millis(11_000), 1), Ok(()));
}

#[test]
fn what_is_taken_is_taken_whole_or_not_at_all() {
    let mut bucket = Bucket::new(Rate { tokens: 1, period_millis: 1, burst: 4 });
    bucket.take(Millis(0), 3).unwrap();
    assert_eq!(bucket.take(Millis(0), 2), later(1));
    assert_eq!(bucket.available(Millis(0)), 1);
}

#[test]
fn a_rate_of_zero_lets_nothing_through() {
    for (tokens, period_millis, burst) in [(0, 1000, 5), (5, 0, 5), (5, 1000, 0)] {
        let mut bucket = Bucket::new(Rate { tokens, period_millis, burst });
        assert_eq!(
            bucket.take(Millis(0), 1),
            Err(Limited::Never { asked: 1, burst }),
            "{tokens} {period_millis} {burst}"
        );
        assert_eq!(bucket.take(Millis(u64::MAX), 1), Err(Limited::Never { asked: 1, burst }));
        assert_eq!(bucket.available(Millis(u64::MAX)), 0);
    }
}

#[test]
fn the_greatest_numbers_do_not_overflow() {
    let most = u32::MAX;
    let mut bucket = Bucket::new(Rate { tokens: most, period_millis: most, burst: most });
    assert_eq!(bucket.take(Millis(0), most), Ok(()));
    assert_eq!(bucket.take(Millis(u64::MAX), most), Ok(()));
    assert_eq!(bucket.take(Millis(u64::MAX), most), later(u64::from(most)));
}
