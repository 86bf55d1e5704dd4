package daemon

import (
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
)

// stores are the kinds of stores that a URL can name, by its scheme. Another one is
// a package that passes eventlogtest, and a line here.
var stores = eventlog.Kinds{
	sqlite.Scheme: sqlite.Kind,
}

// storeURL is where the log is: what the configuration says, or the file in the data
// folder.
func storeURL(url, file string) string {
	if url != "" {
		return url
	}
	return sqlite.Scheme + ":" + file
}
