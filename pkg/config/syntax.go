package config

import (
	"errors"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// syntax keeps only go-toml's message, because the rest quotes lines that may hold a secret.
func syntax(name string, data []byte, err error) Problem {
	const remedy = "see https://toml.io, and configs/cniscope.toml for an example"
	p := Problem{Source: name, What: "is not TOML", Remedy: remedy}
	de, is := errors.AsType[*toml.DecodeError](err)
	if !is {
		return p
	}
	p.Line, p.Column = de.Position()
	said := strings.TrimPrefix(de.Error(), "toml: ")
	p.What += " (" + said + ")"
	all := strings.Split(string(data), "\n")
	if p.Line < 1 || p.Line > len(all) {
		return p
	}
	if remedy := syntaxRemedy(said, strings.TrimSpace(all[p.Line-1])); remedy != "" {
		p.Remedy = remedy
	}
	return p
}

var (
	yamlLine     = regexp.MustCompile(`^-? ?[\w.-]+:( |$)`)
	decimalComma = regexp.MustCompile(`= *\d+,\d+`)
	bareWord     = regexp.MustCompile(`= *[A-Za-z/~$*.:]`)
)

// syntaxRemedy shows no value.
func syntaxRemedy(said, line string) string {
	key, _, _ := strings.Cut(line, "=")
	key = strings.TrimSpace(key)
	switch has := strings.Contains; {
	case strings.HasPrefix(line, "{"):
		return "this looks like JSON: write [section] on a line of its own, and key = value below it"
	case yamlLine.MatchString(line) && !has(line, "="):
		return "this looks like YAML: write [section] on a line of its own, and key = value below it"
	case has(said, "already exists"), has(said, "already defined"):
		return "write each [section] once, and each option once in it"
	case decimalComma.MatchString(line):
		return "write a point before the decimals"
	case has(said, "new lines"), has(said, "unterminated"), has(said, "unclosed"), strings.Count(line, `"`)%2 == 1:
		return "close the quotes at the end of the text"
	case strings.HasPrefix(line, "[") && !has(line, "]"):
		return "write ] after the section's name"
	case yesOrNo.MatchString(line):
		return "write true or false, without quotes"
	case has(said, "start of value"), bareWord.MatchString(line):
		return "write text in quotes: " + bareKey(key) + ` = "…"`
	case !has(line, "="):
		return "write key = value"
	}
	return ""
}

var yesOrNo = regexp.MustCompile(`(?i)= *(yes|no|on|off|true|false)\b`)

// bareKey returns "key" for an invalid key, which could be anything.
func bareKey(key string) string {
	if key == "" || len(key) > 64 || bare(strings.ReplaceAll(key, ".", "")) != strings.ReplaceAll(key, ".", "") {
		return "key"
	}
	return key
}
