"""The servers of `benches/programs`: what each needs, the files that are made once, and how it is started on far.

A server's `start_NAME(path, group, *words)` ends when it listens; `words` are `server_words` of the case. Nothing is read or kept outside of the folder of the run.
"""
import contextlib
import glob
import os
import shutil
import subprocess
import sys
import time

from real_path import run

QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
# What must be installed for each.
NEEDS = {
    "nginx": ["nginx", "openssl"], "nghttpd": ["nghttpd", "openssl"], "ssh": ["/usr/sbin/sshd", "ssh"], "rsync": ["rsync"], "postgres": ["psql", "setpriv"],
    "redis": ["redis-server", "redis-cli"], "git": ["git"], "mariadb": ["mariadbd", "mariadb-install-db", "mariadb"], "memcached": ["memcached"], "vsftpd": ["vsftpd"],
    "haproxy": ["haproxy"], "samba": ["smbd", "smbclient"], "mosquitto": ["mosquitto", "mosquitto_pub", "mosquitto_sub"], "dnsmasq": ["dnsmasq", "dig"],
    "dropbear": ["dropbear", "ssh"], "nc": ["nc"], "socat": ["socat"], "lighttpd": ["lighttpd"], "squid": ["squid"], "stunnel": ["stunnel", "openssl"],
    "iperf3": ["iperf3"], "iperf": ["iperf"], "busybox": ["busybox"], "openssl": ["openssl"], "mail": [], "http_server": [], "backend": [], "peer": [], "none": [],
}


