package config

// NamespaceRule gives the pods of some namespaces a ratio of their own.
type NamespaceRule struct {
	// Namespace is a pattern of path.Match for the pod's namespace.
	Namespace string
	// Ratio is the share of its ordinary operations that is kept, 0 to 1.
	Ratio float64
}

// namespaceRules is the list [[sampling.rule]].
func namespaceRules() kind[[]NamespaceRule] {
	return ruleList("sampling.rule", "namespace", pattern("kube-*"), "ratio", share(),
		func(namespace string, ratio float64) NamespaceRule { return NamespaceRule{namespace, ratio} },
		func(r NamespaceRule) (string, float64) { return r.Namespace, r.Ratio })
}
