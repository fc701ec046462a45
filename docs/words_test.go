package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// unplain matches phrases that the program does not print: advice to guess, and phrases that are not English.
var unplain = regexp.MustCompile(`(?i)\b(find out (why|what|who)|see (why|what|their|whether)|nobody's way|it is said\b|is said if|` +
	`to speak of|spoken|speaks? of|what is no chance|others at work|for want of|run again, it|or what a newer|never run\b|some ones?\b|` +
	`mostly lost to|take it out\b|is to be had|are to be had)`)

// forbidden matches the words that contributing/style.md forbids, as far as a pattern can tell.
var forbidden = regexp.MustCompile(`(?i)\b(whoever|whomever|whom|somebody|nobody|everybody|anybody|(is|are|was|were) told|in vain|` +
	`by what means|such an? one|that one|this one|at the most|meanwhile|mostly|perhaps|anew|mend(s|ed|ing)?|under way|as a rule|` +
	`believed|speaks? of|or so|in the way|(so|neither) do(es)?|goes on without|done without)\b`)

// allowed are strings that unplain matches, although they are not printed as prose.
var allowed = map[string]bool{
	"never run": true, // the value of error.type, which is an interface
}

// inSources calls visit with each string literal and each comment of the Go files below a directory.
func inSources(t *testing.T, root string, visit func(at token.Position, kind, text string)) {
	t.Helper()
	harness.Check(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		for _, group := range file.Comments {
			if ast.IsGenerated(file) {
				break
			}
			visit(files.Position(group.Pos()), "comments", group.Text())
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, is := n.(*ast.BasicLit); is && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					visit(files.Position(lit.Pos()), "strings", text)
				}
			}
			return true
		})
		return nil
	}))
}

// The program does not print phrases that were found unclear once.
func TestWhatItPrintsIsPlain(t *testing.T) {
	for _, root := range []string{"../pkg", "../plugin", "../configs"} {
		inSources(t, root, func(at token.Position, kind, text string) {
			if kind != "strings" || allowed[text] || strings.HasSuffix(at.Filename, "_test.go") {
				return
			}
			harness.Equal(t, unplain.FindString(text), "", at, "it prints", text)
		})
	}
}

const (
	ledger    = "testdata/words.txt"
	longest   = 25 // words of a sentence
	ledgerTop = "# Forbidden words and long sentences (contributing/style.md). Counts may only fall: go test ./docs -update lowers them.\n"
)

var (
	codeSpan   = regexp.MustCompile("(?s)(`+).+?`+")
	listItem   = regexp.MustCompile(`(?m)^ *([-*]|\d+\.) `)
	noProse    = regexp.MustCompile(`(?m)^(#+ .*|\|.*|    .*|<!--.*|> *)$`)
	sentence   = regexp.MustCompile(`[.!?]["')*]*\s`)
	comment    = regexp.MustCompile(`<!--.*?-->`)
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	blankLine  = regexp.MustCompile(`\n\s*\n`)
)

// sentences returns the sentences of a document's paragraphs and list items, without tables and code.
// A code span counts as one word.
func sentences(text string) (all []string) {
	text = codeSpan.ReplaceAllString(fence.ReplaceAllString(text, ""), "code")
	text = linkTarget.ReplaceAllString(text, "]")
	text = noProse.ReplaceAllString(listItem.ReplaceAllString(text, "\n\n"), "\n")
	for _, paragraph := range blankLine.Split(text, -1) {
		all = append(all, sentence.Split(paragraph, -1)...)
	}
	return all
}

// unplainWords returns what the style guide forbids, by area: forbidden words and long sentences of each document,
// forbidden words of the strings and comments below a directory. The guide itself is left out, since it quotes them.
func unplainWords(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, document := range documents(t) {
		if document == "../docs/contributing/style.md" {
			continue
		}
		text, _ := read(t, document)
		name := strings.TrimPrefix(filepath.ToSlash(document), "../")
		prose := codeSpan.ReplaceAllString(fence.ReplaceAllString(comment.ReplaceAllString(text, ""), ""), "")
		found["words of "+name] = forbidden.FindAllString(prose, -1)
		for _, s := range sentences(text) {
			if words := strings.Fields(s); len(words) > longest {
				found["long sentences of "+name] = append(found["long sentences of "+name], strings.Join(words, " "))
			}
		}
	}
	for _, root := range []string{"configs", "examples", "pkg", "plugin", "test"} {
		inSources(t, "../"+root, func(at token.Position, kind, text string) {
			if kind == "strings" && strings.HasSuffix(at.Filename, "_test.go") {
				return
			}
			area := "words in " + kind + " of " + root
			for _, word := range forbidden.FindAllString(text, -1) {
				found[area] = append(found[area], fmt.Sprintf("%s: %s", at, word))
			}
		})
	}
	return found
}

