//! Kernels of guests: user-mode Linux with time travel, found by name in a few folders, described by the content of their files.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bdp_model::plain;
use bdp_sys::places;

/// Kernels that `make kernel` builds from Debian's sources, in the order of preference.
pub const KNOWN: [&str; 3] = ["linux-6.12", "linux-6.1", "linux-7.2"];

/// Prefix of a kernel named by its file.
const BY_PATH: &str = "kernel:";

/// Environment variable of the only folder to search.
const FOLDER_VARIABLE: &str = "BDP_KERNELS";

/// A kernel that guests can boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Requested name: `linux-6.12` or `kernel:PATH`.
    pub name: String,
    /// Path of its program.
    pub path: PathBuf,
    /// Its release, as `uname -r` prints it in a guest.
    pub version: String,
    /// Built-in congestion controls, sorted.
    pub congestion_controls: Vec<String>,
    /// Whether its random numbers follow from the parameter `bdp_seed`: without, every guest draws differently.
    pub seeded: bool,
}

/// Why there is no such kernel, in one line with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// No stack has this name.
    #[error(
        "unknown guest kernel '{0}'; use linux-6.1, linux-6.12, linux-7.2 or kernel:PATH ('bdp lab \
         stacks' lists installed ones)"
    )]
    Unknown(String),
    /// None of the folders has it.
    #[error(
        "{name} is not built{}; run {} in a checkout of bdp, about 2 minutes ('bdp help stacks' lists the folders searched)",
        only(folder),
        make(name)
    )]
    Missing {
        /// Its name.
        name: String,
        /// The only folder that was searched, if one was named.
        folder: Option<PathBuf>,
    },
    /// Its file can't be read.
    #[error("kernel '{}': {cause}; give the path of the program 'linux' of a user-mode Linux", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Cause.
        cause: String,
    },
    /// This user can't execute its file.
    #[error("kernel '{}' is not executable; run 'chmod +x {}'", path.display(), path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// It is a user-mode Linux, but one that uses the machine's clock.
    #[error(
        "kernel '{}' (Linux {version}) was built without CONFIG_UML_TIME_TRAVEL_SUPPORT; 'make kernel' \
         builds one with it", path.display()
    )]
    RealClock {
        /// The file.
        path: PathBuf,
        /// Its release.
        version: String,
    },
}

impl KernelError {
    /// Command that builds the missing part, if there is one.
    pub fn command(&self) -> Option<String> {
        match self {
            KernelError::Missing { name, .. } => Some(command(name)),
            _ => None,
        }
    }
}

fn only(folder: &Option<PathBuf>) -> String {
    match folder {
        Some(folder) => format!(" (not found in {FOLDER_VARIABLE}, '{}')", folder.display()),
        None => String::new(),
    }
}

fn make(name: &str) -> String {
    format!("'{}'", command(name))
}

fn command(name: &str) -> String {
    match name.strip_prefix("linux-") {
        Some(version) => format!("make kernel LINUX={version}"),
        None => "make kernel".to_owned(),
    }
}

/// Whether a name is that of a guest kernel, available or not.
pub fn is_name(name: &str) -> bool {
    name.starts_with(BY_PATH) || version_of(name).is_some()
}

/// Finds the kernel of a name: `linux-VERSION`, searched in the folders, or `kernel:PATH`.
pub fn find(name: &str) -> Result<Kernel, KernelError> {
    Folders::of_process().find(name)
}

/// The default kernel: the first of [`KNOWN`] that is available.
pub fn default() -> Result<Kernel, KernelError> {
    Folders::of_process().default()
}

/// The known kernels, followed by others in the folders, by their paths.
pub fn list() -> Vec<(String, Result<Kernel, KernelError>)> {
    Folders::of_process().list()
}

/// Folders to search for kernels, in order.
struct Folders {
    folders: Vec<PathBuf>,
    /// Whether [`FOLDER_VARIABLE`] named the only one.
    named: bool,
}

impl Folders {
    fn of_process() -> Self {
        let variable = |name| std::env::var_os(name);
        Self::from_environment(
            variable(FOLDER_VARIABLE),
            std::env::current_exe().ok().as_deref(),
            variable("XDG_DATA_HOME"),
            variable("HOME"),
        )
    }

    fn from_environment(
        named: Option<OsString>,
        program: Option<&Path>,
        xdg_data_home: Option<OsString>,
        home: Option<OsString>,
    ) -> Self {
        if let Some(folder) = named.filter(|folder| !folder.is_empty()) {
            return Self { folders: vec![folder.into()], named: true };
        }
        let folders = places::folders("kernels", program, xdg_data_home, home);
        Self { folders, named: false }
    }

    fn find(&self, name: &str) -> Result<Kernel, KernelError> {
        if let Some(path) = name.strip_prefix(BY_PATH) {
            return read(name, Path::new(path));
        }
        if version_of(name).is_none() {
            return Err(KernelError::Unknown(name.to_owned()));
        }
        match self.folders.iter().map(|folder| folder.join(name)).find(|path| path.exists()) {
            Some(path) => read(name, &path),
            None => Err(KernelError::Missing {
                name: name.to_owned(),
                folder: self.folders.first().filter(|_| self.named).cloned(),
            }),
        }
    }

