//! Budgets refuse before the spend and never lose count.

use outrigger_policy::{
    Balance, Budgets, Exhausted, Micros, MoneyError, Reason, Resource, Round, Settled, Subject,
};

const NOTHING: Settled = Settled { overdrawn: Vec::new() };

fn remaining(budgets: &Budgets, resource: Resource) -> Option<u64> {
    budgets.balance(resource).remaining
}

#[test]
fn a_reservation_is_refused_before_the_spend() {
    let mut budgets = Budgets::new([(Resource::OutputTokens, 100)]);
    let first = budgets.reserve(&[(Resource::OutputTokens, 60)]).unwrap();
    let error = budgets.reserve(&[(Resource::OutputTokens, 41)]).unwrap_err();
    let expected =
        Exhausted { resource: Resource::OutputTokens, limit: 100, spent: 0, reserved: 60, asked: 41 };
    assert_eq!(error, expected);
    let sentence = "the budget of 100 output_tokens does not cover 41 more: 0 are spent and 60 are reserved";
    assert_eq!(error.to_string(), sentence);

    // The work was cheaper than feared.
    assert_eq!(budgets.settle(first, &[(Resource::OutputTokens, 10)]), NOTHING);
    let rest = budgets.reserve(&[(Resource::OutputTokens, 90)]).unwrap();
    assert_eq!(remaining(&budgets, Resource::OutputTokens), Some(0));
    assert!(budgets.reserve(&[(Resource::OutputTokens, 1)]).is_err());
    budgets.release(rest);
    assert_eq!(remaining(&budgets, Resource::OutputTokens), Some(90));
}

#[test]
fn several_resources_are_reserved_together_or_not_at_all() {
    let mut budgets = Budgets::new([(Resource::Turns, 1), (Resource::Money, 10)]);
    let error = budgets.reserve(&[(Resource::Turns, 1), (Resource::Money, 11)]).unwrap_err();
    assert_eq!(error.resource, Resource::Money);
    assert_eq!(remaining(&budgets, Resource::Turns), Some(1), "a part stayed reserved");
    let twice = [(Resource::Money, 6), (Resource::Money, 5)];
    assert_eq!(budgets.reserve(&twice).unwrap_err().asked, 11);
}

#[test]
fn work_that_cost_more_than_was_reserved_is_counted_and_ends_the_budget() {
    let mut budgets = Budgets::new([(Resource::InputTokens, 100)]);
    let reservation = budgets.reserve(&[(Resource::InputTokens, 10)]).unwrap();
    let settled = budgets.settle(reservation, &[(Resource::InputTokens, 130)]);
    assert_eq!(settled.overdrawn, [(Resource::InputTokens, 30)]);
    let balance = budgets.balance(Resource::InputTokens);
    let expected = Balance {
        resource: Resource::InputTokens,
        limit: Some(100),
        spent: 130,
        reserved: 0,
        remaining: Some(0),
    };
    assert_eq!(balance, expected);
    assert!(budgets.reserve(&[(Resource::InputTokens, 0)]).is_err(), "an overdrawn budget is closed");
}

#[test]
fn a_budget_that_is_spent_to_the_last_is_not_overdrawn() {
    let mut budgets = Budgets::new([(Resource::WallMillis, 1000)]);
    assert_eq!(budgets.spend(&[(Resource::WallMillis, 1000)]), NOTHING);
    assert_eq!(budgets.spend(&[(Resource::WallMillis, 1)]).overdrawn, [(Resource::WallMillis, 1)]);
}

#[test]
fn a_resource_without_a_limit_is_counted_and_never_refused() {
    let mut budgets = Budgets::new([(Resource::Turns, 3)]);
    let reservation = budgets.reserve(&[(Resource::Bytes, u64::MAX)]).unwrap();
    assert_eq!(budgets.settle(reservation, &[(Resource::Bytes, 5)]), NOTHING);
    let balances: Vec<_> = budgets.balances().map(|b| (b.resource, b.limit, b.spent, b.remaining)).collect();
    assert_eq!(balances, [(Resource::Turns, Some(3), 0, Some(3)), (Resource::Bytes, None, 5, None)]);
}

