// Command words makes the list of words that pkg/redact does not redact: common English, and technical words of Go's
// library and of modules around CNI. It prints one word a line.
//
//	words [-scowl FOLDER] [-more FILE] FOLDER...
//
// A word is taken if it is among the most common ones; if it is in a dictionary, and in sentences (comments and
// messages) of more than one source file; or in messages of several files: "netns" and "CIDR" are in no dictionary.
package main

import (
	"errors"
	"flag"
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
)

// The minimum numbers of files with a word: a single author's slip or name does not count.
const (
	filesOfEnglish  = 2
	filesOfMessages = 3
)

// sentence matches a text for people; piece matches a possible word in it.
var (
	sentence = regexp.MustCompile(`[A-Za-z]+ [A-Za-z]`)
	piece    = regexp.MustCompile(`(?:^|[\s"'(\[:,/=])([A-Za-z][a-z]+|[A-Z]{3,8}s?)(?:[\s"')\].:,;/=]|$)`)
)

func main() {
	scowl := flag.String("scowl", "/usr/share/dict/scowl", "lists of English words by how common they are (Debian: scowl)")
	more := flag.String("more", "test/words/domain.txt", "words to take as they are; # begins a comment")
	flag.Parse()
	common, err1 := read(*scowl, "10", "20")
	english, err2 := read(*scowl, "10", "20", "35")
	err := errors.Join(err1, err2)
	if err == nil {
		err = list(common, english, *more, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func list(common, english map[string]bool, more string, folders []string) error {
	everywhere, messages := map[string]int{}, map[string]int{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || d.Name() == "vendor" || d.Name() == "test"):
				return fs.SkipDir
			case !d.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
				count(path, everywhere, messages)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	words := maps.Clone(common)
	if err := own(more, words); err != nil {
		return err
	}
	for w, files := range everywhere {
		if english[w] && files >= filesOfEnglish {
			words[w] = true
		}
	}
	for w, files := range messages {
		if files >= filesOfMessages || english[w] {
			words[w] = true
		}
	}
	for _, w := range slices.Sorted(maps.Keys(words)) {
		fmt.Println(w)
	}
	return nil
}

func own(file string, words map[string]bool) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "#") {
			for w := range strings.FieldsSeq(line) {
				words[w] = true
			}
		}
	}
	return nil
}

func count(path string, everywhere, messages map[string]int) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return
	}
	all, said := map[string]bool{}, map[string]bool{}
	for _, group := range file.Comments {
		words(group.Text(), all)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if s, err := strconv.Unquote(literal.Value); err == nil && len(s) < 300 && sentence.MatchString(s) {
				words(s, all)
				words(s, said)
			}
		}
		return true
	})
	for w := range all {
		everywhere[w]++
	}
	for w := range said {
		messages[w]++
	}
}

func words(text string, to map[string]bool) {
	for {
		at := piece.FindStringSubmatchIndex(text)
		if at == nil {
			return
		}
		if w := text[at[2]:at[3]]; len(w) <= 20 {
			to[strings.ToLower(w)] = true
		}
		text = text[at[3]:]
	}
}

// read reads lists of SCOWL of the named sizes: 10 and 20 are common words, 35 is a small dictionary. It omits names
// and words with an apostrophe.
func read(folder string, sizes ...string) (map[string]bool, error) {
	words := map[string]bool{}
	for _, size := range sizes {
		for _, spelling := range []string{"english", "american"} {
			b, err := os.ReadFile(filepath.Join(folder, spelling+"-words."+size))
			if err != nil {
				return nil, fmt.Errorf("%w (Debian: scowl)", err)
			}
			for line := range strings.Lines(string(b)) {
				if w := strings.TrimSpace(line); strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == "" {
					words[w] = true
				}
			}
		}
	}
	return words, nil
}
