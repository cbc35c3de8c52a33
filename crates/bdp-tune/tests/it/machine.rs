//! A machine in memory: settings that end with a boot, and a disk of which only what was synced is sure to survive one.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use bdp_model::measurement::ends::End;
use bdp_model::tuning::{Change, Reason, RouteAttribute, Target};
use bdp_tune::{Fault, Holder, Journal, Reading, Removal, World};

pub const FOLDER: &str = "/journals";
pub const PERSISTENT: &str = "/boot/90-bdp.conf";

/// The payload of the unwinding that stands for an end at a step.
pub struct Died;

/// What a file system keeps of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Nothing.
    All,
    /// Names, and of contents the first half.
    Contents,
    /// Everything, as if the machine had had the time.
    Nothing,
}

#[derive(Debug, Clone, Default)]
struct Inode {
    content: Vec<u8>,
    durable: Vec<u8>,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub value: Option<String>,
    pub holder: Holder,
}

#[derive(Debug, Clone)]
pub struct Machine {
    pub settings: BTreeMap<Target, Setting>,
    defaults: BTreeMap<Target, Setting>,
    inodes: Vec<Inode>,
    folders: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    pub boot: u32,
    pub namespace: u64,
    pub uptime_ns: u64,
    /// Each step that changes something, as it was done.
    pub steps: Vec<String>,
    /// The step at which the process ends, before it is done, and half done where it is the making of a file.
    pub die_at: Option<usize>,
    /// Settings that the kernel refuses to take, and what it makes of others.
    pub refuses: Vec<Target>,
    pub makes: BTreeMap<Target, String>,
    /// Where a write of files fails.
    pub disk_is_full: bool,
    pub locked_by: Option<u32>,
    pub guards: Vec<Journal>,
    pub was_released: bool,
    /// Guards that were told that their changes are settled.
    pub dismissed: Vec<u32>,
    /// What is in the place of a file and can't be read as one: why.
    pub unreadable: BTreeMap<PathBuf, String>,
    /// Whether the folder of journals was moved away.
    pub is_folder_away: bool,
}

pub fn rmem() -> Target {
    Target::sysctl("net.ipv4.tcp_rmem")
}

pub fn wmem() -> Target {
    Target::sysctl("net.ipv4.tcp_wmem")
}

pub fn route(attribute: RouteAttribute) -> Target {
    Target::Route { to: "192.0.2.7".parse().unwrap(), attribute }
}

pub fn qdisc() -> Target {
    Target::Qdisc { device: "eth0".to_owned() }
}

pub fn change(target: Target, from: Option<&str>, to: &str) -> Change {
    Change {
        end: End::Near,
        target,
        from: from.map(str::to_owned),
        to: to.to_owned(),
        reason: Reason::Off,
        gain: None,
    }
}

/// A change of each kind.
pub fn changes() -> Vec<Change> {
    vec![
        change(rmem(), Some("4096 131072 6291456"), "4096 131072 16777216"),
        change(route(RouteAttribute::Congctl), None, "bbr"),
        change(route(RouteAttribute::Initcwnd), None, "20"),
        change(qdisc(), None, "fq maxrate 95000000bit"),
        change(wmem(), Some("4096 16384 4194304"), "4096 16384 16777216"),
    ]
}

impl Machine {
    pub fn new() -> Self {
        let setting =
            |value: Option<&str>| Setting { value: value.map(str::to_owned), holder: Holder::Kernel };
        let settings = BTreeMap::from([
            (rmem(), setting(Some("4096\t131072\t6291456"))),
            (wmem(), setting(Some("4096\t16384\t4194304"))),
            (route(RouteAttribute::Congctl), setting(None)),
            (route(RouteAttribute::Initcwnd), setting(None)),
            (qdisc(), setting(Some("fq_codel"))),
            (Target::sysctl("net.ipv4.tcp_fack"), setting(Some("0"))),
        ]);
        Self {
            defaults: settings.clone(),
            settings,
            inodes: Vec::new(),
            folders: BTreeSet::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            boot: 1,
            namespace: 1,
            uptime_ns: 1_000,
            steps: Vec::new(),
            die_at: None,
            refuses: Vec::new(),
            makes: BTreeMap::new(),
            disk_is_full: false,
            locked_by: None,
            guards: Vec::new(),
            was_released: false,
            dismissed: Vec::new(),
            unreadable: BTreeMap::new(),
            is_folder_away: false,
        }
    }

    /// Whether each setting is as the machine began.
    #[track_caller]
    pub fn assert_as_before(&self, what: &str) {
        for (target, before) in &self.defaults {
            assert_eq!(&self.settings[target], before, "{what}: {target}");
        }
    }

