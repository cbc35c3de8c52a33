//! A scene as PDF 1.4 (ISO 32000-1): one page of lines, areas and text in Helvetica, which every reader has. Nothing is compressed,
//! embedded or dated: the same scene gives the same bytes.

use std::fmt::Write as _;

use super::paint::{Color, Paint, SHEER};
use super::scene::{Placed, Scene, text_width};
use crate::chart::shape::Shape;
use crate::chart::{Anchor, WIDTH, number};

/// Control point distance for a quarter circle.
const ROUND: f64 = 0.552_284_75;

/// Returns the document.
pub(super) fn write(scene: &Scene) -> Vec<u8> {
    let content = content(scene);
    let [width, height] = [WIDTH, scene.height].map(number);
    let objects: Vec<Vec<u8>> = [
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
        format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 {width} {height}]/Contents 4 0 R\
             /Resources<</Font<</F 5 0 R>>/ExtGState<</S 6 0 R>>>>>>"
        )
        .into_bytes(),
        [format!("<</Length {}>>stream\n", content.len()).into_bytes(), content, b"\nendstream".to_vec()]
            .concat(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>".to_vec(),
        format!("<</Type/ExtGState/CA {SHEER}/ca {SHEER}>>").into_bytes(),
        [
            b"<</Producer(bdp ".to_vec(),
            env!("CARGO_PKG_VERSION").into(),
            b")/Title(".to_vec(),
            encoded(&scene.title),
            b")>>".to_vec(),
        ]
        .concat(),
    ]
    .into();
    // The second line marks the file as binary.
    let mut file = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut places = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend(format!("{} 0 obj\n", index + 1).into_bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let table = file.len();
    let mut end = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for place in places {
        let _ = writeln!(end, "{place:010} 00000 n ");
    }
    let _ = write!(
        end,
        "trailer\n<</Size {}/Root 1 0 R/Info {} 0 R>>\nstartxref\n{table}\n%%EOF\n",
        objects.len() + 1,
        objects.len()
    );
    file.extend(end.into_bytes());
    file
}

/// Returns the page content; the vertical axis of a PDF points upwards.
fn content(scene: &Scene) -> Vec<u8> {
    let mut out = b"1 j\n".to_vec();
    for Placed { shape, down } in &scene.shapes {
        let up = |y: f64| scene.height - y - down;
        match shape {
            Shape::Text { class, at: [x, y], anchor, text } => {
                let (color, size) = Paint::of_text(class);
                let text = shown(text);
                let width = text_width(&text, size);
                let x = match anchor {
                    Anchor::Start => *x,
                    Anchor::Middle => x - width / 2.0,
                    Anchor::End => x - width,
                };
                let (x, y) = (number(x), number(up(*y)));
                out.extend(
                    format!("{}BT /F {} Tf {x} {y} Td (", rgb(color, "rg"), number(size)).into_bytes(),
                );
                out.extend(encoded(&text));
                out.extend(b") Tj ET\n");
            }
            Shape::Path { class, d } => paint(&mut out, class, &path(d, up)),
            Shape::Rect { class, at: [x, y], size: [width, height] } => {
                let [x, y, width, height] = [*x, up(y + height), *width, *height].map(number);
                paint(&mut out, class, &format!("{x} {y} {width} {height} re\n"));
            }
            Shape::Dot { class, at: [x, y], radius } => {
                paint(&mut out, class, &circle([*x, up(*y)], *radius))
            }
        }
    }
    out
}

/// `0.04 0.35 0.61 rg `.
fn rgb(color: Color, operator: &str) -> String {
    let [red, green, blue] = color.map(|part| f64::from(part) / 255.0);
    format!("{red:.3} {green:.3} {blue:.3} {operator} ")
}

fn paint(out: &mut Vec<u8>, class: &str, shape: &str) {
    let paint = Paint::of(class);
    let mut text = "q ".to_owned();
    if paint.sheer {
        text.push_str("/S gs ");
    }
    if let Some(fill) = paint.fill {
        text.push_str(&rgb(fill, "rg"));
    }
    if let Some(stroke) = paint.stroke {
        let dashes: Vec<String> = paint.dashes.iter().map(|&dash| number(dash)).collect();
        let _ = write!(text, "{}{} w [{}] 0 d ", rgb(stroke, "RG"), number(paint.width), dashes.join(" "));
    }
    text.push_str(shape);
    text.push_str(match (paint.fill, paint.stroke) {
        (Some(_), Some(_)) => "B Q\n",
        (Some(_), None) => "f Q\n",
        (None, _) => "S Q\n",
    });
    out.extend(text.into_bytes());
}

