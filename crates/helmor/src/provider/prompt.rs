//! What a prompt becomes before it goes to a program: marks of pictures taken out, linked folders told, pictures as blocks.

use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// How many bytes of pictures one message may carry. In base64 that is a line of 32 MiB, and servers take no more either.
pub const PICTURES: PictureBytes = PictureBytes(24 << 20);

/// A bound on the pictures of one message, in bytes of their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PictureBytes(pub u64);

/// The text without the mark `@PATH` of each picture, and without the blank that stood before the mark.
#[must_use]
pub fn strip_image_marks(prompt: &str, images: &[impl AsRef<Path>]) -> String {
    if images.is_empty() {
        return prompt.to_owned();
    }
    let mut marks: Vec<String> = images
        .iter()
        .map(|image| format!("@{}", image.as_ref().display()))
        .filter(|mark| mark.len() > 1)
        .collect();
    // The path of one picture may begin with that of another.
    marks.sort_by_key(|mark| std::cmp::Reverse(mark.len()));
    let mut text = prompt.to_owned();
    for mark in &marks {
        while let Some(at) = text.find(mark.as_str()) {
            let end = at + mark.len();
            let alone =
                text[..at].ends_with(' ') && (end == text.len() || text[end..].starts_with([' ', '\n']));
            text.replace_range(at - usize::from(alone)..end, "");
        }
    }
    text.trim().to_owned()
}

/// What tells a model about linked folders; nothing if there are none.
#[must_use]
pub fn linked_directories_preamble(directories: &[impl AsRef<Path>]) -> Option<String> {
    if directories.is_empty() {
        return None;
    }
    let list: Vec<String> =
        directories.iter().map(|directory| format!("- {}", directory.as_ref().display())).collect();
    let list = list.join("\n");
    Some(format!(
        "[These directories are linked to this workspace; read and edit files in them as well:\n{list}]"
    ))
}

/// A prompt as text: the linked folders before what the user says. A command, such as `/compact`, must come first to be one,
/// so nothing is put before it.
#[must_use]
pub fn text_of(prompt: &str, images: &[impl AsRef<Path>], directories: &[impl AsRef<Path>]) -> String {
    let text = strip_image_marks(prompt, images);
    match linked_directories_preamble(directories) {
        Some(preamble) if !is_command(&text) => format!("{preamble}\n\n{text}"),
        Some(_) | None => text,
    }
}

/// Whether a text begins with the name of a command, and not with a path.
fn is_command(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    text.starts_with('/') && first.len() > 1 && !first[1..].contains('/')
}

/// The blocks of a message: the text, then each picture as base64. What cannot be read or finds no room is a text that says
/// so, because the model and the user should know. Pictures are sent in the size they have.
pub async fn image_blocks(text: &str, images: Vec<PathBuf>, room: PictureBytes) -> Vec<Value> {
    let mut blocks = Vec::with_capacity(images.len() + 1);
    if !text.is_empty() || images.is_empty() {
        blocks.push(json!({"type": "text", "text": text}));
    }
    if images.is_empty() {
        return blocks;
    }
    let read = tokio::task::spawn_blocking(move || {
        let mut left = room.0;
        images.iter().map(|path| image_block(path, &mut left)).collect::<Vec<Value>>()
    });
    // The only other end of such a task is a panic in it, and there is none in reading files.
    blocks.extend(read.await.unwrap_or_default());
    blocks
}

/// One picture, or a sentence why not. `left` is the room that is left for pictures.
fn image_block(path: &Path, left: &mut u64) -> Value {
    match read(path, *left) {
        Ok(data) => {
            *left -= data.len() as u64;
            let source = json!({"type": "base64", "media_type": media_type(path, &data), "data": STANDARD.encode(&data)});
            json!({"type": "image", "source": source})
        }
        Err(why) => {
            json!({"type": "text", "text": format!("[The image {} is not attached: {why}.]", path.display())})
        }
    }
}

