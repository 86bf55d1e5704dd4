// Command abide is an agent runtime that loses nothing.
package main

import (
	"os"

	"github.com/abide-run/abide/internal/cli"
	_ "github.com/abide-run/abide/internal/cli/launch/front" // this program is its own launcher
	_ "github.com/abide-run/abide/internal/process/keeper"   // this program is its own keeper of commands
)

// version is set by the linker in releases.
var version = "dev"

func main() {
	os.Exit(cli.Process(cli.Options{Version: version}))
}