/// Draws a path of `M`, `L`, `H`, `V` and `Z`.
fn path(d: &str, up: impl Fn(f64) -> f64) -> String {
    let mut text = String::new();
    let mut at = [0.0, 0.0];
    let mut rest = d;
    while let Some(command) = rest.chars().next() {
        rest = &rest[command.len_utf8()..];
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let numbers: Vec<f64> = rest[..end].split([' ', ',']).filter_map(|n| n.parse().ok()).collect();
        rest = &rest[end..];
        match (command, numbers.as_slice()) {
            ('M' | 'L', &[x, y]) => at = [x, y],
            ('H', &[x]) => at[0] = x,
            ('V', &[y]) => at[1] = y,
            ('Z', _) => {
                text.push_str("h\n");
                continue;
            }
            _ => continue,
        }
        let operator = if command == 'M' { "m" } else { "l" };
        let _ = writeln!(text, "{} {} {operator}", number(at[0]), number(up(at[1])));
    }
    text
}

/// Draws a circle as four curves.
fn circle([x, y]: [f64; 2], r: f64) -> String {
    let k = r * ROUND;
    let mut text = format!("{} {} m\n", number(x + r), number(y));
    let quarters = [
        [x + r, y + k, x + k, y + r, x, y + r],
        [x - k, y + r, x - r, y + k, x - r, y],
        [x - r, y - k, x - k, y - r, x, y - r],
        [x + k, y - r, x + r, y - k, x + r, y],
    ];
    for quarter in quarters {
        let _ = writeln!(text, "{} c", quarter.map(fine).join(" "));
    }
    text.push_str("h\n");
    text
}

/// Formats a coordinate to two decimals, as needed for small circles.
fn fine(value: f64) -> String {
    format!("{value:.2}")
}

/// Replaces characters that the font lacks.
fn shown(text: &str) -> String {
    text.replace('→', "to").replace('←', "from").replace('−', "-").replace('\u{a0}', " ")
}

/// Returns a string in Windows-1252, with question marks for other characters.
fn encoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for c in text.chars() {
        match c {
            '(' | ')' | '\\' => bytes.extend([b'\\', c as u8]),
            ' '..='~' | '\u{a1}'..='\u{ff}' => bytes.push(c as u32 as u8),
            '–' => bytes.push(0x96),
            '…' => bytes.push(0x85),
            _ => bytes.push(b'?'),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene() -> Scene {
        let shape = |shape| Placed { shape, down: 10.0 };
        Scene {
            title: "a (b) \\ ü →".to_owned(),
            height: 100.0,
            shapes: vec![
                shape(Shape::Path { class: "model", d: "M1 2L3 4H5V.5Z".to_owned() }),
                shape(Shape::Rect { class: "shade", at: [1.0, 2.0], size: [3.0, 4.0] }),
                shape(Shape::Dot { class: "hollow", at: [5.0, 5.0], radius: 2.0 }),
                shape(Shape::Text {
                    class: "tick",
                    at: [50.0, 20.0],
                    anchor: Anchor::End,
                    text: "→ 1 × (2)".to_owned(),
                }),
            ],
        }
    }

    #[test]
    fn a_document_has_its_objects_where_its_table_says() {
        let file = write(&scene());
        let latin: String = file.iter().map(|&byte| char::from(byte)).collect();
        assert!(latin.starts_with("%PDF-1.4\n") && latin.ends_with("%%EOF\n"));
        let table: usize =
            latin.split("startxref\n").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
        let listed: String = latin.chars().skip(table).collect();
        let entries: Vec<&str> = listed.lines().skip(3).take(7).collect();
        for (index, entry) in entries.into_iter().enumerate() {
            assert_eq!(entry.len(), 19, "{entry}");
            let at: usize = entry[..10].parse().unwrap();
            let object: String = latin.chars().skip(at).take(12).collect();
            assert!(object.starts_with(&format!("{} 0 obj\n", index + 1)), "{object}");
        }
        let length: usize =
            latin.split("<</Length ").nth(1).unwrap().split('>').next().unwrap().parse().unwrap();
        let stream = latin.split("stream\n").nth(1).and_then(|text| text.strip_suffix("\nend")).unwrap();
        assert_eq!(stream.chars().count(), length);
        assert!(stream.contains("1 88 m\n3 86 l\n5 86 l\n5 89.5 l\nh\nS Q"), "{stream}");
        assert!(stream.contains("1 84 3 4 re\nf Q"), "{stream}");
        assert!(stream.contains("(to 1 \u{d7} \\(2\\)) Tj"), "{stream}");
        assert!(latin.contains("/Title(a \\(b\\) \\\\ \u{fc} ?)"), "{latin}");
    }
}