    pub fn has_file(&self, path: &str) -> bool {
        self.names.contains_key(Path::new(path))
    }

    pub fn file(&self, path: &str) -> String {
        String::from_utf8(self.inodes[self.names[Path::new(path)]].content.clone()).unwrap()
    }

    pub fn journals(&self) -> Vec<String> {
        let names = self.names.keys().filter(|path| path.starts_with(FOLDER));
        let names = names.map(|path| path.file_name().unwrap().to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(".json")).collect()
    }

    /// The process is gone: its lock with it, and its guard puts back later, which no test waits for.
    pub fn kill(&mut self) {
        self.locked_by = None;
        self.die_at = None;
        self.guards.clear();
    }

    /// The machine loses its power and boots anew; what it reads at boot is set.
    pub fn lose_power(&mut self, loss: Loss) {
        self.kill();
        self.boot += 1;
        self.uptime_ns = 1_000;
        self.settings = self.defaults.clone();
        if loss == Loss::All {
            self.names = self.durable_names.clone();
        }
        for inode in &mut self.inodes {
            match loss {
                Loss::All => inode.content = inode.durable.clone(),
                Loss::Contents if inode.content != inode.durable => {
                    let half = inode.content.len() / 2;
                    inode.content.truncate(half);
                }
                Loss::Contents | Loss::Nothing => {}
            }
            inode.durable = inode.content.clone();
        }
        self.durable_names = self.names.clone();
        if self.has_file(PERSISTENT) {
            for line in self.file(PERSISTENT).lines().filter(|line| !line.starts_with('#')) {
                let (name, value) = line.split_once(" = ").expect("a line of sysctl.d");
                self.settings.get_mut(&Target::sysctl(name)).expect("a known sysctl").value =
                    Some(value.to_owned());
            }
        }
    }

    /// Somebody else sets something.
    pub fn set(&mut self, target: &Target, value: &str, holder: Holder) {
        *self.settings.get_mut(target).unwrap() = Setting { value: Some(value.to_owned()), holder };
    }

    pub fn put_file(&mut self, path: &str, content: &[u8]) {
        self.folders.insert(Path::new(path).parent().unwrap().to_owned());
        self.inodes.push(Inode { content: content.to_vec(), durable: content.to_vec() });
        self.names.insert(path.into(), self.inodes.len() - 1);
        self.durable_names.insert(path.into(), self.inodes.len() - 1);
    }

    /// Takes note of a step; does not return where the process is to end.
    fn step(&mut self, what: String) {
        self.reaches(what);
        if self.is_dead() {
            std::panic::resume_unwind(Box::new(Died));
        }
    }

    fn reaches(&mut self, what: String) {
        self.steps.push(what);
    }

    fn is_dead(&self) -> bool {
        self.die_at.is_some_and(|at| self.steps.len() > at)
    }

