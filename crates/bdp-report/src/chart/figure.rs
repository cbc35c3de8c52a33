//! A chart as a figure of a page: heading, key and notes beside the drawing.

use maud::{Markup, html};

use super::description::Chart;
use super::{layout, zoom};

impl Chart {
    /// Returns the figure: heading, key and notes beside the drawing.
    pub fn figure(&self) -> Markup {
        let drawing = match self.zoom {
            Some(fit) => zoom::drawing(self, fit),
            None => {
                let (height, drawing) = layout::layout(self);
                drawing.svg(height, &self.title, &self.description)
            }
        };
        let keys = self.keys();
        html! {
            figure {
                figcaption {
                    h3 { (self.heading) }
                    @if !keys.is_empty() {
                        ul.keys {
                            @for (sign, meaning) in keys {
                                li {
                                    svg viewBox="0 0 24 12" aria-hidden="true" {
                                        @for shape in sign.shapes([0.0, 6.0]) { (shape) }
                                    }
                                    span { (meaning) }
                                }
                            }
                        }
                    }
                    @for note in self.notes.iter().filter(|note| !note.is_empty()) { p { (note) } }
                }
                (drawing)
            }
            "\n"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::description::{Marks, Panel, Series};
    use super::super::shape::Sign;
    use super::*;
    use crate::chart::{Axis, Unit};

    fn chart() -> Chart {
        let points = [[0.0, 1.0], [2.0, 3.0]];
        let series = vec![
            Series::line("here", "goodput", points),
            Series::and("here-dot", Marks::Dots(2.0, points.to_vec())),
            Series::new("shade", "not in the figures", Marks::Band(0.0, [0.0, 1.0])),
        ];
        Chart {
            heading: "Goodput".to_owned(),
            title: "a → b".to_owned(),
            description: "2 points".to_owned(),
            x: Axis::linear([0.0, 2.0], Unit::SECONDS, 3),
            panels: vec![Panel::new(Axis::from_zero(3.0, Unit::BitsPerSecond, 3), 100.0, series)],
            notes: Vec::new(),
            zoom: None,
        }
    }

    #[test]
    fn marks_without_a_name_share_the_key_of_those_before() {
        let chart = chart();
        let keys = chart.keys();
        assert!(matches!(keys[0], (Sign::DotOnLine("here", "here-dot"), "goodput")), "{keys:?}");
        assert!(matches!(keys[1], (Sign::Field("shade"), "not in the figures")), "{keys:?}");
        assert_eq!(keys.len(), 2);
    }

    #[test]
    fn areas_are_below_lines_and_those_below_dots() {
        let page = chart().figure().into_string();
        let drawn = page.split("class=\"chart\"").nth(1).unwrap();
        let place = |class: &str| drawn.find(&format!("class=\"{class}\"")).unwrap();
        assert!(place("shade") < place("here") && place("here") < place("here-dot"), "{drawn}");
    }

    #[test]
    fn chart_is_data() {
        let data = serde_json::to_value(chart()).unwrap();
        assert_eq!(data["panels"][0]["series"][0]["marks"]["Line"][1], serde_json::json!([2.0, 3.0]));
        assert_eq!(data["x"]["unit"], serde_json::json!({"Named": ["s", 1.0]}));
    }
}
