package killtest

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/abide-run/abide/internal/cli"
	"github.com/abide-run/abide/internal/eventlog"
)

// ordersVariable is the environment variable that makes this binary a victim.
const ordersVariable = "ABIDE_VICTIM"

// orders are what a victim is told beside its arguments.
type orders struct {
	Dir      string // the data folder
	Effects  string // the file in which the tools count their effects
	Stop     stop   // where to die, if anywhere
	InTurn   bool   // calls that are made side by side finish one by one
	ReadOnly bool   // the data folder cannot be written
}

// arguments make the program serve its parent as it serves an SDK.
func (o orders) arguments() []string {
	return []string{"--headless", "--stdio", "--home", o.Dir}
}

// retries are short: nobody should wait for a clock.
var retries = []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond}

// victim is the program: abide with three more tools. It returns the exit code.
func victim(text string) int {
	var o orders
	err := json.Unmarshal([]byte(text), &o)
	if err == nil && o.ReadOnly {
		err = makeReadOnly(o.Dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "victim:", err)
		return exitBadOrders
	}
	shop := newWorkshop(o.Effects, o.InTurn)
	reports := &reporter{to: json.NewEncoder(os.NewFile(3, "reports"))}
	return cli.Process(cli.Options{
		Version: "test", Tools: shop.tools(), Retries: retries,
		Wrap: func(s eventlog.Store) eventlog.Store {
			reports.tell(report{Engine: true})
			return &mortal{Store: s, stop: o.Stop, shop: shop, reports: reports}
		},
	})
}

// exitBadOrders is the exit code of a victim that cannot do what it is told.
const exitBadOrders = 99