    fn default(&self) -> Result<Kernel, KernelError> {
        let mut first = None;
        for name in KNOWN {
            match self.find(name) {
                Ok(kernel) => return Ok(kernel),
                // One that exists and can't be used is a better error than a missing one.
                Err(KernelError::Missing { .. }) => {}
                Err(error) => first = first.or(Some(error)),
            }
        }
        // Every supported Debian builds the one of the oldest source.
        Err(first.unwrap_or_else(|| self.find("linux-6.1").expect_err("it is missing")))
    }

    fn list(&self) -> Vec<(String, Result<Kernel, KernelError>)> {
        let mut known = KNOWN.map(str::to_owned);
        known.sort_by_key(|name| version_of(name));
        let mut others: Vec<PathBuf> = self
            .folders
            .iter()
            .filter_map(|folder| fs::read_dir(folder).ok())
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                version_of(name).is_some() && !KNOWN.contains(&name)
            })
            .collect();
        others.sort();
        let others = others.iter().map(|path| format!("{BY_PATH}{}", path.display()));
        known.into_iter().chain(others).map(|name| (name.clone(), self.find(&name))).collect()
    }
}

/// The numbers of `linux-6.12`, as a sort key.
fn version_of(name: &str) -> Option<Vec<u32>> {
    name.strip_prefix("linux-")?.split('.').map(|part| part.parse().ok()).collect()
}

/// Reads a kernel's description from its file without running it: the file contains the text of its configuration and its banner.
fn read(name: &str, path: &Path) -> Result<Kernel, KernelError> {
    let unreadable = |cause: String| KernelError::Unreadable { path: path.to_owned(), cause };
    let facts = Facts::read(path).map_err(|e| unreadable(plain::in_words(&e.to_string())))?;
    let Some(version) = facts.version.filter(|_| facts.options.contains("UML")) else {
        return Err(unreadable("this is not a user-mode Linux".to_owned()));
    };
    if !facts.options.contains("UML_TIME_TRAVEL_SUPPORT") {
        return Err(KernelError::RealClock { path: path.to_owned(), version });
    }
    if fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o111 == 0) {
        return Err(KernelError::NotExecutable { path: path.to_owned() });
    }
    let path = std::path::absolute(path).map_err(|e| unreadable(plain::in_words(&e.to_string())))?;
    let congestion_controls = controls(&facts.options);
    let seeded = facts.options.contains("UML_BDP_SEED");
    Ok(Kernel { name: name.to_owned(), path, version, congestion_controls, seeded })
}

/// Facts found in a kernel's file.
#[derive(Default)]
struct Facts {
    version: Option<String>,
    /// Built-in options, without `CONFIG_`.
    options: BTreeSet<String>,
}

impl Facts {
    fn read(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a file"));
        }
        let mut facts = Self::default();
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let mut piece = Vec::new();
        loop {
            piece.clear();
            if reader.read_until(b'\n', &mut piece)? == 0 {
                return Ok(facts);
            }
            // C strings end with a zero byte; these have a newline before it.
            let begin = piece.iter().rposition(|byte| *byte == 0).map_or(0, |zero| zero + 1);
            if let Ok(text) = std::str::from_utf8(&piece[begin..]) {
                facts.note(text.trim_end());
            }
        }
    }

    fn note(&mut self, text: &str) {
        if let Some(option) = text.strip_prefix("CONFIG_").and_then(|text| text.strip_suffix("=y")) {
            self.options.insert(option.to_owned());
        } else if let Some(rest) = text.strip_prefix("Linux version ") {
            let version = rest.split(' ').next().unwrap_or_default();
            if version.starts_with(|first: char| first.is_ascii_digit()) {
                self.version.get_or_insert_with(|| version.to_owned());
            }
        }
    }
}

