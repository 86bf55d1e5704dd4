package daemon

import (
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
)

// stores are the kinds of stores, by the scheme of their URL. A new kind needs a package
// that passes eventlogtest, and a line here.
var stores = eventlog.Kinds{
	sqlite.Scheme: sqlite.Kind,
}

// storeURL returns the URL of the log: that of the configuration, or the file in the
// data folder.
func storeURL(url, file string) string {
	if url != "" {
		return url
	}
	return sqlite.Scheme + ":" + file
}
