//! Scenario files of about a second each, over a path of 40 ms that cases can share.

/// A scenario of one link and one flow, and what is added to each part.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scenario<'a> {
    /// Keys of the file itself.
    pub top: &'a str,
    /// Keys of the link, beside its hosts, rate and delay.
    pub link: &'a str,
    /// Keys of the flow, beside its hosts; congestion control, duration and omit where they are others.
    pub flow: &'a str,
    /// Tables after those.
    pub more: &'a str,
}

impl Scenario<'_> {
    pub fn text(&self) -> String {
        let Self { top, link, flow, more } = self;
        let congestion = if flow.contains("congestion") { "" } else { "congestion = \"reno\"" };
        let duration = if flow.contains("duration") { "" } else { "duration = \"1s\"" };
        let omit = if flow.contains("omit") { "" } else { "omit = 0" };
        format!(
            "title = \"A second over 40 ms\"\nidle = \"200ms\"\n{top}\n\
             [[link]]\nbetween = [\"near\", \"far\"]\nrate = \"5M\"\ndelay = \"20ms\"\n{link}\n\
             [[flow]]\nfrom = \"near\"\nto = \"far\"\n{duration}\n{congestion}\n{omit}\n{flow}\n{more}\n"
        )
    }
}
