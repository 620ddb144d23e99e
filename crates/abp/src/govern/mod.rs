//! What a run may do and spend: every reported action is judged, every budget counted, approvals asked for.
