//! A session as hosts see it, and the times in it.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A session: one conversation of one user, with the stage that it is in. Its schema is `AgentSession.schema.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// What it is resumed by; also the name of its transcript.
    pub session_id: String,
    /// Whose it is.
    pub user_id: String,
    /// The project it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The chat it belongs to.
    pub chat_id: String,
    /// Where its state machine is.
    pub current_stage: String,
    /// Where its state machine goes next. We never set it; others do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_stage: Option<String>,
    /// Which state machine it is.
    #[serde(default = "usual_scenario")]
    pub scenario: String,
    /// What the host keeps with the stage: an object, passed on as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage_data: Option<Box<RawValue>>,
    /// Whether it still takes turns.
    pub is_active: bool,
    /// When it was made first.
    pub created_at: Timestamp,
    /// When it was last made, or its transcript last grew.
    pub updated_at: Timestamp,
    /// A key of the storage. We never set it; others do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

fn usual_scenario() -> String {
    "agent-entry".to_owned()
}

/// A moment as text. Ours are UTC with microseconds and `+00:00`, so that they sort as they happened; those of other
/// programs are kept as they came.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(String);

impl Timestamp {
    /// Now, by the wall clock.
    #[must_use]
    pub fn now() -> Self {
        Self::of(SystemTime::now())
    }

    /// A moment of the wall clock. Moments before 1970 are 1970.
    #[must_use]
    pub fn of(moment: SystemTime) -> Self {
        let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = since.as_secs();
        let (year, month, day) = civil(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        let micros = since.subsec_micros();
        Self(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}+00:00"))
    }

    /// A moment that was written before.
    pub(crate) fn stored(text: String) -> Self {
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Year, month and day of a day after 1970-01-01 (Howard Hinnant's `civil_from_days`, for days that are not negative).
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_are_written_with_microseconds_and_an_offset() {
        let at = |micros| Timestamp::of(UNIX_EPOCH + Duration::from_micros(micros)).0;
        assert_eq!(at(0), "1970-01-01T00:00:00.000000+00:00");
        assert_eq!(at(951_782_400_000_001), "2000-02-29T00:00:00.000001+00:00");
        assert_eq!(at(1_794_800_654_123_456), "2026-11-16T03:44:14.123456+00:00");
    }

    #[test]
    fn what_the_host_keeps_with_the_stage_is_not_spelled_anew() {
        let text = r#"{"sessionId":"s","userId":"u","chatId":"c","currentStage":"plan","scenario":"x","stageData":{"z":1.0,"a":null},"isActive":true,"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z"}"#;
        let session: Session = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&session).unwrap(), text);
    }
}
