//! `bdp-fuzz list`; `bdp-fuzz seeds FOLDER` writes what libFuzzer begins with; `bdp-fuzz run TARGET|all SECONDS [SEED]` tries mutated
//! inputs and keeps the first that makes a target panic.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bdp_fuzz::mutator::Mutator;
use bdp_fuzz::{Target, corpus, find, targets};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["list"] => {
            targets().for_each(|target| println!("{}", target.name));
            Ok(true)
        }
        ["seeds", folder] => seeds(Path::new(folder)).map(|()| true),
        ["run", name, seconds, seed @ ..] => run(name, seconds, seed.first().copied().unwrap_or("1")),
        _ => {
            Err(std::io::Error::other("write: bdp-fuzz list | seeds FOLDER | run TARGET|all SECONDS [SEED]"))
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("bdp-fuzz: {error}");
            ExitCode::from(2)
        }
    }
}

fn seeds(folder: &Path) -> std::io::Result<()> {
    for target in targets() {
        let folder = folder.join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (i, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{i}")), seed)?;
        }
    }
    Ok(())
}

fn run(name: &str, seconds: &str, seed: &str) -> std::io::Result<bool> {
    let wrong = |what: &str| std::io::Error::other(format!("'{what}' is not a number, or no target"));
    let time = Duration::from_secs_f64(seconds.parse().map_err(|_| wrong(seconds))?);
    let seed = seed.parse().map_err(|_| wrong(seed))?;
    let chosen: Vec<&Target> = match name {
        "all" => targets().collect(),
        one => vec![find(one).ok_or_else(|| wrong(one))?],
    };
    let mut all_held = true;
    for target in chosen {
        all_held &= try_out(target, time, seed)?;
    }
    Ok(all_held)
}

fn try_out(target: &Target, time: Duration, seed: u64) -> std::io::Result<bool> {
    let inputs = corpus::inputs(target)?;
    let mut mutator = Mutator::new(seed);
    let (began, mut tried, mut slowest) = (Instant::now(), 0_u64, Duration::ZERO);
    while began.elapsed() < time {
        let input = mutator.mutate(&inputs);
        let since = Instant::now();
        if catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err() {
            println!(
                "{}: FAILED, kept as {}",
                target.name,
                corpus::keep(target, "panic-", &input)?.display()
            );
            return Ok(false);
        }
        slowest = slowest.max(since.elapsed());
        tried += 1;
    }
    println!("{}: {tried} inputs held, the slowest took {slowest:?}", target.name);
    Ok(true)
}