/// Congestion controls of a configuration, by their TCP_CONGESTION names.
fn controls(options: &BTreeSet<String>) -> Vec<String> {
    let mut names: Vec<String> = options
        .iter()
        .filter_map(|option| option.strip_prefix("TCP_CONG_"))
        .filter(|name| *name != "ADVANCED")
        .map(|name| match name {
            "HSTCP" => "highspeed".to_owned(),
            name => name.to_ascii_lowercase(),
        })
        .chain(["reno".to_owned()])
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const BANNER: &str = "Linux version 6.1.192 (bdp@bdp) (gcc 12.2.0) #1 Thu Jan  1 00:00:00 UTC 1970\n\0";
    const OPTIONS: &str = "CONFIG_UML=y\n\0CONFIG_UML_TIME_TRAVEL_SUPPORT=y\n\0CONFIG_UML_BDP_SEED=y\n\0\
        CONFIG_TCP_CONG_ADVANCED=y\n\0CONFIG_TCP_CONG_HSTCP=y\n\0CONFIG_TCP_CONG_BBR=y\n\0# CONFIG_SMP is not set\n\0";

    /// Writes a file with a kernel's texts between binary bytes.
    fn write(folder: &Path, name: &str, text: &str) {
        let mut bytes = b"\x7fELF\0\xff\xfe\n\xff\0Linux version %s\n\0".to_vec();
        bytes.extend(text.as_bytes());
        bytes.extend([0xff; 100]);
        let path = folder.join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn only_in(folder: &Path) -> Folders {
        Folders::from_environment(Some(folder.into()), None, None, None)
    }

    #[test]
    fn a_kernel_is_described_by_its_file() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "linux-6.1", &format!("{OPTIONS}{BANNER}"));
        let kernel = only_in(folder.path()).find("linux-6.1").unwrap();
        assert_eq!(kernel.version, "6.1.192");
        assert_eq!(kernel.congestion_controls, ["bbr", "highspeed", "reno"]);
        assert!(kernel.seeded);
        let path = folder.path().join("linux-6.1");
        let by_path = only_in(Path::new("/nowhere")).find(&format!("kernel:{}", path.display())).unwrap();
        assert_eq!((by_path.path, by_path.version), (kernel.path, kernel.version));
    }

    #[test]
    fn an_error_names_the_command() {
        let folder = tempfile::tempdir().unwrap();
        let folders = only_in(folder.path());
        let error = folders.find("linux-6.12").unwrap_err();
        assert_eq!(error.command().unwrap(), "make kernel LINUX=6.12");
        assert!(error.to_string().contains("run 'make kernel LINUX=6.12' in a checkout of bdp"), "{error}");
        assert!(error.to_string().contains("BDP_KERNELS"), "{error}");
        write(folder.path(), "linux-6.1", &format!("CONFIG_UML=y\n\0{BANNER}"));
        let error = folders.find("linux-6.1").unwrap_err().to_string();
        assert!(
            error.contains("(Linux 6.1.192) was built without CONFIG_UML_TIME_TRAVEL_SUPPORT"),
            "{error}"
        );
        write(folder.path(), "linux-7.2", "nothing");
        let error = folders.find("linux-7.2").unwrap_err().to_string();
        assert!(error.contains("not a user-mode Linux"), "{error}");
        for path in ["kernel:/dev/zero", "kernel:/", "kernel:/nowhere", "kernel:"] {
            assert!(matches!(folders.find(path), Err(KernelError::Unreadable { .. })), "{path}");
        }
        for name in ["linux", "linux-", "linux-6.x", "linux-6.1/../x", "freebsd"] {
            assert_eq!(folders.find(name), Err(KernelError::Unknown(name.to_owned())));
            assert!(!is_name(name));
        }
    }

    #[test]
    fn the_default_is_the_first_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let folders = only_in(folder.path());
        assert_eq!(folders.default().unwrap_err().command().unwrap(), "make kernel LINUX=6.1");
        for (name, default) in
            [("linux-7.2", "linux-7.2"), ("linux-6.1", "linux-6.1"), ("linux-6.12", "linux-6.12")]
        {
            write(folder.path(), name, &format!("{OPTIONS}{BANNER}"));
            assert_eq!(folders.default().unwrap().name, default);
        }
        write(folder.path(), "linux-6.20", &format!("{OPTIONS}{BANNER}"));
        write(folder.path(), "linux-6.1.config", OPTIONS);
        let names: Vec<_> = folders.list().into_iter().map(|(name, _)| name).collect();
        let other = format!("kernel:{}", folder.path().join("linux-6.20").display());
        assert_eq!(names, ["linux-6.1", "linux-6.12", "linux-7.2", &other]);
        assert_eq!(folders.find(&other).unwrap().version, "6.1.192");
    }

    #[test]
    fn a_file_that_may_not_be_executed_says_what_lets_it() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "linux-6.1", &format!("{OPTIONS}{BANNER}"));
        let path = folder.path().join("linux-6.1");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = only_in(folder.path()).find("linux-6.1").unwrap_err().to_string();
        assert_eq!(error, format!("kernel '{0}' is not executable; run 'chmod +x {0}'", path.display()));
    }

    #[test]
    fn places_are_looked_in_from_near_to_far() {
        let program = Path::new("/src/target/debug/deps/it-1");
        let folders = Folders::from_environment(Some("".into()), Some(program), None, Some("/home/a".into()));
        let wanted = [
            "/src/target/debug/deps/kernels",
            "/src/target/debug/lib/bdp/kernels",
            "/src/target/kernels",
            "/home/a/.local/share/bdp/kernels",
            "/usr/local/lib/bdp/kernels",
            "/usr/lib/bdp/kernels",
        ];
        assert_eq!(folders.folders, wanted.map(PathBuf::from));
        let folders =
            Folders::from_environment(None, Some(Path::new("/opt/bin/bdp")), Some("/data".into()), None);
        assert_eq!(
            folders.folders[..3],
            ["/opt/bin/kernels", "/opt/lib/bdp/kernels", "/data/bdp/kernels"].map(PathBuf::from)
        );
    }
}
