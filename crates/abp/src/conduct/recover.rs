//! After a host that was killed: what it had recorded becomes a receipt all the same.

use crate::protocol::{
    BackendIdentity, ContractVersion, Manifest, Mode, Negotiation, OrderId, Outcome, Raw, Timestamp, Usage,
    WorkOrder,
};
use crate::receipt::{Closing, Ending, Folder, RecordError, Recorder, Sealed, SigningKey};

/// What an order may take when it is read back.
const MAX_ORDER_BYTES: u64 = 64 << 20;

/// Seals what dead hosts left in this folder, each as a failed run, with the signature of whoever finds it. What is left of one
/// that cannot be sealed stays.
///
/// # Errors
/// When the folder cannot be read; what is wrong with a single record is in the list.
pub fn recover(
    folder: &Folder,
    sign: Option<&SigningKey>,
) -> Result<Vec<Result<Sealed, RecordError>>, RecordError> {
    let seal = |part: std::path::PathBuf| {
        let recorder = Recorder::recover(folder, &part)?;
        let order = read_order(folder, &recorder);
        let begun = recorder.begun_at();
        recorder.seal(&Closing {
            order: &order,
            backend: BackendIdentity {
                id: "unknown".to_owned(),
                backend_version: None,
                adapter_version: None,
            },
            contract_version: ContractVersion::ours(),
            capabilities: Manifest::default(),
            mode: Mode::Mapped,
            started_at: begun,
            duration: Timestamp::now().since(begun),
            ending: Ending::Exited,
            error: Some("the host was killed during the run; it was sealed later".to_owned()),
            outcome: Some(Outcome::Failed),
            received: None,
            usage: Usage::default(),
            artifacts: Vec::new(),
            git_diff: None,
            git_status: None,
            negotiation: Negotiation::default(),
            account: Raw::of(&serde_json::Map::new()).unwrap_or(Raw::NULL),
            sign,
        })
    };
    Ok(folder.left_over()?.into_iter().map(seal).collect())
}

/// The order as it was sent; an empty one if the host died before it was written down.
fn read_order(folder: &Folder, recorder: &Recorder) -> WorkOrder {
    let path = folder.beside(recorder.run(), ORDER);
    let small = std::fs::metadata(&path).is_ok_and(|data| data.len() <= MAX_ORDER_BYTES);
    let text = if small { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
    WorkOrder::read(&text).unwrap_or_else(|_| WorkOrder::new(OrderId::new(""), ""))
}

/// The ending of the name of the order's file, beside the receipt.
pub(super) const ORDER: &str = "order";