class Servers:
    """What the programs need: files made once, and how each server is started."""

    def __init__(self, work):
        self.work = work
        os.chmod(work, 0o755)
        os.makedirs("/run/sshd", exist_ok=True)
        os.makedirs(f"{work}/www")
        os.makedirs(f"{work}/in", mode=0o777)
        for name, size in (("big", 64 << 20), ("some", 8 << 20), ("middle", 2_500_000), ("short", 400_000), ("page", 2_000)):
            with open(f"{work}/www/{name}", "wb") as file:
                file.write(os.urandom(size))
        os.makedirs(f"{work}/few")
        for number in range(60):
            shutil.copy(f"{work}/www/page", f"{work}/few/file{number}")
        self.write("backend.py", BACKEND)
        self.write("peer.py", PEER)
        self.write("mail.py", MAIL)
        self.made = set()

    def once(self, name):
        if name not in self.made:
            self.made.add(name)
            getattr(self, f"make_{name}")()

    def write(self, name, text):
        with open(f"{self.work}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
        return f"{self.work}/{name}"

    def make_certificate(self):
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{self.work}/key.pem", "-out", f"{self.work}/cert.pem", "-days", "2", "-subj", "/CN=far")

    def make_nginx(self):
        self.once("certificate")
        os.makedirs(f"{self.work}/nginx-tmp", exist_ok=True)
        temporary = "".join(f"{kind}_temp_path {self.work}/nginx-tmp/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        self.write("nginx.conf", f"""
            user root; worker_processes 1; daemon off; pid {self.work}/nginx.pid; error_log /dev/null;
            events {{ worker_connections 512; }}
            http {{
                access_log off; {temporary} keepalive_timeout 60; keepalive_requests 10000; client_max_body_size 0; http2_max_requests 10000;
                server {{
                    listen 80; listen 443 ssl http2; ssl_certificate {self.work}/cert.pem; ssl_certificate_key {self.work}/key.pem;
                    root {self.work}/www;
                    location /limited/ {{ alias {self.work}/www/; limit_rate 200k; }}
                    location /think {{ proxy_pass http://127.0.0.1:8000; }}
                    location /drip {{ proxy_pass http://127.0.0.1:8000; proxy_buffering off; }}
                    location /in {{ proxy_pass http://127.0.0.1:8000; proxy_request_buffering off; }}
                }}
            }}""")

    def start_nginx(self, path, group):
        self.once("nginx")
        path.start("far", [sys.executable, f"{self.work}/backend.py", "127.0.0.1"], **QUIET)
        path.start("far", ["nginx", "-c", f"{self.work}/nginx.conf"], group=group, **QUIET)
        path.wait_for_port("far", 80)
        path.wait_for_port("far", 8000)

    def start_nghttpd(self, path, group, *options):
        self.once("certificate")
        path.start("far", ["nghttpd", *options, "-d", f"{self.work}/www", "8443", f"{self.work}/key.pem", f"{self.work}/cert.pem"], group=group, **QUIET)
        path.wait_for_port("far", 8443)

    def make_ssh(self):
        for name in ("host", "user"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{self.work}/{name}_key")
        shutil.copy(f"{self.work}/user_key.pub", f"{self.work}/authorized_keys")
        self.write("sshd.conf", f"""
Port 22
HostKey {self.work}/host_key
AuthorizedKeysFile {self.work}/authorized_keys
StrictModes no
UsePAM no
PermitRootLogin yes
PidFile none
Subsystem sftp internal-sftp
""")
        self.write("ssh.conf", f"""
Host *
User root
IdentityFile {self.work}/user_key
IdentitiesOnly yes
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
BatchMode yes
""")

    def start_ssh(self, path, group):
        self.once("ssh")
        path.start("far", ["/usr/sbin/sshd", "-D", "-e", "-f", f"{self.work}/sshd.conf"], group=group, **QUIET)
        path.wait_for_port("far", 22)

    def start_rsync(self, path, group, options=""):
        config = self.write("rsyncd.conf", f"""
use chroot = no
uid = root
gid = root
{f"socket options = {options}" if options else ""}
[files]
path = {self.work}/www
[in]
path = {self.work}/in
read only = no
""")
        path.start("far", ["rsync", "--daemon", "--no-detach", f"--config={config}"], group=group, **QUIET)
        path.wait_for_port("far", 873)

    def make_postgres(self):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        self.postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        os.makedirs(f"{self.work}/pg")
        shutil.chown(f"{self.work}/pg", "postgres", "postgres")
        run(*self.postgres, f"{programs}/initdb", "-N", "-D", f"{self.work}/pg", "-A", "trust", "-E", "UTF8", "--locale=C")
        with open(f"{self.work}/pg/pg_hba.conf", "a", encoding="utf-8") as file:
            file.write("host all all 0.0.0.0/0 trust\n")
        self.postgres += [f"{programs}/postgres", "-D", f"{self.work}/pg", "-c", "listen_addresses=*", "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "ssl=off"]

    def start_postgres(self, path, group):
        self.once("postgres")
        with contextlib.suppress(FileNotFoundError):
            os.remove(f"{self.work}/pg/postmaster.pid")
        path.start("far", self.postgres, group=group, **QUIET)
        path.wait_for_port("far", 5432)
        for _ in range(100):
            ready = run("nsenter", "--net=/run/netns/far", "psql", "-h", "127.0.0.1", "-U", "postgres", "-Atc", "select 1", may_fail=True)
            if ready.strip() == "1":
                return
            time.sleep(0.1)
        raise RuntimeError("postgres did not start")

    def start_redis(self, path, group):
        path.start("far", ["redis-server", "--port", "6379", "--save", "", "--protected-mode", "no", "--dir", self.work, "--enable-debug-command", "yes"], group=group, **QUIET)
        path.wait_for_port("far", 6379)
        with open(f"{self.work}/www/some", "rb") as value:
            subprocess.run(["nsenter", "--net=/run/netns/far", "redis-cli", "-x", "set", "some"], stdin=value, stdout=subprocess.DEVNULL, check=True)

    def make_git(self):
        os.makedirs(f"{self.work}/git")
        for name, files, size in (("large", 30, 400_000), ("small", 3, 2_000), ("many", 3000, 3_000)):
            inside = f"{self.work}/git/{name}"
            run("git", "init", "-q", inside)
            for number in range(files):
                # Half of it can be packed, so that packing it takes time.
                with open(f"{inside}/file{number}", "wb") as file:
                    file.write(os.urandom(size // 2) + b"line of text\n" * (size // 26))
            run("git", "-C", inside, "add", ".")
            run("git", "-C", inside, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "all")
            if name == "large":
                # It is to be sent as it lies, with no work of the server.
                run("git", "-C", inside, "-c", "core.compression=0", "-c", "pack.window=0", "repack", "-adqF")
        run("git", "init", "-q", "--bare", f"{self.work}/git/empty")

    def start_git(self, path, group):
        self.once("git")
        words = ["git", "-c", "safe.directory=*", "daemon", f"--base-path={self.work}/git", "--export-all", "--reuseaddr", "--enable=receive-pack", "--port=9418"]
        path.start("far", words, group=group, **QUIET)
        path.wait_for_port("far", 9418)

    def make_ftp(self):
        os.makedirs(f"{self.work}/ftp/in")
        os.chmod(f"{self.work}/ftp/in", 0o777)
        os.link(f"{self.work}/www/some", f"{self.work}/ftp/some")
        shutil.copytree(f"{self.work}/few", f"{self.work}/ftp/few")
        os.makedirs(f"{self.work}/empty")

    def start_vsftpd(self, path, group, *settings):
        """Data connections come to port 21000."""
        self.once("ftp")
        with contextlib.suppress(FileNotFoundError):
            os.remove(f"{self.work}/ftp/in/x")
        config = self.write("vsftpd.conf", "\n".join([
            "listen=YES", "background=NO", "anonymous_enable=YES", "no_anon_password=YES", "write_enable=YES", "anon_upload_enable=YES", "seccomp_sandbox=NO", "isolate=NO", "isolate_network=NO",
            "pasv_min_port=21000", "pasv_max_port=21000", "xferlog_enable=NO", f"anon_root={self.work}/ftp", f"secure_chroot_dir={self.work}/empty", *settings]) + "\n")
        path.start("far", ["vsftpd", config], group=group, **QUIET)
        path.wait_for_port("far", 21)

    def make_mariadb(self):
        os.makedirs(f"{self.work}/maria")
        shutil.chown(f"{self.work}/maria", "mysql", "mysql")
        run("mariadb-install-db", "--no-defaults", f"--datadir={self.work}/maria", "--user=mysql", "--skip-test-db", "--auth-root-authentication-method=normal")

    def start_mariadb(self, path, group):
        self.once("mariadb")
        words = ["mariadbd", "--no-defaults", "--user=mysql", f"--datadir={self.work}/maria", "--port=3306", f"--socket={self.work}/maria/socket", "--skip-grant-tables", "--skip-name-resolve",
                 "--bind-address=0.0.0.0", "--innodb-flush-log-at-trx-commit=0", "--local-infile=1", "--max-allowed-packet=64M", f"--pid-file={self.work}/maria/pid"]
        path.start("far", words, group=group, **QUIET)
        path.wait_for_port("far", 3306)
        run("nsenter", "--net=/run/netns/far", "mariadb", "--no-defaults", "-h", "127.0.0.1", "-e", "create database if not exists x; create table if not exists x.t (i int, s text)")

    def start_memcached(self, path, group):
        path.start("far", ["memcached", "-u", "nobody", "-l", "0.0.0.0", "-I", "64m", "-m", "256"], group=group, **QUIET)
        path.wait_for_port("far", 11211)

    def start_haproxy(self, path, group, most="100", *settings):
        """Before the program that else stands behind nginx, of which it asks so many things at once."""
        more = "\n".join(f"    {setting}" for setting in settings)
        config = self.write("haproxy.conf", f"""
global
{more}
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout queue 60s
frontend all
    bind :8080
    default_backend one
backend one
    server one 127.0.0.1:8000 maxconn {most}
""")
        path.start("far", [sys.executable, f"{self.work}/backend.py", "127.0.0.1"], **QUIET)
        path.start("far", ["haproxy", "-db", "-f", config], group=group, **QUIET)
        path.wait_for_port("far", 8000)
        path.wait_for_port("far", 8080)

    def start_samba(self, path, group, *settings):
        folders = []
        for name in ("private", "lock", "state", "cache", "pid", "ncalrpc"):
            os.makedirs(f"{self.work}/smb/{name}", exist_ok=True)
            folders.append(f"    {name} dir = {self.work}/smb/{name}" if name != "lock" else f"    lock directory = {self.work}/smb/lock")
        folders = "\n".join(folders).replace("pid dir", "pid directory").replace("state dir", "state directory").replace("cache dir", "cache directory")
        more = "\n".join(f"    {setting}" for setting in settings)
        config = self.write("smb.conf", f"""
[global]
{folders}
    workgroup = W
    server role = standalone
    map to guest = Bad User
    guest account = root
    log file = /dev/null
    disable netbios = yes
    smb ports = 445
    load printers = no
    disable spoolss = yes
{more}
[files]
    path = {self.work}
    guest ok = yes
    read only = no
    force user = root
""")
        path.start("far", ["smbd", "--foreground", "--no-process-group", f"--configfile={config}"], group=group, **QUIET)
        path.wait_for_port("far", 445)

    def start_mosquitto(self, path, group, *settings):
        config = self.write("mosquitto.conf", "\n".join(["listener 1883 0.0.0.0", "allow_anonymous true", "user root", *settings]) + "\n")
        path.start("far", ["mosquitto", "-c", config], group=group, **QUIET)
        path.wait_for_port("far", 1883)

    def start_dnsmasq(self, path, group):
        words = ["dnsmasq", "-k", "-C", "/dev/null", "--no-resolv", "--no-hosts", "--address=/#/192.0.2.1", "-u", "root", f"--pid-file={self.work}/dnsmasq.pid"]
        path.start("far", words, group=group, **QUIET)
        path.wait_for_port("far", 53)

    def make_dropbear(self):
        self.once("ssh")
        run("dropbearkey", "-t", "ed25519", "-f", f"{self.work}/dropbear_key")
        run("dropbearconvert", "openssh", "dropbear", f"{self.work}/user_key", f"{self.work}/user_key.dropbear")
        os.makedirs(f"{self.work}/root/.ssh", mode=0o700)
        shutil.copy(f"{self.work}/user_key.pub", f"{self.work}/root/.ssh/authorized_keys")

    def start_dropbear(self, path, group, *options):
        """It knows keys in /root alone, which is another one for it."""
        self.once("dropbear")
        words = ["dropbear", "-F", "-E", "-r", f"{self.work}/dropbear_key", "-P", f"{self.work}/dropbear.pid", "-p", "22", *options]
        path.start("far", ["unshare", "--mount", "sh", "-c", f'mount --bind {self.work}/root /root && exec "$@"', "sh", *words], group=group, **QUIET)
        path.wait_for_port("far", 22)

    def start_nc(self, path, group):
        path.start("far", ["nc", "-l", "-k", "9000"], group=group, **QUIET)
        path.wait_for_port("far", 9000)

    def start_socat(self, path, group, give="", options=""):
        """Takes what comes to port 9000 and forgets it, or gives that file to whom comes."""
        listen = f"TCP-LISTEN:9000,reuseaddr{options and ','}{options}"
        words = ["-u", f"FILE:{self.work}/{give}", listen] if give else ["-u", f"{listen},fork", "OPEN:/dev/null"]
        path.start("far", ["socat", *words], group=group, **QUIET)
        path.wait_for_port("far", 9000)

    def start_backend(self, path, group, *words):
        """The program that else stands behind nginx, by itself."""
        path.start("far", [sys.executable, f"{self.work}/backend.py", "0.0.0.0", *words], group=group, **QUIET)
        path.wait_for_port("far", 8000)

    def start_lighttpd(self, path, group, *settings):
        config = self.write("lighttpd.conf", "\n".join([
            "server.port = 8082", f'server.document-root = "{self.work}/www"', f'server.errorlog = "{self.work}/lighttpd.log"', *settings]) + "\n")
        path.start("far", ["lighttpd", "-D", "-f", config], group=group, **QUIET)
        path.wait_for_port("far", 8082)

    def start_squid(self, path, group, *settings):
        """A proxy that keeps nothing, of the program that else stands behind nginx."""
        config = self.write("squid.conf", "\n".join([
            "http_port 3128", "http_access allow all", "cache deny all", "visible_hostname far", "pid_filename none", "access_log none", "cache_log /dev/null", "netdb_filename none",
            "pinger_enable off", "dns_nameservers 127.0.0.1", "shutdown_lifetime 0 seconds", *settings]) + "\n")
        path.start("far", [sys.executable, f"{self.work}/backend.py", "127.0.0.1"], **QUIET)
        path.start("far", ["squid", "-N", "-f", config], group=group, **QUIET)
        path.wait_for_port("far", 8000)
        path.wait_for_port("far", 3128)

    def start_stunnel(self, path, group):
        """TLS before the program that else stands behind nginx."""
        self.once("certificate")
        config = self.write("stunnel.conf", f"""
foreground = yes
pid =
cert = {self.work}/cert.pem
key = {self.work}/key.pem
[all]
accept = 8444
connect = 127.0.0.1:8000
""")
        path.start("far", [sys.executable, f"{self.work}/backend.py", "127.0.0.1"], **QUIET)
        path.start("far", ["stunnel", config], group=group, **QUIET)
        path.wait_for_port("far", 8000)
        path.wait_for_port("far", 8444)

    def start_iperf3(self, path, group):
        path.start("far", ["iperf3", "-s"], group=group, **QUIET)
        path.wait_for_port("far", 5201)

    def start_iperf(self, path, group, *options):
        path.start("far", ["iperf", "-s", *options], group=group, **QUIET)
        path.wait_for_port("far", 5001)

    def start_busybox(self, path, group):
        path.start("far", ["busybox", "httpd", "-f", "-p", "8003", "-h", f"{self.work}/www"], group=group, **QUIET)
        path.wait_for_port("far", 8003)

    def start_openssl(self, path, group):
        self.once("certificate")
        words = ["openssl", "s_server", "-quiet", "-accept", "8445", "-cert", f"{self.work}/cert.pem", "-key", f"{self.work}/key.pem", "-WWW"]
        path.start("far", words, group=group, cwd=f"{self.work}/www", **QUIET)
        path.wait_for_port("far", 8445)

    def start_mail(self, path, group, *words):
        path.start("far", [sys.executable, f"{self.work}/mail.py", *words], group=group, **QUIET)
        path.wait_for_port("far", 25)

    def start_http_server(self, path, group):
        path.start("far", [sys.executable, "-m", "http.server", "8001", "-d", f"{self.work}/www"], group=group, **QUIET)
        path.wait_for_port("far", 8001)

    def start_peer(self, path, group, *options):
        path.start("far", [sys.executable, f"{self.work}/peer.py", "serve", "9000", *options], group=group, **QUIET)
        path.wait_for_port("far", 9000)

    def start_none(self, path, group):
        """Nothing listens."""


# What stands behind nginx: /think?MS,BYTES answers after so long, /drip?N,MS,BYTES in so many pieces, /events?N,MS,BYTES in chunks, PUT /in?MS reads 64 KiB and waits.
BACKEND = '''
import http.server, os, socketserver, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def words(self):
        return [int(word) for word in self.path.split("?")[1].split("&")[0].split(",")]
    def do_GET(self):
        if self.path.startswith("/think"):
            ms, size = self.words()[:2]
            time.sleep(ms / 1e3)
            self.send_response(200); self.send_header("Content-Length", str(size)); self.end_headers()
            self.wfile.write(os.urandom(size))
            return
        pieces, ms, size = self.words()
        if self.path.startswith("/events"):
            self.send_response(200); self.send_header("Transfer-Encoding", "chunked"); self.end_headers()
            for _ in range(pieces):
                self.wfile.write(b"%x\\r\\n" % size + b"e" * size + b"\\r\\n")
                time.sleep(ms / 1e3)
            self.wfile.write(b"0\\r\\n\\r\\n")
            return
        self.send_response(200); self.send_header("Content-Length", str(pieces * size)); self.end_headers()
        for _ in range(pieces):
            self.wfile.write(os.urandom(size)); self.wfile.flush()
            time.sleep(ms / 1e3)
    def do_PUT(self):
        ms, left = self.words()[0], int(self.headers["Content-Length"])
        while left > 0:
            left -= len(self.rfile.read(min(left, 65536)))
            time.sleep(ms / 1e3)
        self.send_response(204); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *words): pass
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64
Handler.disable_nagle_algorithm = "nodelay" in sys.argv
Server((sys.argv[1], 8000), Handler).serve_forever()
'''


# A server of SMTP that forgets its messages: it works on each for so many ms, and takes so many after each 64 KiB of it.
MAIL = '''
import socketserver, sys, time
work, pause = [int(word) / 1e3 for word in sys.argv[1:]] or (0, 0)
class Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True
    def say(self, text):
        self.wfile.write(text.encode() + b"\\r\\n")
    def take(self):
        got = 0
        for line in self.rfile:
            if line == b".\\r\\n":
                return
            got += len(line)
            if got >= 65536:
                got -= 65536
                time.sleep(pause)
    def handle(self):
        self.say("220 far")
        for line in self.rfile:
            word = line[:4].upper()
            if word == b"DATA":
                self.say("354 go")
                self.take()
                time.sleep(work)
            self.say("221 bye" if word == b"QUIT" else "250 far")
            if word == b"QUIT":
                return
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
Server(("", 25), Handler).serve_forever()
'''


# A small program as people write them, with the options of its socket that they set: sndbuf=, rcvbuf=, pacing= (bytes a second), nodelay=1.
# `serve PORT` does what the first line of a connection says: give BYTES, pieces N MS BYTES, take, answer MS (to each question of 400 bytes).
# `ask HOST PORT LINE` says that line and reads all, `send HOST PORT BYTES` says take, `turns HOST PORT N MS` asks so often, in two writes each; `memget N` and
# `memset BYTES` are a client of memcached.
PEER = '''
import os, socket, sys, threading, time
def options(sock, words):
    for name, value in (word.split("=") for word in words if "=" in word):
        level, option = {"sndbuf": (1, 7), "rcvbuf": (1, 8), "pacing": (1, 47), "nodelay": (6, 1)}[name]
        sock.setsockopt(level, option, int(value))
def give(sock, left):
    piece = os.urandom(65536)
    while left > 0:
        sock.sendall(piece[:min(left, 65536)])
        left -= 65536
def exactly(file, count):
    got = file.read(count)
    if len(got) < count:
        sys.exit()
    return got
def serve(sock):
    file = sock.makefile("rb")
    words = file.readline().decode().split()
    if words[0] == "give":
        give(sock, int(words[1]))
    elif words[0] == "pieces":
        for _ in range(int(words[1])):
            give(sock, int(words[3]))
            time.sleep(int(words[2]) / 1e3)
    elif words[0] == "take":
        while file.read1(65536):
            pass
    elif words[0] == "answer":
        while True:
            exactly(file, 400)
            time.sleep(int(words[1]) / 1e3)
            sock.sendall(b"y" * 200)
    sock.close()
def connect(host, port, words):
    sock = socket.socket()
    options(sock, words)
    sock.connect((host, int(port)))
    return sock
kind, words = sys.argv[1], sys.argv[2:]
if kind == "serve":
    listener = socket.socket()
    listener.setsockopt(1, 2, 1)
    options(listener, words)
    listener.bind(("", int(words[0])))
    listener.listen(50)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
sock = connect(words[0], words[1], words[2:])
file = sock.makefile("rb")
if kind == "ask":
    sock.sendall(words[2].encode() + b"\\n")
    while file.read1(65536):
        pass
elif kind == "send":
    sock.sendall(b"take\\n")
    give(sock, int(words[2]))
    sock.shutdown(1)
    file.read()
elif kind == "turns":
    sock.sendall(f"answer {words[3]}\\n".encode())
    for _ in range(int(words[2])):
        sock.sendall(b"x" * 40)
        sock.sendall(b"x" * 360)
        exactly(file, 200)
elif kind == "memset":
    size = int(words[2])
    sock.sendall(b"set k 0 0 %d\\r\\n" % size)
    give(sock, size)
    sock.sendall(b"\\r\\n")
    file.readline()
elif kind == "memget":
    sock.sendall(b"set k 0 0 4000\\r\\n" + bytes(4000) + b"\\r\\n")
    file.readline()
    for _ in range(int(words[2])):
        sock.sendall(b"get k\\r\\n")
        file.readline()
        exactly(file, 4002)
        file.readline()
'''