    fn has_folder(&self, folder: &Path) -> io::Result<()> {
        if self.folders.contains(folder) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn room(&self) -> io::Result<()> {
        if self.disk_is_full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

fn shown(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

impl World for Machine {
    fn read(&mut self, target: &Target) -> Result<Reading, Fault> {
        let setting = self.settings.get(target).ok_or(Fault::Unknown)?;
        Ok(Reading { value: setting.value.clone(), holder: setting.holder })
    }

    fn check(&mut self, _: &Target, _: &str) -> Result<(), Fault> {
        Ok(())
    }

    fn write(&mut self, target: &Target, value: &str) -> Result<(), Fault> {
        self.step(format!("write {target}"));
        if self.refuses.contains(target) {
            return Err(Fault::BadValue(value.to_owned()));
        }
        let value = self.makes.get(target).cloned().unwrap_or_else(|| value.replace(' ', "\t"));
        let is_bdps = !matches!(target, Target::Sysctl { .. });
        let holder = if is_bdps { Holder::Bdp } else { Holder::Kernel };
        if let Target::Route { to, .. } = target {
            // The route is one for all of its attributes.
            for (other, setting) in &mut self.settings {
                if matches!(other, Target::Route { to: same, .. } if same == to) {
                    setting.holder = holder;
                }
            }
        }
        let value = if is_bdps { value.replace('\t', " ") } else { value };
        *self.settings.get_mut(target).ok_or(Fault::Unknown)? = Setting { value: Some(value), holder };
        Ok(())
    }

    fn remove(&mut self, target: &Target, what: Removal) -> Result<(), Fault> {
        self.step(format!("remove {target}"));
        match (target, what) {
            (Target::Route { to, .. }, Removal::Whole) => {
                for (other, setting) in &mut self.settings {
                    if matches!(other, Target::Route { to: same, .. } if same == to) {
                        *setting = self.defaults[other].clone();
                    }
                }
            }
            (_, Removal::Whole) => {
                let default = self.defaults[target].clone();
                self.settings.insert(target.clone(), default);
            }
            (_, Removal::Attribute) => self.settings.get_mut(target).ok_or(Fault::Unknown)?.value = None,
        }
        Ok(())
    }

    fn list(&mut self, folder: &Path) -> io::Result<Vec<String>> {
        let marks =
            self.guards.iter().map(|journal| Path::new(FOLDER).join(format!("{:04}.guard", journal.id)));
        let names = self.names.keys().chain(self.unreadable.keys()).cloned().chain(marks);
        Ok(names.filter(|path| path.parent() == Some(folder)).map(|path| shown(&path)).collect())
    }

    fn read_file(&mut self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        if let Some(why) = self.unreadable.get(path) {
            return Err(io::Error::other(why.clone()));
        }
        if self.is_folder_away && path.starts_with(FOLDER) {
            return Ok(None);
        }
        Ok(self.names.get(path).map(|&inode| self.inodes[inode].content.clone()))
    }

    fn make_folder(&mut self, folder: &Path) -> io::Result<()> {
        self.folders.insert(folder.to_owned());
        Ok(())
    }

    fn create_file(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.reaches(format!("create {}", shown(path)));
        self.has_folder(path.parent().unwrap())?;
        self.room()?;
        let is_dead = self.is_dead();
        let written = if is_dead { &content[..content.len() / 2] } else { content };
        self.inodes.push(Inode { content: written.to_vec(), durable: Vec::new() });
        self.names.insert(path.to_owned(), self.inodes.len() - 1);
        if is_dead {
            std::panic::resume_unwind(Box::new(Died));
        }
        Ok(())
    }

    fn sync_file(&mut self, path: &Path) -> io::Result<()> {
        self.step(format!("sync {}", shown(path)));
        let inode = &mut self.inodes[self.names[path]];
        inode.durable = inode.content.clone();
        Ok(())
    }

    fn sync_folder(&mut self, folder: &Path) -> io::Result<()> {
        self.step(format!("sync {}", folder.display()));
        self.has_folder(folder)?;
        self.durable_names.retain(|path, _| path.parent() != Some(folder));
        let here = self.names.iter().filter(|(path, _)| path.parent() == Some(folder));
        self.durable_names.extend(here.map(|(path, inode)| (path.clone(), *inode)));
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(format!("rename to {}", shown(to)));
        let inode = self.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        self.names.insert(to.to_owned(), inode);
        Ok(())
    }

    fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        self.step(format!("remove {}", shown(path)));
        self.names.remove(path);
        Ok(())
    }

    fn lock(&mut self) -> io::Result<Result<(), Option<u32>>> {
        if self.is_folder_away {
            return Err(io::ErrorKind::NotFound.into());
        }
        if let Some(pid) = self.locked_by {
            return Ok(Err(Some(pid)));
        }
        self.locked_by = Some(1);
        Ok(Ok(()))
    }

    fn unlock(&mut self) {
        self.locked_by = self.locked_by.filter(|&pid| pid != 1);
    }

    fn start_guard(&mut self, id: u32, journal: &[u8]) -> io::Result<()> {
        self.step("start the guard".to_owned());
        self.guards.push(Journal::decode(journal).unwrap());
        assert_eq!(self.guards.last().unwrap().id, id);
        Ok(())
    }

    fn release_guard(&mut self) {
        self.was_released = true;
    }

    fn is_guarded(&mut self, id: u32) -> bool {
        self.guards.iter().any(|guarded| guarded.id == id)
    }

    fn is_awaited(&mut self, id: u32) -> bool {
        self.is_guarded(id) && self.was_released && !self.dismissed.contains(&id)
    }

    fn dismiss_guard(&mut self, id: u32) {
        if self.is_guarded(id) {
            self.dismissed.push(id);
        }
    }

    fn is_dismissed(&mut self) -> bool {
        !self.dismissed.is_empty()
    }

    fn folder(&self) -> PathBuf {
        FOLDER.into()
    }

    fn persistent_file(&self) -> PathBuf {
        PERSISTENT.into()
    }

    fn boot_id(&mut self) -> Result<String, Fault> {
        Ok(format!("boot {}", self.boot))
    }

    fn network_namespace(&mut self) -> Result<u64, Fault> {
        Ok(self.namespace)
    }

    fn kernel(&self) -> String {
        "6.1.0".to_owned()
    }

    fn uptime_ns(&mut self) -> u64 {
        self.uptime_ns
    }

    fn unix_ms(&mut self) -> u64 {
        1_700_000_000_000 + self.uptime_ns / 1_000_000
    }
}
