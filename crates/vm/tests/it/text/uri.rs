//! URI coding and the escapes of Annex B, as recorded.

use outrigger_vm::text::Text;
use outrigger_vm::text::uri::{Scope, decode, encode, escape, unescape};

use super::{Row, check, spell};

#[test]
fn uris_are_encoded_and_decoded_as_in_node() {
    check(include_str!("tables/uri.tsv"), 200, answer);
}

fn answer(row: &Row<'_>) -> Option<String> {
    let text = row.units(0);
    let text = text.as_str();
    let tell = |result: Result<Text, _>| result.map_or("!URIError".to_owned(), |text| spell(text.as_str()));
    Some(match row.function {
        "encodeURI" => tell(encode(text, Scope::Uri)),
        "encodeURIComponent" => tell(encode(text, Scope::Component)),
        "decodeURI" => tell(decode(text, Scope::Uri)),
        "decodeURIComponent" => tell(decode(text, Scope::Component)),
        "escape" => spell(escape(text).as_str()),
        "unescape" => spell(unescape(text).as_str()),
        _ => return None,
    })
}
