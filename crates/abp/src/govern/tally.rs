//! What a run has spent, and the first limit that it crossed.
//!
//! Nothing here ever goes down: amounts are added and saturate, sums that a child reports count when they are larger, and
//! a number that is no amount counts as nothing. So no sequence of reports buys back what was spent.

use std::time::Duration;

use outrigger_policy::{Micros, MoneyError, Resource, Round};
use serde::Serialize;

use crate::protocol::{Counts, Usage, UsageReport};

/// How much of each resource a run may spend; none is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tokens that the model reads.
    pub input_tokens: Option<u64>,
    /// Tokens that the model writes.
    pub output_tokens: Option<u64>,
    /// Tokens of both kinds together.
    pub total_tokens: Option<u64>,
    /// Money.
    pub money: Option<Micros>,
    /// Turns of the conversation.
    pub turns: Option<u64>,
    /// Calls of tools.
    pub tool_calls: Option<u64>,
    /// Time from the start of the run.
    pub wall: Option<Duration>,
}

impl Limits {
    /// No limit on anything: the caller says so.
    #[must_use]
    pub fn none() -> Limits {
        Limits {
            input_tokens: None,
            output_tokens: None,
            total_tokens: None,
            money: None,
            turns: None,
            tool_calls: None,
            wall: None,
        }
    }

    /// These limits, and those that a work order brings: the smaller of both counts.
    pub fn and_order(
        self,
        max_budget_usd: Option<f64>,
        max_turns: Option<u64>,
    ) -> Result<Limits, MoneyError> {
        let money = match max_budget_usd {
            None => None,
            // A limit goes down, so that rounding never lets more be spent than was meant.
            Some(usd) => match Micros::from_float(usd, Round::Down) {
                Ok(limit) => Some(limit),
                Err(MoneyError::TooLarge) => Some(Micros(u64::MAX)),
                Err(error) => return Err(error),
            },
        };
        let smaller = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        let money = self.money.into_iter().chain(money).min();
        Ok(Limits { money, turns: smaller(self.turns, max_turns), ..self })
    }

    fn of(&self, resource: Resource) -> Option<u64> {
        match resource {
            Resource::InputTokens => self.input_tokens,
            Resource::OutputTokens => self.output_tokens,
            Resource::TotalTokens => self.total_tokens,
            Resource::Money => self.money.map(|limit| limit.0),
            Resource::Turns => self.turns,
            Resource::ToolCalls => self.tool_calls,
            Resource::WallMillis => self.wall.map(millis),
            Resource::Bytes => None,
        }
    }
}

/// A limit that was crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("the budget of {} is used up: {} spent", amount(*.resource, *.limit), amount(*.resource, *.spent))]
pub struct Crossed {
    /// Of what.
    pub resource: Resource,
    /// The most that could be spent.
    pub limit: u64,
    /// What was spent.
    pub spent: u64,
}

/// How one budget stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Balance {
    /// Of what; the unit is part of it (money in millionths, time in milliseconds).
    pub resource: Resource,
    /// The most that may be spent; none is no limit.
    pub limit: Option<u64>,
    /// What was spent.
    pub spent: u64,
}

/// The counters of one run.
#[derive(Clone, Debug)]
pub struct Tally {
    limits: Limits,
    /// Tokens and units; what was never reported is none.
    usage: Usage,
    money: Option<Micros>,
    /// Turns by messages, until the child counts them itself.
    messages: u64,
    /// Turns that the child counted.
    turns: Option<u64>,
    /// Calls that were reported, and calls that were asked for: a child may do one, the other or both for the same call.
    calls_reported: u64,
    calls_asked: u64,
    elapsed: Duration,
}

/// In the order in which they are named when several are crossed at once.
const COUNTED: [Resource; 7] = [
    Resource::Money,
    Resource::TotalTokens,
    Resource::InputTokens,
    Resource::OutputTokens,
    Resource::Turns,
    Resource::ToolCalls,
    Resource::WallMillis,
];

impl Tally {
    /// Nothing is spent.
    #[must_use]
    pub fn new(limits: Limits) -> Tally {
        Tally {
            limits,
            usage: Usage::default(),
            money: None,
            messages: 0,
            turns: None,
            calls_reported: 0,
            calls_asked: 0,
            elapsed: Duration::ZERO,
        }
    }

