package upgradetest

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/seal"
)

// A clearSecret is a secret that an older version has stored without sealing it.
type clearSecret struct {
	session event.SessionID
	name    string
	value   []byte
}

// clearSecrets reads the secrets of a copy of an old folder as they are stored.
func clearSecrets(t *testing.T, archive string) (all []clearSecret) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(unpack(t, archive), "home", "abide.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT s.name, x.name, x.value FROM secrets x JOIN sessions s ON s.id = x.session")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var one clearSecret
		if err := rows.Scan(&one.session, &one.name, &one.value); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// words returns the texts of a stored secret that give something away: variables with their
// values, and keys.
func (s clearSecret) words() (words []string) {
	var env []string
	if json.Unmarshal(s.value, &env) == nil {
		return env
	}
	var members map[string]any
	if json.Unmarshal(s.value, &members) != nil {
		return nil
	}
	for _, name := range []string{"apiKey", "bearerToken"} {
		if word, is := members[name].(string); is {
			words = append(words, word)
		}
	}
	return words
}

func TestTheSecretsOfAnOldFolderAreSealed(t *testing.T) {
	found := 0
	eachFolder(t, func(t *testing.T, _, archive string) {
		dir := unpack(t, archive)
		store := openStore(t, dir)
		var events []byte // what the log says is not secret
		for _, l := range readStore(t, store) {
			for _, e := range l.events {
				events = append(events, e.Bytes...)
			}
		}
		secrets := clearSecrets(t, archive)
		found += len(secrets)
		for _, one := range secrets {
			if got, err := store.Secret(t.Context(), one.session, one.name); err != nil || !bytes.Equal(got, one.value) {
				t.Errorf("the secret %s of session %s is %.40q, %v; want %.40q", one.name, one.session, got, err, one.value)
			}
		}
		files, err := filepath.Glob(filepath.Join(dir, "home", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if filepath.Base(path) == seal.FileName {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				continue // a folder
			}
			for _, one := range secrets {
				for _, word := range one.words() {
					if len(word) > 8 && !strings.Contains(string(events), word) && bytes.Contains(text, []byte(word)) {
						t.Errorf("%s holds %q of session %s", filepath.Base(path), word, one.session)
					}
				}
			}
		}
	})
	if found == 0 {
		t.Error("no old folder has a secret")
	}
}