// Forbidden words and long sentences may only become fewer. An area that the ledger does not have has none.
func TestGoldenWordCounts(t *testing.T) {
	data, err := os.ReadFile(ledger)
	harness.Check(t, err)
	limits := map[string]int{}
	for line := range strings.Lines(strings.TrimPrefix(string(data), ledgerTop)) {
		count, area, _ := strings.Cut(strings.TrimSpace(line), " ")
		if limits[area], err = strconv.Atoi(count); err != nil {
			t.Fatalf("%s: %s: %v", ledger, line, err)
		}
	}
	found := unplainWords(t)
	var lowered strings.Builder
	lowered.WriteString(ledgerTop)
	for _, area := range slices.Sorted(maps.Keys(found)) {
		n, limit := len(found[area]), limits[area]
		if n > limit {
			t.Errorf("%d %s, %d allowed (docs/contributing/style.md):\n%s", n, area, limit, strings.Join(found[area], "\n"))
		}
		if n = min(n, limit); n > 0 {
			fmt.Fprintf(&lowered, "%d %s\n", n, area)
		}
	}
	if *update {
		harness.Check(t, os.WriteFile(ledger, []byte(lowered.String()), 0o644))
	}
}

// Sentences are found where prose is, and counted as a reader counts.
func TestSentencesAreCounted(t *testing.T) {
	const text = "# A heading of a document\n\nOne `code span here` two\nthree. Four [a link](far.md#away) five: six.\n\n" +
		"- An item.\n- Another item\n  of two lines\n\n| a | table. |\n\n    code. code.\n\n```\nA fence.\n```\n"
	var found []string
	for _, s := range sentences(text) {
		if s = strings.Join(strings.Fields(s), " "); s != "" {
			found = append(found, s)
		}
	}
	want := []string{"One code two three", "Four [a link] five: six.", "An item.", "Another item of two lines"}
	harness.EqualSlices(t, found, want)
	if n := len(forbidden.FindAllString("Nobody mended it, and perhaps whoever told so. Mendel is no match.", -1)); n != 4 {
		t.Errorf("%d forbidden words, want 4", n)
	}
}

// generatedPart matches what is generated in a document: a marked part, all of options.md, the table of known failures.
var generatedPart = regexp.MustCompile(`(?s)<!-- generated: .*?<!-- end -->|Generated from .*|\| message, for example .*`)

// TestProse prints how many words the documents and comments have, without what is generated, and how many of them are
// forbidden (make prose).
func TestProse(t *testing.T) {
	words := map[string]int{}
	for _, document := range documents(t) {
		text, _ := read(t, document)
		area := "words of documents for users"
		if name := filepath.ToSlash(document); strings.Contains(name, "/contributing/") || strings.Contains(name, "/testdata/") || name == "../CONTRIBUTING.md" {
			area = "words of documents for contributors"
		}
		words[area] += len(strings.Fields(generatedPart.ReplaceAllString(text, "")))
	}
	for _, root := range []string{"configs", "examples", "pkg", "plugin", "test"} {
		inSources(t, "../"+root, func(at token.Position, kind, text string) {
			area := "words of comments in the product"
			if root == "test" || strings.HasSuffix(at.Filename, "_test.go") {
				area = "words of comments in tests"
			}
			if kind == "comments" {
				words[area] += len(strings.Fields(text))
			}
		})
	}
	for area, all := range unplainWords(t) {
		kind, _, _ := strings.Cut(area, " of ")
		words["forbidden or long: "+kind] += len(all)
	}
	for _, area := range slices.Sorted(maps.Keys(words)) {
		t.Logf("%7d %s", words[area], area)
	}
}
