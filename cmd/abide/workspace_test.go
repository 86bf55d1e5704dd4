package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
)

// connect makes a client of a workspace.
func connect(t *testing.T, o bridge.ClientOptions) workspace.Workspace {
	t.Helper()
	o.Retries = make([]time.Duration, 5000)
	for i := range o.Retries {
		o.Retries[i] = time.Millisecond
	}
	c, err := bridge.NewClient(o)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c.Workspace()
}

func TestAWorkspaceThatIsKilledComesBackToItsCommands(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "src"), 0o755))
	p := start(t, dir, "workspace", "--dir", "src")
	p.await(`^abide dev serves the workspace .*/src\n`)
	address := p.await(`^listening on (unix:\S+)\n`)[1]
	if info, err := os.Stat(strings.TrimPrefix(address, "unix:")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has mode %v, %v", info.Mode(), err)
	}
	ws := connect(t, bridge.ClientOptions{Address: address})
	must(t, ws.Files.WriteFile(t.Context(), workspace.At("f"), []byte("text"), workspace.WriteOptions{}))
	info, _, err := ws.Processes.Start(t.Context(), process.Spec{
		Key: "k", Owner: "s", Command: "cat f; echo; read x; echo got $x; exit 3", Stdin: true,
	})
	must(t, err)
	var all strings.Builder
	var end *process.Info
	for frame, err := range ws.Processes.Follow(t.Context(), "s", info.ID, 0) {
		must(t, err)
		all.Write(frame.Data)
		end = frame.End
		if all.String() == "text\n" && end == nil {
			must(t, p.Process.Kill())
			p.ends()
			p = start(t, dir, "workspace", "--dir", "src")
			p.await(`^listening on `)
			must(t, ws.Processes.WriteStdin(t.Context(), "s", info.ID, process.Input{Data: []byte("it\n")}))
		}
	}
	if all.String() != "text\ngot it\n" || end.Exit == nil || end.Exit.Code != 3 {
		t.Errorf("the command wrote %q and ended with %+v", &all, end)
	}
	second := start(t, dir, "workspace")
	if _, code := second.ends(); code != 3 || !strings.Contains(second.stderr.String(), "another abide workspace is running") {
		t.Errorf("a second workspace: exit code %d, %s", code, second.stderr)
	}
	must(t, p.Process.Signal(syscall.SIGTERM))
	if _, code := p.ends(); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	if _, err := os.Stat(strings.TrimPrefix(address, "unix:")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

func TestAWorkspaceOverTCPNeedsItsToken(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "workspace", "--listen", "tcp:localhost:0")
	address := p.await(`^listening on (tcp:127\.0\.0\.1:\d+)\n`)[1]
	file := p.await(`^token in (\S+)\n`)[1]
	token, err := os.ReadFile(file)
	must(t, err)
	if _, err := connect(t, bridge.ClientOptions{Address: address}).Files.Stat(t.Context(), workspace.At(".")); !errors.Is(err, workspace.ErrToken) {
		t.Errorf("without the token: %v", err)
	}
	ws := connect(t, bridge.ClientOptions{Address: address, Token: strings.TrimSpace(string(token))})
	_, err = ws.Files.Stat(t.Context(), workspace.At("."))
	must(t, err)
	// What abide reads as a secret is not for commands.
	info, _, err := ws.Processes.Start(t.Context(), process.Spec{Key: "k", Owner: "s", Command: "echo $ABIDE_HOME; echo [$ABIDE_TOKEN$OPENAI_API_KEY]"})
	must(t, err)
	_, err = ws.Processes.Wait(t.Context(), "s", info.ID)
	must(t, err)
	text, _, err := ws.Processes.View(t.Context(), "s", info.ID, process.Both)
	if !strings.HasSuffix(text, "/home\n[]\n") || err != nil {
		t.Errorf("the command sees %q, %v", text, err)
	}
	must(t, p.Process.Signal(syscall.SIGTERM))
	p.ends()
}

func TestAWorkspaceOverTLS(t *testing.T) {
	dir := t.TempDir()
	believed := certificate(t, dir)
	must(t, os.WriteFile(filepath.Join(dir, "mine"), []byte("mine\n"), 0o600))
	p := start(t, dir, "workspace", "--listen", "tcp:0.0.0.0:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem", "--token-file", "mine")
	address := p.await(`^listening on (tcp:\S+)\n`)[1]
	_, port, err := net.SplitHostPort(strings.TrimPrefix(address, "tcp:"))
	must(t, err)
	address = "tcp:127.0.0.1:" + port
	ws := connect(t, bridge.ClientOptions{Address: address, Token: "mine", TLS: &tls.Config{RootCAs: believed}})
	_, err = ws.Files.Stat(t.Context(), workspace.At("."))
	must(t, err)
	stranger, err := bridge.NewClient(bridge.ClientOptions{Address: address, Token: "mine", TLS: &tls.Config{}, Retries: []time.Duration{}})
	must(t, err)
	defer stranger.Close()
	if _, err := stranger.Workspace().Files.Stat(context.Background(), workspace.At(".")); !errors.Is(err, workspace.ErrCertificate) {
		t.Errorf("with a certificate that nobody vouches for: %v", err)
	}
	must(t, p.Process.Signal(syscall.SIGTERM))
	p.ends()
}

// certificate writes a certificate of this machine and its key, and returns a pool that
// trusts it.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	must(t, os.WriteFile(filepath.Join(dir, "cert.pem"), cert, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	believed := x509.NewCertPool()
	believed.AppendCertsFromPEM(cert)
	return believed
}

func TestAConfinedWorkspaceServesItsFolderAlone(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "src"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o644))
	must(t, os.Symlink("../secret", filepath.Join(dir, "src", "link")))
	p := start(t, dir, "workspace", "--dir", "src", "--confine")
	files := connect(t, bridge.ClientOptions{Address: p.await(`^listening on (unix:\S+)\n`)[1]}).Files
	must(t, files.WriteFile(t.Context(), workspace.At("f"), []byte("text"), workspace.WriteOptions{}))
	for _, path := range []string{"../secret", filepath.Join(dir, "secret"), "link"} {
		if _, err := files.ReadFile(t.Context(), workspace.At(path)); !errors.Is(err, fs.ErrPermission) && !errors.Is(err, workspace.ErrLink) {
			t.Errorf("%s: %v", path, err)
		}
	}
	s, err := files.Scope(t.Context(), []scope.Rule{{Target: "/", Mode: scope.Write}}, nil)
	must(t, err)
	shown, err := files.Show(t.Context(), s, workspace.ShowRequest{Path: filepath.Join(dir, "src", "f"), MaxWhole: 100})
	if string(shown.Content) != "text" || err != nil {
		t.Errorf("inside: %q, %v", shown.Content, err)
	}
	_, err = files.Show(t.Context(), s, workspace.ShowRequest{Path: filepath.Join(dir, "src", "link"), MaxWhole: 100})
	if refused := (*scope.Refusal)(nil); !errors.As(err, &refused) {
		t.Errorf("a link that leads out: %v", err)
	}
}