    /// The child reported usage.
    pub fn report(&mut self, report: &UsageReport) {
        let add = |counted: &mut Option<u64>, amount: Option<u64>| {
            let Some(amount) = amount else { return };
            let before = counted.unwrap_or(0);
            *counted = Some(match report.counts {
                Counts::Increments => before.saturating_add(amount),
                Counts::Totals => amount.max(before),
            });
        };
        let (usage, told) = (&mut self.usage, &report.usage);
        add(&mut usage.input_tokens, told.input_tokens);
        add(&mut usage.output_tokens, told.output_tokens);
        add(&mut usage.cache_read_tokens, told.cache_read_tokens);
        add(&mut usage.cache_write_tokens, told.cache_write_tokens);
        add(&mut usage.request_units, told.request_units);
        let mut money = self.money.map(|money| money.0);
        add(&mut money, told.estimated_cost_usd.and_then(cost));
        self.money = money.map(Micros);
        // A report of no turns is not counting them, or one such report would switch off the limit.
        if self.turns.is_some() || report.turns.is_some_and(|turns| turns > 0) {
            add(&mut self.turns, report.turns);
        }
    }

    /// The child sent a whole message: a turn, unless it counts them itself.
    pub fn message(&mut self) {
        if self.turns.is_none() {
            self.messages = self.messages.saturating_add(1);
        }
    }

    /// The child reported a call of a tool.
    pub fn call(&mut self) {
        self.calls_reported = self.calls_reported.saturating_add(1);
    }

    /// The child asked to call a tool and may.
    pub fn call_asked(&mut self) {
        self.calls_asked = self.calls_asked.saturating_add(1);
    }

    /// So much time has passed since the run began.
    pub fn time(&mut self, elapsed: Duration) {
        self.elapsed = self.elapsed.max(elapsed);
    }

    /// The first limit that is crossed. A limit may be spent to the last unit; time is up when it is up.
    #[must_use]
    pub fn crossed(&self) -> Option<Crossed> {
        COUNTED.into_iter().find_map(|resource| {
            let (limit, spent) = (self.limits.of(resource)?, self.spent(resource));
            let over = match resource {
                Resource::WallMillis => spent >= limit,
                Resource::InputTokens
                | Resource::OutputTokens
                | Resource::TotalTokens
                | Resource::Money
                | Resource::Turns
                | Resource::ToolCalls
                | Resource::Bytes => spent > limit,
            };
            over.then_some(Crossed { resource, limit, spent })
        })
    }

    /// When the time is up, counted from the start of the run.
    #[must_use]
    pub fn time_is_up_at(&self) -> Option<Duration> {
        self.limits.wall
    }

    /// What was counted, as a receipt says it.
    #[must_use]
    pub fn usage(&self) -> Usage {
        // Exact for every amount that anybody spends; the receipt has doubles.
        let usd = self.money.map(|money| money.0 as f64 / 1_000_000.0);
        Usage { estimated_cost_usd: usd, ..self.usage }
    }

    /// Every budget that has a limit or was spent from, time aside when it has no limit.
    #[must_use]
    pub fn balances(&self) -> Vec<Balance> {
        let balance =
            |resource| Balance { resource, limit: self.limits.of(resource), spent: self.spent(resource) };
        let known = |balance: &Balance| {
            balance.limit.is_some() || (balance.spent > 0 && balance.resource != Resource::WallMillis)
        };
        COUNTED.into_iter().map(balance).filter(known).collect()
    }

    /// Whether there is a limit on anything that only the child can tell, and whether there is one at all.
    #[must_use]
    pub fn limited(&self) -> Limited {
        let told =
            COUNTED.into_iter().any(|one| one != Resource::WallMillis && self.limits.of(one).is_some());
        match (told, self.limits.wall) {
            (true, _) => Limited::ByReports,
            (false, Some(_)) => Limited::ByTheClock,
            (false, None) => Limited::Not,
        }
    }

    fn spent(&self, resource: Resource) -> u64 {
        match resource {
            Resource::InputTokens => self.usage.input_tokens.unwrap_or(0),
            Resource::OutputTokens => self.usage.output_tokens.unwrap_or(0),
            // Whether the input has what came from a cache in it is the vendor's choice, so caches are not added again.
            Resource::TotalTokens => {
                self.spent(Resource::InputTokens).saturating_add(self.spent(Resource::OutputTokens))
            }
            Resource::Money => self.money.map_or(0, |money| money.0),
            Resource::Turns => self.turns.unwrap_or(0).max(self.messages),
            Resource::ToolCalls => self.calls_reported.max(self.calls_asked),
            Resource::WallMillis => millis(self.elapsed),
            Resource::Bytes => 0,
        }
    }
}

/// What the limits of a run rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// There are none.
    Not,
    /// Only on our clock.
    ByTheClock,
    /// On what the child reports, at least some.
    ByReports,
}

