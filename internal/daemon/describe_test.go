package daemon

import (
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/schema"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/bash"
	"github.com/abide-run/abide/internal/tool/builtin"
)

// Every tool says when to use it and when not, and has an example that its own schema accepts.
func TestEveryToolIsDescribed(t *testing.T) {
	box := &toolbox{commands: bash.New(bash.Options{})}
	var all []tool.Tool
	all = append(append(all, box.catalog(daemonTools(nil, nil))...), builtin.New(nil, nil)...)
	for _, v := range all {
		spec := v.Spec()
		if spec.Name == "" {
			continue
		}
		text := spec.Description
		_, example, found := strings.Cut(text, "Example: ")
		if !found || !strings.Contains(text, "Use ") || !strings.Contains(text, "Do not ") {
			t.Errorf("%s does not say when to use it (%q), when not (%q), and how (%q): add that to its description\n%s", spec.Name, "Use …", "Do not …", "Example: {…}", text)
			continue
		}
		example, _, _ = strings.Cut(example, "\n")
		example, _, _ = strings.Cut(example, ", then ")
		form, err := schema.Parse(spec.Parameters)
		if err != nil {
			t.Errorf("%s: %v", spec.Name, err)
			continue
		}
		if spec.Name == "skill" { // its names are those of the session
			continue
		}
		if _, err := form.Check(example); err != nil {
			t.Errorf("the example of %s, %s: %v", spec.Name, example, err)
		}
	}
}
