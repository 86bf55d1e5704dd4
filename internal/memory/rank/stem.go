package rank

import (
	"strings"
	"unicode"
)

// idle are words that are in every second question and say nothing about its subject.
var idle = func() map[string]bool {
	words := make(map[string]bool)
	for _, list := range []string{
		"a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my of on or our " +
			"shall should so than that the their them then there these they this to us was we were what when where which who why will with would you your",
		"aber als am an auch auf aus bei bin bis da damit das dass dem den denn der des die dir doch du ein eine einem einen einer eines er es für " +
			"hat hatte haben habe ich ihr im in ist ja kein keine mein mich mir mit nach noch oder ob sein sich sie sind so über um und uns unser unsere vom von vor " +
			"war waren was welche welchem welchen welcher welches wann warum wem wen wer werden wie wir wird wo wofür womit wurde zu zum zur",
		"а без был была были было бы в вам вас вы где для до его ее её если есть же за и из или им их к как какая какие какой каком когда кто ли мне мы на над нам нас наш наша наше " +
			"не него нет но ну о об он она они от по под при с свой со так такой там то только том ты у уже что чем чего чтобы эта эти это этот я",
		"什么 怎么 哪个 哪里 为什 是什 我们 你们 他们 这个 那个 的是",
	} {
		for _, w := range strings.Fields(list) {
			words[w] = true
		}
	}
	return words
}()

// folded are letters that are compared as another one: people leave marks out, and the forms
// of a word differ in them.
var folded = strings.NewReplacer("ä", "a", "ö", "o", "ü", "u", "ß", "ss", "é", "e", "è", "e", "ê", "e", "á", "a", "à", "a", "â", "a", "ó", "o", "ò", "o", "ô", "o", "í", "i", "ú", "u", "ç", "c", "ñ", "n", "ё", "е")

// The endings that are removed, the longest first.
var (
	latinEndings    = []string{"ments", "ungen", "ingly", "ings", "edly", "ment", "ern", "ung", "ing", "ies", "em", "en", "er", "es", "ed", "ly", "s", "e", "n", "y"}
	cyrillicEndings = []string{"яются", "аются", "яется", "ается", "ться", "ится", "ется", "ятся", "ются", "утся", "лись", "иями", "ями", "ами", "ого", "его", "ому", "ему", "ыми", "ими", "ией", "иям", "иях", "ешь", "ать", "ять", "ить", "еть",
		"ает", "яет", "ают", "яют", "ов", "ев", "ей", "ой", "ый", "ий", "ая", "яя", "ое", "ее", "ые", "ие", "ых", "их", "ую", "юю", "ах", "ях", "ам", "ям", "ом", "ем", "им",
		"ет", "ют", "ут", "ит", "ят", "ат", "ть", "ия", "ию", "ии", "а", "я", "о", "е", "у", "ю", "ы", "и", "ь", "й"}
)

// Stem returns the part of a word that its forms share. It is not always right, and need not
// be: the same is done to what is searched for.
func Stem(word string) string {
	word = folded.Replace(word)
	endings, passes, least := latinEndings, 2, 3 // least is how many letters are left
	for _, r := range word {
		switch {
		case unicode.IsDigit(r):
			return word // a name or a version
		case unicode.Is(unicode.Cyrillic, r):
			endings, passes, least = cyrillicEndings, 1, 4
		}
	}
	for range passes { // "servers" and "server", "Protokollen" and "Protokoll"
		for _, end := range endings {
			if rest, ok := strings.CutSuffix(word, end); ok && len([]rune(rest)) >= least {
				word = rest
				break
			}
		}
	}
	return word
}