fn read(path: &Path, room: u64) -> Result<Vec<u8>, String> {
    let cannot = |error: std::io::Error| format!("it could not be read ({error})");
    // A pipe would be read for ever.
    if !path.metadata().map_err(cannot)?.is_file() {
        return Err("it is no file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(cannot)?;
    let mut data = Vec::new();
    file.take(room + 1).read_to_end(&mut data).map_err(cannot)?;
    if data.len() as u64 > room {
        return Err(format!(
            "there was room for {room} more bytes of images in this message, and it has more"
        ));
    }
    Ok(data)
}

/// What the file says it is, else what its name says.
fn media_type(path: &Path, data: &[u8]) -> &'static str {
    match data {
        [0x89, b'P', b'N', b'G', ..] => return "image/png",
        [0xff, 0xd8, 0xff, ..] => return "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => return "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => return "image/webp",
        _ => {}
    }
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ => "image/png",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &[&str] = &[];

    #[test]
    fn marks_of_pictures_go_and_everything_else_stays_as_it_was() {
        let strip = |prompt: &str| strip_image_marks(prompt, &["/a.png", "/a.png.png"]);
        assert_eq!(strip("look at @/a.png please"), "look at please");
        assert_eq!(strip("@/a.png.png @/a.png what is it?"), "what is it?");
        assert_eq!(strip("  two  blanks and @/b.png stay"), "two  blanks and @/b.png stay");
        assert_eq!(strip("see @/a.png\n    indented"), "see\n    indented");
        assert_eq!(strip_image_marks("  @/a.png as it is ", NONE), "  @/a.png as it is ");
        assert_eq!(strip_image_marks("a lone @ is no mark", &[""]), "a lone @ is no mark");
    }

    #[test]
    fn linked_folders_come_first_but_never_before_a_command() {
        assert_eq!(text_of("hello", NONE, NONE), "hello");
        let text = text_of("hello", NONE, &["/one", "/two"]);
        assert!(
            text.starts_with('[') && text.contains("- /one\n- /two]") && text.ends_with("\n\nhello"),
            "{text}"
        );
        assert_eq!(text_of("/compact", NONE, &["/one"]), "/compact");
        assert!(text_of("/etc/hosts is wrong", NONE, &["/one"]).starts_with('['), "a path is no command");
    }

    #[tokio::test]
    async fn a_picture_is_what_its_bytes_say_and_one_that_cannot_be_read_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let jpeg = folder.path().join("wrong.png");
        std::fs::write(&jpeg, [0xff, 0xd8, 0xff, 0]).unwrap();
        let named = folder.path().join("named.GIF");
        std::fs::write(&named, "?").unwrap();
        let absent = folder.path().join("absent.png");
        let blocks =
            image_blocks("text", vec![jpeg, named, absent, folder.path().to_owned()], PictureBytes(100))
                .await;
        assert_eq!(blocks[0], json!({"type": "text", "text": "text"}));
        let source = json!({"type": "base64", "media_type": "image/jpeg", "data": "/9j/AA=="});
        assert_eq!(blocks[1], json!({"type": "image", "source": source}));
        assert_eq!(blocks[2]["source"]["media_type"], "image/gif");
        assert!(blocks[3]["text"].as_str().unwrap().contains("absent.png is not attached"), "{}", blocks[3]);
        assert!(blocks[4]["text"].as_str().unwrap().contains("no file"), "{}", blocks[4]);
    }

    #[tokio::test]
    async fn the_room_for_pictures_is_used_to_the_last_byte_and_not_beyond() {
        let folder = tempfile::tempdir().unwrap();
        let (two, three) = (folder.path().join("two.png"), folder.path().join("three.png"));
        std::fs::write(&two, "ab").unwrap();
        std::fs::write(&three, "abc").unwrap();
        let kinds = |blocks: Vec<Value>| -> Vec<String> {
            blocks.iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect()
        };
        let fits = image_blocks("", vec![two.clone(), three.clone()], PictureBytes(5)).await;
        assert_eq!(kinds(fits), ["image", "image"]);
        let beyond = image_blocks("", vec![two, three], PictureBytes(4)).await;
        assert_eq!(kinds(beyond), ["image", "text"]);
    }

    #[tokio::test]
    async fn an_empty_prompt_without_pictures_is_still_a_message() {
        assert_eq!(image_blocks("", Vec::new(), PICTURES).await, [json!({"type": "text", "text": ""})]);
    }
}
