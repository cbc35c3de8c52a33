//! Inverse of the normal distribution, identical to the last bit on every machine.
//!
//! Only additions, multiplications, divisions and square roots are used, which IEEE 754 defines to the last bit.
//! The logarithm of the tails is computed here, because libraries differ in theirs.

/// The quantile of the standard normal distribution at `p`, for 0 < p < 1; relative error about 1e-16.
///
/// M. J. Wichura, Algorithm AS 241: The Percentage Points of the Normal Distribution, Applied Statistics 37 (1988),
/// routine PPND16.
pub(crate) fn quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * polynomial(&CENTRE[0], r) / polynomial(&CENTRE[1], r);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = (-ln(tail)).sqrt();
    let z = if r <= 5.0 {
        polynomial(&MIDDLE[0], r - 1.6) / polynomial(&MIDDLE[1], r - 1.6)
    } else {
        polynomial(&FAR[0], r - 5.0) / polynomial(&FAR[1], r - 5.0)
    };
    if q < 0.0 { -z } else { z }
}

/// Horner's scheme; the constant term first.
fn polynomial(coefficients: &[f64; 8], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

/// The natural logarithm of a positive normal number: with x = m x 2^e and m near 1,
/// ln x = e ln 2 + 2 artanh((m - 1) / (m + 1)), the series of which ends below 2^-60.
pub(crate) fn ln(x: f64) -> f64 {
    const LN_2: f64 = std::f64::consts::LN_2;
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & MANTISSA | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    // |s| <= 0.1716, so s^2k falls below 2^-60 within twelve terms.
    let series = (0..12).rev().fold(0.0, |sum, k| sum * (s * s) + 1.0 / (2 * k + 1) as f64);
    exponent as f64 * LN_2 + 2.0 * s * series
}

#[allow(clippy::excessive_precision, reason = "as printed in the paper")]
const CENTRE: [[f64; 8]; 2] = [
    [
        3.387_132_872_796_366_608,
        1.331_416_678_917_843_774_5e2,
        1.971_590_950_306_551_442_7e3,
        1.373_169_376_550_946_112_5e4,
        4.592_195_393_154_987_145_7e4,
        6.726_577_092_700_870_085_3e4,
        3.343_057_558_358_812_810_5e4,
        2.509_080_928_730_122_672_7e3,
    ],
    [
        1.0,
        4.231_333_070_160_091_125_2e1,
        6.871_870_074_920_579_083e2,
        5.394_196_021_424_751_107_7e3,
        2.121_379_430_158_659_586_7e4,
        3.930_789_580_009_271_061e4,
        2.872_908_573_572_194_267_4e4,
        5.226_495_278_852_854_561e3,
    ],
];

#[allow(clippy::excessive_precision, reason = "as printed in the paper")]
const MIDDLE: [[f64; 8]; 2] = [
    [
        1.423_437_110_749_683_577_34,
        4.630_337_846_156_545_295_9,
        5.769_497_221_460_691_405_5,
        3.647_848_324_763_204_605_04,
        1.270_458_252_452_368_382_58,
        2.417_807_251_774_506_117_7e-1,
        2.272_384_498_926_918_458_33e-2,
        7.745_450_142_783_414_076_4e-4,
    ],
    [
        1.0,
        2.053_191_626_637_758_821_87,
        1.676_384_830_183_803_849_4,
        6.897_673_349_851_000_045_5e-1,
        1.481_039_764_274_800_745_9e-1,
        1.519_866_656_361_645_719_66e-2,
        5.475_938_084_995_344_946e-4,
        1.050_750_071_644_416_843_24e-9,
    ],
];

#[allow(clippy::excessive_precision, reason = "as printed in the paper")]
const FAR: [[f64; 8]; 2] = [
    [
        6.657_904_643_501_103_777_2,
        5.463_784_911_164_114_369_9,
        1.784_826_539_917_291_335_8,
        2.965_605_718_285_048_912_3e-1,
        2.653_218_952_657_612_309_3e-2,
        1.242_660_947_388_078_438_6e-3,
        2.711_555_568_743_487_578_15e-5,
        2.010_334_399_292_288_132_65e-7,
    ],
    [
        1.0,
        5.998_322_065_558_879_376_9e-1,
        1.369_298_809_227_358_053_1e-1,
        1.487_536_129_085_061_485_25e-2,
        7.868_691_311_456_132_591e-4,
        1.846_318_317_510_054_681_8e-5,
        1.421_511_758_316_445_888_7e-7,
        2.044_263_103_389_939_785_64e-15,
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Abramowitz and Stegun, table 26.5 and 26.6, and the two test values of the paper.
        for (p, z) in [
            (0.25, -0.674_489_750_196_081_7),
            (0.001, -3.090_232_306_167_814),
            (1e-20, -9.262_340_089_798_408),
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.84, 0.994_457_883_209_753_1),
            (0.999, 3.090_232_306_167_813_5),
        ] {
            let got = quantile(p);
            assert!((got - z).abs() <= 2e-15 * z.abs().max(1.0), "{p}: {got}, expected {z}");
        }
    }

    #[test]
    fn it_is_odd_and_rises() {
        let all: Vec<f64> = (1..4096).map(|i| quantile(f64::from(i) / 4096.0)).collect();
        assert!(all.windows(2).all(|w| w[0] < w[1]));
        assert!(all.iter().zip(all.iter().rev()).all(|(a, b)| *a == -*b));
    }

    #[test]
    fn the_logarithm_is_the_library_s_to_rounding() {
        for i in 1..10_000 {
            for x in [f64::from(i) / 10_000.0, f64::from(i) * 1e-17, f64::from(i)] {
                let (own, theirs) = (ln(x), x.ln());
                assert!((own - theirs).abs() <= 4e-16 * theirs.abs().max(1e-2), "{x}: {own}, {theirs}");
            }
        }
    }

    #[test]
    fn bits_are_the_same_everywhere() {
        let bits = [1e-16, 0.01, 0.3, 0.95].map(|p| quantile(p).to_bits());
        assert_eq!(bits, PINNED, "{bits:#x?}");
    }

    // Computed apart, by Python's statistics.NormalDist.
    const PINNED: [u64; 4] =
        [0xc020_71b4_c29e_9b5a, 0xc002_9c5c_4630_ff0e, 0xbfe0_c7e3_9582_c5fa, 0x3ffa_5152_0967_6ab8];
}
