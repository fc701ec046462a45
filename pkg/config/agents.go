package config

// agents is the list [[agent]]: patterns on the names of programs.
func agents() kind[[]string] {
	const has = "an agent has a command"
	command := pattern("antrea-agent")
	return tableList("write [[agent]] above command = …", has, []string{"command"},
		func(at string, table map[string]any) (string, []*fault) {
			return part(table, at, "command", command, has)
		},
		func(s string) string { return "{ command = " + quote(s) + " }" })
}
