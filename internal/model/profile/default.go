package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/abide-run/abide/internal/lazyregexp"
)

// A preference is a kind of models that is good for agents. Of several models that match,
// the one with the highest version is chosen.
type preference struct {
	pattern *lazyregexp.Regexp
	why     string
}

func prefer(pattern, why string) preference { return preference{lazyregexp.New(pattern), why} }

// The preferred models of vendors, in order. Patterns leave out dated snapshots if there
// is a name without a date, and variants for other purposes.
var (
	ofAnthropic = []preference{
		prefer(`^claude-sonnet-\d+(-\d{1,2})?(-\d{8})?$`, "it is the newest Sonnet, which calls tools well at a middle price"),
		prefer(`^claude-opus-\d+(-\d{1,2})?(-\d{8})?$`, "it is the newest Opus, and there is no Sonnet"),
		prefer(`^claude-haiku-\d+(-\d{1,2})?(-\d{8})?$`, "it is the newest Haiku, and there is no larger model"),
	}
	ofOpenAI = []preference{
		prefer(`^gpt-\d+(\.\d+)?-sol$`, "it is the newest Sol, which reasons and calls tools at a middle price"),
		prefer(`^gpt-\d+(\.\d+)?$`, "it is the newest general model of OpenAI, which reasons and calls tools"),
		prefer(`^gpt-\d+(\.\d+)?-(mini|terra|luna)$`, "it is the newest small model of OpenAI, and there is no larger one"),
		prefer(`^gpt-\d+o$`, "it is the newest general model of OpenAI that is listed"),
	}
	ofGemini = []preference{
		prefer(`^(models/)?gemini-\d+(\.\d+)?-flash$`, "it is the newest Flash, which calls tools and can be used with every key"),
		prefer(`^(models/)?gemini-\d+(\.\d+)?-flash-preview$`, "it is the newest Flash, which calls tools and can be used with every key"),
		prefer(`^(models/)?gemini-\d+(\.\d+)?-pro(-preview)?$`, "it is the newest Pro, and there is no Flash"),
	}
	ofDeepSeek = []preference{
		prefer(`^deepseek-flash$`, "it is the general model of DeepSeek, which calls tools"),
		prefer(`^deepseek-chat$`, "it is the general model of DeepSeek, which calls tools"),
		prefer(`^deepseek-v\d+(\.\d+)?(-(chat|pro|flash))?$`, "it is the newest general model of DeepSeek"),
	}
	ofMistral = []preference{
		prefer(`^mistral-large-latest$`, "it is the largest general model of Mistral, which calls tools"),
		prefer(`^mistral-medium-latest$`, "it is the largest general model of Mistral that is listed"),
		prefer(`^mistral-small-latest$`, "it is the largest general model of Mistral that is listed"),
	}
	ofOpenRouter = []preference{
		prefer(`^anthropic/claude-sonnet-\d+(\.\d+)?$`, "it is the newest Sonnet, which calls tools well at a middle price"),
		prefer(`^openai/gpt-\d+(\.\d+)?-sol$`, "it is the newest Sol, which reasons and calls tools at a middle price"),
		prefer(`^openai/gpt-\d+(\.\d+)?$`, "it is the newest general model of OpenAI, which reasons and calls tools"),
		prefer(`^google/gemini-\d+(\.\d+)?-(pro|flash)(-preview)?$`, "it is the newest Gemini, which calls tools"),
	}
	ofLocal = []preference{
		prefer(`(^|/)qwen\d*(\.\d+)?-?coder`, "it was made for coding and calls tools"),
		prefer(`(^|/)devstral`, "it was made for coding agents and calls tools"),
		prefer(`(^|/)gpt-oss`, "it reasons and calls tools"),
		prefer(`(^|/)glm-\d`, "it calls tools"),
		prefer(`(^|/)qwen-?\d+(\.\d+)?(:|-|$)`, "it calls tools"),
		prefer(`(^|/)(meta-)?llama-?\d+(\.\d+)?(:|-|$)`, "it calls tools"),
	}
	ofAnyone = slices.Concat(ofAnthropic, ofOpenAI, ofOpenRouter, ofGemini, ofDeepSeek, ofMistral, ofLocal)
)

// preferences are the preferred models by the names of profiles. A profile without a row
// has those of all vendors.
var preferences = map[string][]preference{
	"openai": ofOpenAI, "anthropic": ofAnthropic, "gemini": ofGemini, "deepseek": ofDeepSeek, "mistral": ofMistral, "openrouter": ofOpenRouter,
	"ollama": ofLocal, "lmstudio": ofLocal, "vllm": ofLocal, "github": ofOpenRouter[1:],
}

// otherPurpose matches the names of models that are not for conversations.
var otherPurpose = lazyregexp.New(`(?i)embed|whisper|tts|audio|speech|realtime|transcri|dall-e|image|imagen|veo|sora|moderation|rerank|guard|ocr|davinci|babbage|instruct-\d{4}$|(^|[/-])bge-|(^|[/-])aqa$|nomic`)

// Default returns the model that is used if none is named, and why. If there is no reason
// for any of them, the name is empty and why says so.
func (p *Profile) Default(names []string) (name, why string) {
	names = slices.DeleteFunc(slices.Clone(names), otherPurpose.MatchString)
	if len(names) == 1 {
		return names[0], "it is the only one that is listed"
	}
	wanted, ok := preferences[p.Name]
	if !ok {
		wanted = ofAnyone
	}
	for _, w := range wanted {
		if found := newest(names, w.pattern); found != "" {
			return found, w.why
		}
	}
	switch len(names) {
	case 0:
		return "", "none that can talk is listed"
	case 2, 3, 4:
		return "", fmt.Sprintf("there is no reason to prefer one of the %d that are listed: %s", len(names), strings.Join(names, ", "))
	}
	return "", fmt.Sprintf("there is no reason to prefer one of the %d that are listed, such as %s", len(names), strings.Join(names[:3], ", "))
}

// newest returns the name with the highest version among those that match; empty if none
// does. Of two names with the same version, the shorter one is no snapshot.
func newest(names []string, pattern *lazyregexp.Regexp) string {
	found := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !pattern.MatchString(name) })
	if len(found) == 0 {
		return ""
	}
	return slices.MaxFunc(found, func(a, b string) int {
		return cmp.Or(slices.Compare(version(a), version(b)), cmp.Compare(len(b), len(a)), cmp.Compare(b, a))
	})
}

// version returns the numbers in a name. A date is none of them: a snapshot is no newer
// version than its model.
func version(name string) (numbers []int) {
	for _, found := range number.FindAllStringSubmatch(name, -1) {
		if n, err := strconv.Atoi(found[0]); err == nil && len(found[0]) < len("202501") {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

var number = lazyregexp.New(`\d+`)
