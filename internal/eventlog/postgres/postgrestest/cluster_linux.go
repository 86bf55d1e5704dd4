package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A Cluster is a PostgreSQL server that listens on a socket in a folder of its own.
type Cluster struct {
	dir    string
	bin    string
	cred   *syscall.Credential // user that the server runs as; nil for that of the test
	server *exec.Cmd
	count  atomic.Int64
}

// port is part of the name of the socket. The folder is different for each server.
const port = "5432"

// Start starts a server, or skips the test. The server ends with the test.
func Start(t testing.TB) *Cluster {
	t.Helper()
	bin, err := programs()
	if err != nil {
		skipOrFail(t, err.Error())
	}
	c := &Cluster{bin: bin}
	if err := c.create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.Up(t)
	return c
}

// skipOrFail skips a test that needs a server, for a reason. Where ABIDE_REQUIRE contains
// postgres, that is a failure.
func skipOrFail(t testing.TB, reason string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("ABIDE_REQUIRE"), ","), "postgres") {
		t.Fatal("ABIDE_REQUIRE asks for postgres, and " + reason)
	}
	t.Skip("skipped: " + reason)
}

// programs returns the folder of initdb and postgres: Debian has them outside of the PATH.
var programs = sync.OnceValues(func() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("PostgreSQL is not installed (initdb is neither in PATH nor in /usr/lib/postgresql)")
	}
	return filepath.Dir(found[len(found)-1]), nil
})

// create makes the files of the server. They are in memory where that is possible: the server
// syncs them all the same.
func (c *Cluster) create() (err error) {
	for _, base := range []string{"/dev/shm", ""} {
		if c.dir, err = os.MkdirTemp(base, "abide-postgres-"); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	if os.Getuid() == 0 { // the server refuses to run as root
		if c.cred, err = someUser(); err != nil {
			return err
		}
		if err := os.Chown(c.dir, int(c.cred.Uid), int(c.cred.Gid)); err != nil {
			return err
		}
	}
	if out, err := c.command("initdb", "-D", c.dir+"/data", "-U", "abide", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// someUser returns a user that is not root.
func someUser() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, err := strconv.ParseUint(u.Uid, 10, 32)
			gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err, err2)
		}
	}
	return nil, errors.New("there is no user postgres or nobody, and PostgreSQL does not run as root")
}

func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.cred, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

// Up starts the server, and waits until it accepts connections.
func (c *Cluster) Up(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(c.dir+"/log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c.server = c.command("postgres", "-D", c.dir+"/data", "-k", c.dir, "-p", port, "-c", "listen_addresses=", "-c", "max_connections=200", "-c", "shared_buffers=16MB")
	c.server.Stdout, c.server.Stderr = log, log
	if err := c.server.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		if out, err := c.command("psql", "-h", c.dir, "-p", port, "-U", "abide", "-d", "postgres", "-Atc", "SELECT 1").CombinedOutput(); err == nil {
			return
		} else if ctx.Err() != nil {
			text, _ := os.ReadFile(c.dir + "/log")
			t.Fatalf("the server does not answer: %v %s\n%s", err, out, text)
		}
	}
}

// Down ends the server: with SIGQUIT it ends at once, as after a crash; with SIGINT it closes its
// files first.
func (c *Cluster) Down(t testing.TB, s os.Signal) {
	t.Helper()
	if err := c.server.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	_ = c.server.Wait() // it ends with an error after SIGQUIT
	c.server = nil
}

// Save copies the files of the server, as a standby has them that gets nothing from now on. The
// server is started again for that.
func (c *Cluster) Save(t testing.TB) {
	t.Helper()
	c.Down(t, syscall.SIGINT)
	if out, err := exec.Command("cp", "-a", c.dir+"/data", c.dir+"/standby").CombinedOutput(); err != nil {
		t.Fatalf("copy the files of the server: %v\n%s", err, out)
	}
	c.Up(t)
}

// FailOver ends the server, and promotes the standby that Save has made.
func (c *Cluster) FailOver(t testing.TB) {
	t.Helper()
	c.Down(t, syscall.SIGQUIT)
	err := errors.Join(os.RemoveAll(c.dir+"/data"), os.Rename(c.dir+"/standby", c.dir+"/data"), os.WriteFile(c.dir+"/data/standby.signal", nil, 0o600))
	if err == nil && c.cred != nil {
		err = os.Chown(c.dir+"/data/standby.signal", int(c.cred.Uid), int(c.cred.Gid))
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Up(t)
	if said := c.Exec(t, "public", "SELECT pg_promote()"); said != "t" {
		t.Fatalf("the standby is not promoted: %s", said)
	}
}

// Dir returns the folder with the files of the server.
func (c *Cluster) Dir() string { return c.dir }

// Close ends the server and removes its files.
func (c *Cluster) Close() {
	if c.server != nil {
		_ = c.server.Process.Signal(syscall.SIGQUIT)
		_ = c.server.Wait()
	}
	_ = os.RemoveAll(c.dir)
}

// URL returns the URL of a store that no other call gets: a schema of its own.
func (c *Cluster) URL() string {
	return c.SchemaURL(fmt.Sprintf("s%d", c.count.Add(1)))
}

// SchemaURL returns the URL of a store in a schema.
func (c *Cluster) SchemaURL(schema string) string {
	return c.url("", url.Values{"search_path": {schema}})
}

// AddressURL returns the URL of a store in a schema, for a server at another address, such as
// that of a proxy.
func (c *Cluster) AddressURL(addr net.Addr, schema string) string {
	return c.url(addr.String(), url.Values{"search_path": {schema}, "sslmode": {"disable"}})
}

func (c *Cluster) url(host string, settings url.Values) string {
	if host == "" {
		settings.Set("host", c.dir)
		settings.Set("port", port)
	}
	u := url.URL{Scheme: "postgres", User: url.User("abide"), Host: host, Path: "/postgres", RawQuery: settings.Encode()}
	return u.String()
}

// Socket returns the path of the server's socket.
func (c *Cluster) Socket() string { return filepath.Join(c.dir, ".s.PGSQL."+port) }

// Exec runs SQL in a schema.
func (c *Cluster) Exec(t testing.TB, schema, text string) string {
	t.Helper()
	out, err := c.command("psql", "-h", c.dir, "-p", port, "-U", "abide", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-Atqc", "SET search_path = "+schema, "-c", text).CombinedOutput()
	if err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}
