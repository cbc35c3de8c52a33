//! Appearance of the report's style classes on white paper.

/// Red, green and blue.
pub(super) type Color = [u8; 3];

pub(super) const INK: Color = [0x1d, 0x1c, 0x1a];
const PAPER: Color = [0xff, 0xff, 0xff];
const SOFT: Color = [0x67, 0x63, 0x5b];
const FAINT: Color = [0xe4, 0xe4, 0xe4];
const SHADE: Color = [0xf2, 0xf2, 0xf2];
const HERE: Color = [0x0a, 0x5a, 0x9c];
const MODEL: Color = [0xb0, 0x4e, 0x06];
const THIRD: Color = [0x2b, 0x74, 0x48];
const BAD: Color = [0xb3, 0x26, 0x1e];

/// How a shape is painted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Paint {
    pub fill: Option<Color>,
    pub stroke: Option<Color>,
    pub width: f64,
    pub dashes: &'static [f64],
    /// Whether the shape is translucent.
    pub sheer: bool,
}

/// Opacity of a translucent shape.
pub(super) const SHEER: f64 = 0.3;

impl Paint {
    /// Returns the paint of a class; a thin line for an unknown one.
    pub fn of(class: &str) -> Self {
        let line =
            |stroke, width, dashes| Self { fill: None, stroke: Some(stroke), width, dashes, sheer: false };
        let field = |fill| Self { fill: Some(fill), stroke: None, width: 0.0, dashes: &[], sheer: false };
        match class {
            "axis" => line(SOFT, 1.0, &[]),
            "grid" => line(FAINT, 1.0, &[]),
            "here" => line(HERE, 1.8, &[]),
            "range" => Self { sheer: true, ..line(HERE, 5.0, &[]) },
            "here-dot" => field(HERE),
            "model" => line(MODEL, 1.5, &[5.0, 3.0]),
            "third" => line(THIRD, 1.5, &[]),
            "third-dot" => field(THIRD),
            "third-range" => Self { sheer: true, ..line(THIRD, 5.0, &[]) },
            "level" => line(INK, 1.0, &[1.5, 2.5]),
            "hollow" => Self { fill: Some(PAPER), ..line(INK, 1.4, &[]) },
            "hollow-line" => line(INK, 1.4, &[]),
            "cross" => line(BAD, 1.4, &[]),
            "shade" => field(SHADE),
            "hatch" => field(FAINT),
            _ => line(INK, 1.0, &[]),
        }
    }

    /// Returns the colour and size of text.
    pub fn of_text(class: &str) -> (Color, f64) {
        match class {
            "title" => (INK, 14.0),
            "name" => (INK, 11.5),
            _ => (SOFT, 11.5),
        }
    }
}

/// `#0a5a9c`.
pub(super) fn hex([red, green, blue]: Color) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}
