package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
)

// refuses checks that a store cannot be opened, and why.
func refuses(t testing.TB, address string, want ...string) {
	t.Helper()
	s, err := Open(t.Context(), address, eventlog.Options{KeyFile: keyFile()})
	if err == nil {
		s.Close()
		t.Fatalf("the store was opened, want %q", want)
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the store is refused with %q, want %q", err, text)
		}
	}
}

func TestTablesOfANewerVersionAreRefused(t *testing.T) {
	c := postgrestest.Start(t)
	address := c.SchemaURL("newer")
	s := open(t, address)
	if _, err := say(t, s, "s", eventlog.End{}, "a"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	c.Exec(t, "newer", "UPDATE version SET version = 99; UPDATE meta SET oldest = 99")
	refuses(t, address, "its tables have version 99", "use a newer abide")
	if _, err := Join(t.Context(), address, eventlog.Options{KeyFile: keyFile()}, Server{Address: "a"}, patient); err == nil || !strings.Contains(err.Error(), "use a newer abide") {
		t.Errorf("a server joins with %v", err)
	}
	if n := c.Exec(t, "newer", "SELECT version FROM version"); n != "99" {
		t.Errorf("the tables have version %s", n)
	}
	c.Exec(t, "newer", fmt.Sprintf("UPDATE meta SET oldest = %d", schemaVersion))
	if got := said(t, open(t, address), "s"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("newer tables that this version may use have %q", got)
	}
}

// as returns the URL of a store for another user.
func as(t testing.TB, address, user string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(user)
	return u.String()
}

func TestAUserWithoutRightsIsRefused(t *testing.T) {
	c := postgrestest.Start(t)
	c.Exec(t, "public", "CREATE ROLE weak LOGIN; CREATE SCHEMA closed; GRANT USAGE ON SCHEMA closed TO weak")
	refuses(t, as(t, c.SchemaURL("absent"), "weak"), "the user may not do this", "right to create a schema")
	refuses(t, as(t, c.SchemaURL("closed"), "weak"), "the user may not do this")
	if n := c.Exec(t, "public", "SELECT count(*) FROM pg_class WHERE relnamespace = 'closed'::regnamespace"); n != "0" {
		t.Errorf("%s tables were made", n)
	}
	c.Exec(t, "public", "GRANT CREATE ON SCHEMA closed TO weak")
	if _, err := say(t, open(t, as(t, c.SchemaURL("closed"), "weak")), "s", eventlog.End{}, "a"); err != nil {
		t.Errorf("with the right to make tables: %v", err)
	}
}

// A pooler gives clients a process id of its own, because the backend changes.
func TestAPoolerIsRefused(t *testing.T) {
	c := postgrestest.Start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { pool(t, client, c.Socket()) })
		}
	})
	refuses(t, c.AddressURL(l.Addr(), "pooled"), "a connection pooler", "name the server itself")
	if _, err := Arrive(t.Context(), c.AddressURL(l.Addr(), "pooled"), eventlog.Options{KeyFile: keyFile()}, Moving{Name: "m"}); err == nil || !strings.Contains(err.Error(), "a connection pooler") {
		t.Errorf("sessions arrive through a pooler: %v", err)
	}
	if n := c.Exec(t, "public", "SELECT count(*) FROM pg_namespace WHERE nspname = 'pooled'"); n != "0" {
		t.Error("it has made a schema")
	}
}

// pool passes a connection on, and changes the process id that the server tells in its message K.
func pool(t *testing.T, client net.Conn, socket string) {
	defer client.Close()
	server, err := net.Dial("unix", socket)
	if err != nil {
		t.Error(err)
		return
	}
	defer server.Close()
	asked := make(chan struct{})
	go func() { // ends when the server closes its connection, which is waited for below
		defer close(asked)
		_, _ = io.Copy(server, client)
		server.Close()
	}()
	defer func() { client.Close(); <-asked }()
	for head := make([]byte, 5); ; {
		if _, err := io.ReadFull(server, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(server, body); err != nil {
			return
		}
		if head[0] == 'K' {
			binary.BigEndian.PutUint32(body, binary.BigEndian.Uint32(body)+1)
		}
		if _, err := client.Write(append(bytes.Clone(head), body...)); err != nil {
			return
		}
	}
}

// An outage that is longer than changes wait ends the store with the reason. What was acknowledged
// is there when the server is back, and what was under way is there once at most.
func TestAnOutageThatIsTooLongLosesNothing(t *testing.T) {
	usual := patience
	patience = 2 * time.Second
	t.Cleanup(func() { patience = usual })
	c := postgrestest.Start(t)
	address := c.URL()
	s := open(t, address)
	end, err := say(t, s, "s", eventlog.End{}, "a")
	if err != nil {
		t.Fatal(err)
	}
	c.Down(t, syscall.SIGQUIT)
	if _, err := say(t, s, "s", end, "b"); !errors.Is(err, eventlog.ErrClosed) || !strings.Contains(err.Error(), "the server was away for more than") {
		t.Errorf("the append ends with %v", err)
	}
	<-s.Closed()
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("the store closes with %v", err)
	}
	refuses(t, address, "cannot be reached", "check that the server runs")
	c.Up(t)
	again := open(t, address)
	if _, err := say(t, again, "s", end, "b"); err != nil {
		t.Errorf("the append that was never made: %v", err)
	}
	if got := said(t, again, "s"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("stored: %q", got)
	}
}

// small mounts a small file system that the server can write to.
func small(t testing.TB, c *postgrestest.Cluster) string {
	t.Helper()
	dir := filepath.Join(c.Dir(), "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m,mode=0777"); err != nil {
		t.Skip("skipped: a small file system cannot be mounted here:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	space := filepath.Join(dir, "space")
	info, err := os.Stat(filepath.Join(c.Dir(), "data"))
	if err == nil {
		err = os.Mkdir(space, 0o700)
	}
	if err == nil {
		owner := info.Sys().(*syscall.Stat_t)
		err = os.Chown(space, int(owner.Uid), int(owner.Gid))
	}
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func TestAFullDiskOfTheServerLosesNothing(t *testing.T) {
	c := postgrestest.Start(t)
	space := small(t, c)
	c.Exec(t, "public", "CREATE TABLESPACE small LOCATION '"+space+"'")
	address := c.SchemaURL("full")
	s := open(t, address)
	c.Exec(t, "full", "ALTER TABLE records SET TABLESPACE small")
	filler := filepath.Join(filepath.Dir(space), "filler")
	if err := os.WriteFile(filler, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var end eventlog.End
	var want []string
	var full error
	for i := 0; i < 1000 && full == nil; i++ {
		text := fmt.Sprint(i, strings.Repeat(" more", 10000))
		next, err := say(t, s, "s", end, text)
		if full = err; err == nil {
			end, want = next, append(want, text)
		}
	}
	if full == nil || !strings.Contains(full.Error(), "the disk of the server is full: free some space") || errors.Is(full, eventlog.ErrClosed) {
		t.Fatalf("after %d appends, the disk is full and the append ends with %v", len(want), full)
	}
	if got := said(t, s, "s"); !slices.Equal(got, want) {
		t.Errorf("%d appends were acknowledged, and %d are there", len(want), len(got))
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if _, err := say(t, s, "s", end, "more"); err != nil {
		t.Errorf("with a disk that has room again: %v", err)
	}
	s.Close()
	if got := said(t, open(t, address), "s"); len(got) != len(want)+1 {
		t.Errorf("%d appends were acknowledged, and %d are there", len(want)+1, len(got))
	}
}
