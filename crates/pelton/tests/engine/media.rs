//! Pictures that fit, and what happens to those that do not.

mod entering; // every picture is brought down on its way in
mod kept; // where they are on the disk
pub mod leaving; // what is left out when there is too much of it

use std::io::Cursor;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::FutureExt;
use futures::future::BoxFuture;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use pelton::tools::ResultBlock;
use pelton::tools::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx};
use serde_json::{Value, json};

use crate::stage::blocks;

pub fn png(width: u32, height: u32) -> Vec<u8> {
    let picture = RgbImage::from_fn(width, height, |x, y| Rgb([(x / 9) as u8, (y / 9) as u8, 7]));
    encoded(&picture.into(), ImageFormat::Png)
}

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    picture.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
    bytes
}

/// A picture that no format makes smaller.
pub fn noise(width: u32, height: u32) -> Vec<u8> {
    let mut state = width + height;
    let picture = RgbImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [a, b, c, _] = state.to_be_bytes();
        Rgb([a, b, c])
    });
    encoded(&picture.into(), ImageFormat::Png)
}

/// Shows the pictures it was given, a page with every call.
pub struct Album(Vec<Arc<[u8]>>);

impl Album {
    pub fn of(pictures: impl IntoIterator<Item = Vec<u8>>) -> Arc<dyn Tool> {
        Arc::new(Self(pictures.into_iter().map(Arc::from).collect()))
    }
}

impl Tool for Album {
    fn spec(&self) -> Spec<'_> {
        let input_schema = r#"{"type":"object","properties":{"page":{"type":"integer"}}}"#;
        Spec { name: "Album", description: "Shows a picture.", input_schema }
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, _: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        Ok(Access::Nothing)
    }

    fn run<'a>(&'a self, input: Value, _: &'a ToolCx) -> BoxFuture<'a, Output> {
        let page = input["page"].as_u64().unwrap() as usize;
        let mut output = Output::text(format!("Page {page}."));
        // What it is said to be is not always what it is.
        output
            .content
            .push(ResultBlock::Image { media_type: "image/png", base64: BASE64.encode(&self.0[page]) });
        async move { output }.boxed()
    }
}

fn page(page: usize) -> Value {
    json!({"page": page})
}

/// The pictures in a request, oldest first: what they say they are, what they are, and how large.
fn pictures(request: &Value) -> Vec<(String, ImageFormat, (u32, u32))> {
    let results = blocks(request, "user").into_iter().filter_map(|block| block["content"].as_array());
    let images = results.flatten().filter(|block| block["type"] == "image");
    images.map(seen).collect()
}

fn seen(image: &Value) -> (String, ImageFormat, (u32, u32)) {
    let bytes = BASE64.decode(image["source"]["data"].as_str().unwrap()).unwrap();
    let said = image["source"]["media_type"].as_str().unwrap().to_owned();
    let format = image::guess_format(&bytes).unwrap();
    let picture = image::load_from_memory_with_format(&bytes, format).unwrap();
    (said, format, (picture.width(), picture.height()))
}