/// A cost in millionths, rounded up. What is no amount costs nothing; what is too much for the type costs all there is.
fn cost(usd: f64) -> Option<u64> {
    match Micros::from_float(usd, Round::Up) {
        Ok(money) => Some(money.0),
        Err(MoneyError::TooLarge) => Some(u64::MAX),
        Err(MoneyError::NotFinite | MoneyError::Negative | MoneyError::NotDecimal) => None,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn amount(resource: Resource, amount: u64) -> String {
    match resource {
        Resource::Money => format!("${}", Micros(amount)),
        Resource::WallMillis => format!("{} ms", amount),
        Resource::InputTokens => format!("{amount} input tokens"),
        Resource::OutputTokens => format!("{amount} output tokens"),
        Resource::TotalTokens => format!("{amount} tokens"),
        Resource::Turns => format!("{amount} turns"),
        Resource::ToolCalls => format!("{amount} tool calls"),
        Resource::Bytes => format!("{amount} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limit(resource: Resource, limit: u64) -> Limits {
        let mut limits = Limits::none();
        match resource {
            Resource::InputTokens => limits.input_tokens = Some(limit),
            Resource::OutputTokens => limits.output_tokens = Some(limit),
            Resource::TotalTokens => limits.total_tokens = Some(limit),
            Resource::Money => limits.money = Some(Micros(limit)),
            Resource::Turns => limits.turns = Some(limit),
            Resource::ToolCalls => limits.tool_calls = Some(limit),
            Resource::WallMillis => limits.wall = Some(Duration::from_millis(limit)),
            Resource::Bytes => unreachable!(),
        }
        limits
    }

    fn used(usage: Usage) -> UsageReport {
        UsageReport { usage, ..UsageReport::default() }
    }

    fn paid(usd: f64) -> UsageReport {
        used(Usage { estimated_cost_usd: Some(usd), ..Usage::default() })
    }

    fn turned(turns: u64) -> UsageReport {
        UsageReport { turns: Some(turns), ..UsageReport::default() }
    }

    #[test]
    fn every_limit_may_be_spent_to_the_last_unit_and_not_one_more() {
        type Row = (Resource, fn(&mut Tally));
        let steps: [Row; 6] = [
            (Resource::InputTokens, |t| t.report(&used(Usage { input_tokens: Some(1), ..Usage::default() }))),
            (Resource::OutputTokens, |t| {
                t.report(&used(Usage { output_tokens: Some(1), ..Usage::default() }))
            }),
            (Resource::TotalTokens, |t| {
                t.report(&used(Usage { output_tokens: Some(1), ..Usage::default() }))
            }),
            (Resource::Money, |t| t.report(&paid(0.000_001))),
            (Resource::Turns, Tally::message),
            (Resource::ToolCalls, Tally::call),
        ];
        for (resource, step) in steps {
            let mut tally = Tally::new(limit(resource, 3));
            for _ in 0..3 {
                step(&mut tally);
                assert_eq!(tally.crossed(), None, "{resource}");
            }
            step(&mut tally);
            assert_eq!(tally.crossed(), Some(Crossed { resource, limit: 3, spent: 4 }), "{resource}");
        }
    }

    #[test]
    fn time_is_up_when_it_is_up() {
        let mut tally = Tally::new(limit(Resource::WallMillis, 1000));
        tally.time(Duration::from_millis(999));
        assert_eq!(tally.crossed(), None);
        tally.time(Duration::from_millis(1000));
        let crossed = tally.crossed().unwrap();
        assert_eq!(crossed.to_string(), "the budget of 1000 ms is used up: 1000 ms spent");
    }

    #[test]
    fn a_limit_of_nothing_is_crossed_by_the_first_unit() {
        let mut tally = Tally::new(limit(Resource::Money, 0));
        assert_eq!(tally.crossed(), None);
        tally.report(&paid(0.000_000_1));
        let text = tally.crossed().unwrap().to_string();
        assert_eq!(text, "the budget of $0.00 is used up: $0.000001 spent");
    }

    #[test]
    fn sums_so_far_count_when_they_are_larger() {
        let mut tally = Tally::new(Limits::none());
        let report = |counts, tokens| UsageReport {
            usage: Usage { input_tokens: Some(tokens), ..Usage::default() },
            counts,
            ..UsageReport::default()
        };
        let table = [
            (Counts::Increments, 10, 10),
            (Counts::Totals, 15, 15),
            (Counts::Totals, 12, 15),
            (Counts::Increments, 5, 20),
            (Counts::Increments, 0, 20),
            (Counts::Increments, u64::MAX, u64::MAX),
            (Counts::Increments, 1, u64::MAX),
        ];
        for (counts, tokens, expected) in table {
            tally.report(&report(counts, tokens));
            assert_eq!(tally.usage().input_tokens, Some(expected));
        }
    }

    #[test]
    fn messages_are_turns_until_the_child_counts_them_itself() {
        let mut tally = Tally::new(limit(Resource::Turns, 2));
        let turns = |tally: &Tally| tally.balances()[0].spent;
        tally.message();
        tally.report(&turned(0));
        tally.message();
        assert_eq!(turns(&tally), 2, "a report of no turns is not counting them");
        tally.report(&turned(1));
        tally.message();
        assert_eq!(turns(&tally), 2, "what was counted stays");
        tally.report(&turned(2));
        assert_eq!(tally.crossed(), Some(Crossed { resource: Resource::Turns, limit: 2, spent: 3 }));
    }

    #[test]
    fn a_call_that_is_asked_for_and_reported_is_one_call() {
        let mut tally = Tally::new(limit(Resource::ToolCalls, 1));
        tally.call_asked();
        tally.call();
        assert_eq!(tally.crossed(), None);
        tally.call_asked();
        assert_eq!(tally.crossed(), Some(Crossed { resource: Resource::ToolCalls, limit: 1, spent: 2 }));
    }

    #[test]
    fn the_limits_of_the_order_and_of_the_operator_both_hold() {
        let operator = Limits { money: Some(Micros(500_000)), turns: Some(9), ..Limits::none() };
        let table: [(Option<f64>, Option<u64>, u64, u64); 5] = [
            (None, None, 500_000, 9),
            (Some(0.25), Some(3), 250_000, 3),
            (Some(2.0), Some(30), 500_000, 9),
            (Some(0.123_456_79), None, 123_456, 9),
            (Some(1e300), None, 500_000, 9),
        ];
        for (usd, order_turns, money, turns) in table {
            let limits = operator.and_order(usd, order_turns).unwrap();
            assert_eq!((limits.money, limits.turns), (Some(Micros(money)), Some(turns)), "{usd:?}");
        }
        assert_eq!(operator.and_order(Some(-0.5), None), Err(MoneyError::Negative));
        assert_eq!(operator.and_order(Some(f64::NAN), None), Err(MoneyError::NotFinite));
        assert_eq!(Limits::none().and_order(Some(1e300), None).unwrap().money, Some(Micros(u64::MAX)));
    }

    #[test]
    fn what_is_no_amount_of_money_costs_nothing_and_too_much_costs_everything() {
        let table = [
            (f64::NAN, 0),
            (f64::INFINITY, 0),
            (-5.0, 0),
            (0.0, 0),
            (1e-300, 1),
            (0.1, 100_000),
            (0.000_001_1, 2),
            (1e300, u64::MAX),
        ];
        for (usd, micros) in table {
            let mut tally = Tally::new(Limits::none());
            tally.report(&paid(usd));
            assert_eq!(tally.spent(Resource::Money), micros, "{usd}");
        }
    }

    fn step() -> impl Strategy<Value = Step> {
        let amount = || prop_oneof![Just(None), (0u64..100).prop_map(Some), Just(Some(u64::MAX))];
        let usd = || {
            let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -0.0, f64::MAX, f64::MIN_POSITIVE];
            prop_oneof![
                Just(None),
                (0.0..0.01).prop_map(Some),
                proptest::sample::select(odd.to_vec()).prop_map(Some)
            ]
        };
        let counts = prop_oneof![Just(Counts::Increments), Just(Counts::Totals)];
        let report = (counts, amount(), amount(), usd(), amount()).prop_map(|(counts, a, b, c, d)| {
            let usage =
                Usage { input_tokens: a, output_tokens: b, estimated_cost_usd: c, ..Usage::default() };
            Step::Report(UsageReport { usage, turns: d, counts })
        });
        let time = (0u64..10_000).prop_map(Step::Time);
        prop_oneof![report, time, Just(Step::Message), Just(Step::Call), Just(Step::Asked)]
    }

    #[derive(Clone, Debug)]
    enum Step {
        Report(UsageReport),
        Time(u64),
        Message,
        Call,
        Asked,
    }

    proptest! {
        #[test]
        fn no_sequence_of_reports_lowers_a_count(steps in proptest::collection::vec(step(), 0..60)) {
            let mut tally = Tally::new(Limits { turns: Some(50), money: Some(Micros(500)), ..Limits::none() });
            let mut before: Vec<u64> = vec![0; COUNTED.len()];
            let mut crossed = None;
            for step in steps {
                match step {
                    Step::Report(report) => tally.report(&report),
                    Step::Time(millis) => tally.time(Duration::from_millis(millis)),
                    Step::Message => tally.message(),
                    Step::Call => tally.call(),
                    Step::Asked => tally.call_asked(),
                }
                let after: Vec<u64> = COUNTED.into_iter().map(|one| tally.spent(one)).collect();
                prop_assert!(before.iter().zip(&after).all(|(before, after)| before <= after));
                before = after;
                prop_assert!(crossed.is_none() || tally.crossed().is_some(), "what is crossed stays crossed");
                crossed = tally.crossed();
            }
        }
    }
}
