package folder

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// TokenName is the name of the file with the token of the private socket. A program that
// can reach the socket but cannot read the folder, such as a command in a sandbox, is not
// served.
const TokenName = "sock.token"

// The length of a token: that of a new one at least, and what is read of a file at most.
const (
	minToken = 26
	maxToken = 256
)

// Token returns the token that the engine wants on the private socket. It is empty if
// there is none: an engine of an older version wants none.
func (f *Folder) Token() string {
	token, _, err := readToken(f.path(TokenName))
	if err != nil {
		return ""
	}
	return token
}

// KeepToken returns the token of the private socket, which other processes find in the
// folder. If its file is missing, damaged or readable by others, it is put right.
func (l *Lock) KeepToken() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	token, private, err := readToken(l.folder.path(TokenName))
	if err == nil && private && (l.token == "" || l.token == token) {
		l.token = token
		return token, nil
	}
	if l.token == "" { // also if others may have read the one in the file
		l.token = rand.Text()
	}
	return l.token, explain(l.folder.dir, l.folder.writeToken(l.token))
}

// readToken reads a token, and reports whether only its owner can.
func readToken(path string) (token string, private bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", false, err
	}
	if !info.Mode().IsRegular() {
		return "", false, errNoToken
	}
	b, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return "", false, err
	}
	token = strings.TrimSpace(string(b))
	if len(token) < minToken {
		return "", false, errNoToken
	}
	return token, info.Mode().Perm()&0o077 == 0, nil
}

// errNoToken means that a file holds no token.
var errNoToken = errors.New("the file holds no token")

// writeToken replaces the file with the token in one step. It need not survive a loss of
// power: the next engine makes another one.
func (f *Folder) writeToken(token string) error {
	path := f.path(TokenName)
	tmp, err := os.CreateTemp(f.dir, "."+TokenName+"-*") // CreateTemp makes files that only the owner can read
	if err != nil {
		return err
	}
	_, err = tmp.WriteString(token + "\n")
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if errors.Is(err, syscall.EISDIR) || errors.Is(err, fs.ErrExist) {
		err = errors.Join(err, errors.New("something else has the name "+TokenName+": remove it"))
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
