//! `bdp page`: the page on this machine.

mod browser;
mod form;
mod history;
mod host;
mod orders;
mod parser;
mod refused;
mod what_if;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use bdp_sys::random;
use bdp_web::{Door, Server};
use bdp_wire::proof::hex;

pub use parser::{Parsed, Parser, Typed};

use host::CommandLine;
use orders::Orders;

use crate::exit::{self, Exit, Outcome};
use crate::store::StoreArgs;
use crate::{help, interrupt, output, reach, token};

/// Where the page listens unless told otherwise.
const LISTEN: &str = "127.0.0.1:5280";
/// Bytes of a token.
const TOKEN_BYTES: usize = 16;

/// Open the page in a browser.
///
/// The page runs on this machine, listens on loopback, and prints a link whose token lets only you use it. It does what
/// the command line does: it measures, explains, and shows stored runs.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  bdp page
  bdp page --no-browser                    prints the link only
  ssh -L 5280:127.0.0.1:5280 ams1 bdp page    the page of ams1, in the browser here
  bdp page --listen 192.0.2.7:5280         for other machines; use a proxy with TLS ('bdp help browser')

Ctrl-C ends the page, and a test that is running. BDP_PAGE_TOKEN is its token, if set.")]
pub struct PageArgs {
    /// Address and port to listen on; port 0 takes any free one [default: 127.0.0.1:5280, or a free port]
    #[arg(long, value_name = "ADDR:PORT", help_heading = help::ADDRESS)]
    listen: Option<SocketAddr>,

    /// Host name by which a browser or a proxy addresses this page, beside its addresses and localhost; repeatable
    #[arg(long = "name", value_name = "HOST", help_heading = help::ADDRESS)]
    names: Vec<String>,

    /// Only print the link
    #[arg(long, help_heading = help::OUTPUT)]
    no_browser: bool,

    /// Token of the link, instead of a new one; safer in BDP_PAGE_TOKEN or --token-file
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file", help_heading = help::ACCESS)]
    token: Option<String>,

    /// File whose first line is the token
    #[arg(long, value_name = "FILE", help_heading = help::ACCESS)]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArgs,
}

impl PageArgs {
    /// Serves the page until it is ended.
    pub fn run(self, parser: Parser) -> Outcome {
        let token = match token::find_page(self.token.as_deref(), self.token_file.as_deref())? {
            Some(token) if !token.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b)) => {
                return Err(exit::usage(
                    "the token of a page is part of a link: letters, digits, - . _ ~ only",
                ));
            }
            Some(token) if token.len() >= TOKEN_BYTES => token,
            Some(_) => {
                return Err(exit::usage(format!(
                    "the token of a page needs at least {TOKEN_BYTES} characters"
                )));
            }
            None => secret()?,
        };
        reach::narrow();
        let unstored = self.unstored()?;
        let listener = self.listener()?;
        let address = listener.local_addr().map_err(|error| exit::environment(format!("listen: {error}")))?;
        let door = Door::new(token.clone(), secret()?, self.names.clone(), address.ip().is_loopback());
        let (end, ends) = mpsc::channel();
        let is_asked = AtomicBool::new(false);
        interrupt::hand_over(move |ending, _| {
            // A second one does not wait for a test that is running.
            if is_asked.swap(true, Ordering::Relaxed) || end.send(()).is_err() {
                ending.carry_out();
            }
        });
        // An address of all is none to open.
        let shown = match address.ip().is_unspecified() && address.port() != bdp_model::measurement::PORT {
            true => crate::serve::target_of(address),
            false => address.to_string(),
        };
        let link = format!("http://{shown}/#token={token}");
        output::print(&format!("{link}\n"))?;
        if !address.ip().is_loopback() {
            output::note(
                "note: what the browser and the page exchange is not encrypted, the token included; 'bdp help browser' has a proxy with TLS",
            );
        }
        let opened = (!self.no_browser).then(|| browser::open(&link));
        match &opened {
            Some(Err(why)) => output::note(&format!("note: {why}; open the link in a browser")),
            Some(Ok(_)) => output::note("opening it in a browser; if none appears, open the link yourself"),
            None => {}
        }
        let orders = Orders { parser, store: self.store.clone() };
        let server = Server { listener, door, host: Arc::new(CommandLine::new(orders, unstored)) };
        let served = bdp_web::serve(server, move || ends.recv().unwrap_or(()));
        drop(opened);
        served.map_err(|error| exit::environment(format!("serve the page: {error}")))?;
        Ok(Exit::Done)
    }

    /// Creates the store, and reports now what would otherwise end a test. Returns why nothing can be stored, if what is
    /// there can be read.
    fn unstored(&self) -> anyhow::Result<Option<String>> {
        let error = match self.store.open() {
            Ok(Some(_)) => return Ok(None),
            Ok(None) => return Ok(Some("no store can be written here".to_owned())),
            Err(error) => error,
        };
        if self.store.open_to_read().is_err() {
            return Err(error);
        }
        let why = output::tame(&format!("{error:#}"));
        output::note(&format!("note: nothing is stored: {why}"));
        Ok(Some(why))
    }

    fn listener(&self) -> anyhow::Result<TcpListener> {
        let usual: SocketAddr = LISTEN.parse()?;
        let wanted = self.listen.unwrap_or(usual);
        match TcpListener::bind(wanted) {
            Err(error) if self.listen.is_none() && error.kind() == std::io::ErrorKind::AddrInUse => {
                output::note(&format!(
                    "note: {usual} is in use, perhaps by another page; taking a free port"
                ));
                TcpListener::bind(SocketAddr::new(usual.ip(), 0))
            }
            bound => bound,
        }
        .map_err(|error| {
            exit::environment(format!("listen on {wanted}: {error}; choose another with --listen"))
        })
    }
}

fn secret() -> anyhow::Result<String> {
    let bytes: [u8; TOKEN_BYTES] =
        random::bytes().map_err(|error| exit::environment(format!("random bytes for the token: {error}")))?;
    Ok(hex(&bytes))
}
