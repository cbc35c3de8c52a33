//! `bdp calc loss`.

use bdp_model::path::{cubic, mathis, pftk, tfrc};
use bdp_model::{Nanos, Probability, Rate};
use serde_json::{Value, json};

use super::answer::{Answer, mss, positive};
use super::table::{columns, digits};
use crate::absurd;

pub const AFTER_HELP: &str = "\
Formulas, with p the loss probability of data segments, for one stream:
  Mathis  MSS / RTT x C / sqrt(p)                         Mathis et al., CCR 27(3), 1997, eq. 3
          C = 1 as a rule of thumb; if each acknowledged segment counts, as in Linux,
          sqrt(3/2) = 1.22 for periodic loss and 1.31 for independent loss
  PFTK    MSS / (RTT sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2))
                                                          Padhye et al., SIGCOMM 1998
  TFRC    the same without the minimum, b = 1, T0 = 4 RTT RFC 5348, section 3.1
  CUBIC   MSS / RTT x max(1.054 (RTT / p)^0.75, sqrt(1.5 / p))
                                                          RFC 9438, sections 5 and 4.3; periodic loss
BBR has no such bound.

Examples: bdp calc loss --rtt 100ms --loss 1e-4
          bdp calc loss --rtt 100ms --rate 1G";

/// Arguments of `bdp calc loss`.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("given").required(true)))]
pub struct LossArgs {
    /// Round trip, for example 100ms
    #[arg(long, value_parser = positive::<Nanos>)]
    rtt: Nanos,

    /// Loss probability of data segments, for example 1e-4 or 0.01%
    #[arg(long, value_parser = loss, group = "given")]
    loss: Option<Probability>,

    /// Rate whose tolerated loss is computed (instead of --loss)
    #[arg(long, value_parser = positive::<Rate>, group = "given")]
    rate: Option<Rate>,

    /// Payload bytes of a full segment
    #[arg(long, value_parser = mss, value_name = "BYTES", default_value = "1460")]
    mss: u64,

    /// Segments that one ACK acknowledges (b in PFTK)
    #[arg(long, value_name = "B", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=1000))]
    segments_per_ack: u32,

    /// First retransmission timeout (T0 in PFTK) [default: 4 x RTT]
    #[arg(long, value_parser = positive::<Nanos>, value_name = "TIME")]
    rto: Option<Nanos>,
}

/// Parses a loss probability at which the models apply.
fn loss(text: &str) -> Result<Probability, String> {
    let loss = positive::<Probability>(text).map_err(|error| match error.as_str() {
        "it must be more than 0" => "without loss these models give no limit: use 'bdp calc rate'".to_owned(),
        _ => error,
    })?;
    if loss.fraction() >= 1.0 {
        return Err("the loss must be below 100 %".to_owned());
    }
    Ok(loss)
}

impl LossArgs {
    /// Calculates the table of rates at a given loss, or of losses that a rate tolerates.
    pub fn answer(self) -> Answer {
        absurd::note_time("--rtt", self.rtt);
        absurd::note_rate("--rate", self.rate);
        match (self.loss, self.rate) {
            (Some(loss), _) => self.rates(loss.fraction()),
            (None, rate) => self.tolerated(rate.unwrap_or_default()),
        }
    }

    fn rates(&self, loss: f64) -> Answer {
        let mut rows = vec![["model", "Mbit/s", "in flight", "assumes"].map(str::to_owned)];
        let mut models = Vec::new();
        for model in Model::ALL {
            let rate_bps = model.rate_bps(self, loss);
            let segments = rate_bps * self.rtt.as_secs_f64() / 8.0 / self.mss as f64;
            let in_flight = format!("{} segments", digits(segments, 4));
            rows.push([model.name().to_owned(), digits(rate_bps / 1e6, 4), in_flight, model.assumes(self)]);
            models.push(json!({"model": model.id(), "rate_bps": rate_bps, "window_segments": segments}));
        }
        self.with_path(&rows, "loss", json!(loss), models)
    }

    fn tolerated(&self, rate: Rate) -> Answer {
        let mut rows = vec![["model", "loss", "one in", "assumes"].map(str::to_owned)];
        let mut models = Vec::new();
        for model in Model::ALL {
            let loss = model.tolerated_loss(self, rate.as_bps() as f64);
            let [fraction, one_in] = match loss {
                Some(loss) => [format!("{loss:.2e}"), format!("{} segments", digits(1.0 / loss, 3))],
                None => ["any".to_owned(), "-".to_owned()],
            };
            rows.push([model.name().to_owned(), fraction, one_in, model.assumes(self)]);
            models.push(json!({"model": model.id(), "tolerated_loss": loss}));
        }
        self.with_path(&rows, "rate_bps", json!(rate.as_bps()), models)
    }