#[test]
fn hostile_amounts_exhaust_a_budget_and_never_wrap_it() {
    let mut budgets = Budgets::new([(Resource::Money, u64::MAX - 1)]);
    assert!(budgets.reserve(&[(Resource::Money, u64::MAX)]).is_err());
    assert_eq!(
        budgets.spend(&[(Resource::Money, u64::MAX), (Resource::Money, u64::MAX)]).overdrawn,
        [(Resource::Money, 1)]
    );
    assert!(budgets.reserve(&[(Resource::Money, 1)]).is_err());

    let mut budgets = Budgets::new([(Resource::Money, u64::MAX)]);
    let _held = budgets.reserve(&[(Resource::Money, u64::MAX)]).unwrap();
    let error = budgets.reserve(&[(Resource::Money, 1), (Resource::Money, u64::MAX)]).unwrap_err();
    assert_eq!((error.reserved, error.asked), (u64::MAX, u64::MAX));
}

#[test]
fn a_reservation_that_is_lost_stays_reserved() {
    let mut budgets = Budgets::new([(Resource::ToolCalls, 2)]);
    drop(budgets.reserve(&[(Resource::ToolCalls, 1)]).unwrap());
    assert_eq!(remaining(&budgets, Resource::ToolCalls), Some(1));
}

#[test]
fn an_exhausted_budget_is_a_decision_for_the_audit() {
    let exhausted = Exhausted { resource: Resource::Turns, limit: 3, spent: 3, reserved: 0, asked: 1 };
    let decision = exhausted.decision(&Subject::new("run 7"));
    assert_eq!(decision.reason, Reason::BudgetExhausted);
    assert_eq!(
        decision.explain(),
        "run 7 may not use `1 turns`: the budget does not cover it (budget has `3 turns`)"
    );
}

#[test]
fn money_is_read_exactly() {
    let cases = [
        ("0", 0),
        ("1", 1_000_000),
        ("0.25", 250_000),
        (".5", 500_000),
        ("5.", 5_000_000),
        ("000.000001", 1),
        ("18446744073709.551615", u64::MAX),
    ];
    for (text, expected) in cases {
        assert_eq!(Micros::parse(text, Round::Up), Ok(Micros(expected)), "{text}");
        assert_eq!(Micros::parse(text, Round::Down), Ok(Micros(expected)), "{text}");
    }
    assert_eq!(Micros::parse("0.0000001", Round::Down), Ok(Micros(0)));
    assert_eq!(Micros::parse("0.0000001", Round::Up), Ok(Micros(1)));
    assert_eq!(Micros::parse("0.0000000", Round::Up), Ok(Micros(0)));
}

#[test]
fn what_is_no_amount_of_money_is_refused() {
    for text in ["", ".", "-1", "+1", "1e3", "1,5", "0x1", " 1", "1.2.3", "NaN", "١"] {
        assert_eq!(Micros::parse(text, Round::Down), Err(MoneyError::NotDecimal), "{text:?}");
    }
    assert_eq!(Micros::parse("18446744073709.551616", Round::Down), Err(MoneyError::TooLarge));
    assert_eq!(Micros::parse("18446744073709.5516151", Round::Up), Err(MoneyError::TooLarge));
    assert_eq!(Micros::from_float(f64::NAN, Round::Up), Err(MoneyError::NotFinite));
    assert_eq!(Micros::from_float(f64::INFINITY, Round::Up), Err(MoneyError::NotFinite));
    assert_eq!(Micros::from_float(-0.01, Round::Up), Err(MoneyError::Negative));
    assert_eq!(Micros::from_float(1e300, Round::Down), Err(MoneyError::TooLarge));
}

#[test]
fn a_float_is_taken_for_the_number_it_shows() {
    assert_eq!(Micros::from_float(0.1, Round::Up), Ok(Micros(100_000)));
    assert_eq!(Micros::from_float(0.1 + 0.2, Round::Down), Ok(Micros(300_000)));
    assert_eq!(Micros::from_float(0.1 + 0.2, Round::Up), Ok(Micros(300_001)));
    assert_eq!(Micros::from_float(-0.0, Round::Up), Ok(Micros(0)));
    assert_eq!(Micros::from_float(5e-324, Round::Up), Ok(Micros(1)));
    assert_eq!(Micros::from_float(2.5, Round::Up), Ok(Micros(2_500_000)));
}

#[test]
fn money_is_shown_with_at_least_two_decimals() {
    for (amount, expected) in [(0, "0.00"), (1, "0.000001"), (2_500_000, "2.50"), (1_234_567, "1.234567")] {
        assert_eq!(Micros(amount).to_string(), expected);
    }
}
