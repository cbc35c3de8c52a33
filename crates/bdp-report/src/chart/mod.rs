//! A chart as data: what is drawn, in the units of its axes. [`layout`] makes a drawing for pages of it, [`zoom`] one that
//! zooms, [`export`] files, and [`terminal`] text.

mod axis;
mod description;
pub(crate) mod export;
mod figure;
mod layout;
mod shape;
pub(crate) mod terminal;
mod zoom;

pub(crate) use axis::{Axis, Unit, plain};
pub(crate) use description::{Chart, Fit, Marks, Panel, Series, Vertical};
pub(crate) use shape::{Anchor, Drawing, MARGIN, WIDTH, number};
pub(crate) use zoom::room_for;