    fn with_path(&self, rows: &[[String; 4]], given: &str, value: Value, models: Vec<Value>) -> Answer {
        let json = json!({
            "rtt_ns": self.rtt.as_ns(),
            "mss_bytes": self.mss,
            "segments_per_ack": self.segments_per_ack,
            "rto_ns": self.timeout().as_ns(),
            given: value,
            "models": models,
        });
        Answer { text: columns(rows, &[1, 2]), json }
    }

    fn timeout(&self) -> Nanos {
        self.rto.unwrap_or(Nanos(self.rtt.as_ns().saturating_mul(4)))
    }

    fn ends(&self) -> pftk::Ends {
        pftk::Ends { segments_per_ack: f64::from(self.segments_per_ack), timeout: self.timeout() }
    }
}

/// The models of the table, in its order.
#[derive(Clone, Copy)]
enum Model {
    MathisOne,
    MathisPeriodic,
    MathisIndependent,
    Pftk,
    Tfrc,
    Cubic,
}

impl Model {
    const ALL: [Self; 6] =
        [Self::MathisOne, Self::MathisPeriodic, Self::MathisIndependent, Self::Pftk, Self::Tfrc, Self::Cubic];

    fn name(self) -> &'static str {
        match self {
            Self::MathisOne => "Mathis, C = 1",
            Self::MathisPeriodic => "Mathis, C = 1.22",
            Self::MathisIndependent => "Mathis, C = 1.31",
            Self::Pftk => "PFTK",
            Self::Tfrc => "TFRC",
            Self::Cubic => "CUBIC",
        }
    }

    fn id(self) -> &'static str {
        match self {
            Self::MathisOne => "mathis_c1",
            Self::MathisPeriodic => "mathis_c1.22",
            Self::MathisIndependent => "mathis_c1.31",
            Self::Pftk => "pftk",
            Self::Tfrc => "tfrc",
            Self::Cubic => "cubic",
        }
    }

    fn assumes(self, args: &LossArgs) -> String {
        match self {
            Self::MathisOne => "Reno, no timeouts; rule of thumb".to_owned(),
            Self::MathisPeriodic => "Reno, no timeouts; periodic loss".to_owned(),
            Self::MathisIndependent => "Reno, no timeouts; independent loss".to_owned(),
            Self::Pftk => {
                format!("Reno with timeouts; b = {}, T0 = {}", args.segments_per_ack, args.timeout())
            }
            Self::Tfrc => "Reno with timeouts; b = 1, T0 = 4 RTT".to_owned(),
            Self::Cubic => "no timeouts; periodic loss; at least Reno's".to_owned(),
        }
    }

    fn rate_bps(self, args: &LossArgs, loss: f64) -> f64 {
        match self {
            Self::MathisOne => mathis::rate_bps(args.mss, args.rtt, loss, mathis::C_ONE),
            Self::MathisPeriodic => mathis::rate_bps(args.mss, args.rtt, loss, mathis::C_PERIODIC),
            Self::MathisIndependent => mathis::rate_bps(args.mss, args.rtt, loss, mathis::C_INDEPENDENT),
            Self::Pftk => pftk::rate_bps(args.mss, args.rtt, loss, args.ends()),
            Self::Tfrc => tfrc::rate_bps(args.mss, args.rtt, loss),
            Self::Cubic => cubic::rate_bps(args.mss, args.rtt, loss),
        }
    }

    fn tolerated_loss(self, args: &LossArgs, rate_bps: f64) -> Option<f64> {
        match self {
            Self::MathisOne => mathis::tolerated_loss(args.mss, args.rtt, rate_bps, mathis::C_ONE),
            Self::MathisPeriodic => mathis::tolerated_loss(args.mss, args.rtt, rate_bps, mathis::C_PERIODIC),
            Self::MathisIndependent => {
                mathis::tolerated_loss(args.mss, args.rtt, rate_bps, mathis::C_INDEPENDENT)
            }
            Self::Pftk => pftk::tolerated_loss(args.mss, args.rtt, rate_bps, args.ends()),
            Self::Tfrc => tfrc::tolerated_loss(args.mss, args.rtt, rate_bps),
            Self::Cubic => cubic::tolerated_loss(args.mss, args.rtt, rate_bps),
        }
    }
}
