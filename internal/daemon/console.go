package daemon

import "github.com/abide-run/abide/internal/server/console"

// consoleHandler serves the files of the console.
var consoleHandler = console.Handler()
